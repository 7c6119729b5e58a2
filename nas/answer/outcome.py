"""The outcome of a run: frontier, picks, distance to the exact frontier."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nas.answer.changes import Changes, changes_of
from nas.answer.device_times import alike, device_times
from nas.answer.doubt import Doubt, doubt_of
from nas.answer.law_verdicts import LawAnswers, law_answers
from nas.answer.on_each_device import OnDevice, held_on_device, on_each_device
from nas.answer.take import TrainOrTake, train_or_take
from nas.answer.witness import Witness, of_picks
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import SMALL, ExactSolution, quick_frontier
from nas.problem.diagnosis import Diagnosis
from nas.problem.evaluations import Distance, Evaluations, Scale, distance, frontier_rows
from nas.problem.law_caveats import blind_axes
from nas.problem.picks import Pick, answers
from nas.problem.problem import UNCOVERED, Problem
from nas.problem.uncertainty import uncertainty
from nas.record.store import known_in
from nas.search.assembly import Study, under_preset
from nas.search.discovery import penalised
from nas.search.loop import Search
from nas.search.strategy import ReportSection, sections_of
from nas.search.successive_halving import STOPPED
from search_spaces.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished search, read in every way the product shows it.

    witnesses: what `evidence` says of each pick beside a model, of a study under another law; changes: what one change would buy, None where nothing fits or it would take long to say; held: picks that hold under preset `device`,
    where times there are not the study's own; take: the published models to take instead, where they can be compared.
    """

    study: Study
    evaluations: Evaluations
    batches: IntArray
    frontier: Evaluations
    picks: tuple[Pick, ...]
    on_device: Problem
    device_times: tuple[dict[str, float], ...]
    exact_losses: tuple[float | None, ...]
    blind: tuple[str, ...]
    optimal: FloatArray | None
    doubt: Doubt | None
    witnesses: tuple[Witness | None, ...]
    scale: Scale | None
    exact: ExactSolution | None
    distance: Distance | None
    diagnosis: Diagnosis | None
    covered: int
    how: str
    asked: int
    stop_reason: str
    seconds: dict[str, float]
    under_laws: LawAnswers | None = None
    sections: tuple[ReportSection, ...] = ()
    on_each_device: tuple[OnDevice, ...] = ()
    changes: Changes | None = None
    held: tuple[Pick, ...] = ()
    take: TrainOrTake | None = None

    @property
    def known(self) -> int:
        """How many of the evaluations were known before the run."""
        return known_in(self.batches)

    @property
    def charged(self) -> int:
        """How many evaluations the run itself took."""
        return len(self.evaluations) - self.known

    @property
    def stopped(self) -> int:
        """How many designs a fidelity step stopped; they count among the failed evaluations."""
        return sum(reason.startswith(STOPPED) for reason in self.evaluations.reasons or ())

    @property
    def uncovered(self) -> int:
        """How many designs the law does not cover; they count among the failed evaluations."""
        return sum(reason.startswith(UNCOVERED) for reason in self.evaluations.reasons or ())

    @property
    def failed(self) -> int:
        """How many evaluations failed for another reason than that a fidelity step stopped them or the law does not cover them."""
        return int((~self.evaluations.ok).sum()) - self.stopped - self.uncovered

    @property
    def whole(self) -> bool:
        """Whether the run itself accounted for every architecture of the space, so that its frontier is the exact one."""
        return self.study.config.algo == "exact" and self.covered == self.study.problem.space.size

    @property
    def diagnosis_covers_space(self) -> bool:
        """Whether the diagnosis looked at every architecture of the space."""
        return self.diagnosis is not None and self.diagnosis.examined == self.study.problem.space.size


@dataclass(frozen=True)
class Ending:
    """How a search ended: why it stopped, what it proposed, where the time went, how it covered a whole space.

    whole: every architecture of the space is accounted for; sections: what the strategy says besides.
    """

    reason: str
    asked: int
    seconds: dict[str, float]
    how: str = ""
    whole: bool = False
    sections: tuple[ReportSection, ...] = ()


Stage = Callable[[str], None]  # is told what begins


def ending_of(study: Study, search: Search, found: Evaluations, reason: str) -> Ending:
    """How a search of a study ended that found this."""
    whole = study.config.algo == "exact"
    how = getattr(search.strategy, "explanation", "") if whole else ""
    asked = search.charged + search.progress.repeats
    said = sections_of(search.strategy, penalised(found, study.handling, study.config.penalty_weight))
    return Ending(reason, asked, search.progress.seconds, how, whole, said)


def derived(
    study: Study, found: Evaluations, batches: IntArray, ending: Ending, stage: Stage = lambda begun: None
) -> Outcome:
    """Everything that is derived from evaluations, a search's or recorded ones."""
    problem = study.problem
    frontier = found[rows := frontier_rows(found)]
    exact, scale = _exact(problem, frontier, ending, stage)
    picks = _picks(problem, found, stage)
    on_device, solved = under_preset(study, "device"), ending.whole and len(found) < problem.space.size
    there = tuple(device_times(on_device, pick) for pick in picks)
    unsure = uncertainty(problem.scenario.law, lambda some: problem.architectures(found.genotypes[some]), found)
    return Outcome(
        study,
        found,
        batches,
        frontier,
        picks,
        on_device,
        there,
        exact_losses(problem, ending.whole),
        blind_axes(problem.space, problem.scenario.law),
        None if unsure is None else unsure.probability()[rows],
        doubt_of(problem, study.baselines, picks, frontier, found),
        of_picks(problem, study.baselines, picks, found),
        scale,
        exact,
        _apart(scale, frontier, exact),
        None if len(frontier) else diagnosed(problem, found),
        *_coverage(ending, exact, found, problem),
        ending.asked,
        ending.reason,
        ending.seconds,
        _under_laws(study, picks, frontier, ending, stage),
        ending.sections,
        on_each_device(problem, found, frontier, solved=solved),
        _changes(study, picks[0], found, stage, solved=solved),
        _held(study, on_device, picks, there, found, solved=solved),
        _take(problem, picks[0]),
    )


def _exact(
    problem: Problem, frontier: Evaluations, ending: Ending, stage: Stage
) -> tuple[ExactSolution | None, Scale | None]:
    """The exact frontier to compare with, None of a run that is one, and where it takes more than seconds; the scale that it, else the run's, spans."""
    stage("Picks of the exact frontier" if ending.whole else "Exact frontier, to compare with")
    exact = None if ending.whole else quick_frontier(problem)
    return exact, scale_of(problem, exact.frontier if exact else frontier)


def _picks(problem: Problem, found: Evaluations, stage: Stage) -> tuple[Pick, ...]:
    """The pick of each question, among everything evaluated."""
    stage("Picks, and what they take on the device")
    return answers(problem, found)


def _coverage(ending: Ending, exact: ExactSolution | None, found: Evaluations, problem: Problem) -> tuple[int, str]:
    """How many designs are accounted for, and how the exact frontier was found; "" of none."""
    if ending.whole:
        return problem.space.size, ending.how
    return len(found), "" if exact is None else exact.explanation


def _changes(study: Study, own: Pick, found: Evaluations, stage: Stage, *, solved: bool) -> Changes | None:
    """What one change of the study would buy beside the pick within your budgets; None without one."""
    stage("What one change would buy")
    return (
        None
        if own.answer is None or own.question.least != "loss"
        else changes_of(study, own.answer, found, solved=solved)
    )


def _take(problem: Problem, own: Pick) -> TrainOrTake | None:
    """The published models beside the pick within your budgets; None without one."""
    return None if own.answer is None else train_or_take(problem, problem.architectures(own.answer.genotypes))


def _held(
    study: Study,
    on_device: Problem,
    picks: tuple[Pick, ...],
    there: tuple[dict[str, float], ...],
    found: Evaluations,
    *,
    solved: bool,
) -> tuple[Pick, ...]:
    """The picks that hold under preset `device`; none where times there are the study's own."""
    own = [pair for pair in zip(picks, there, strict=True) if not pair[0].question.baseline]
    return () if alike(study.problem, own) else held_on_device(study, on_device, found, solved=solved)


def _under_laws(
    study: Study, picks: tuple[Pick, ...], frontier: Evaluations, ending: Ending, stage: Stage
) -> LawAnswers | None:
    """Answers of several laws for a run of the whole space; None for another, and where the study has one law."""
    if not (study.laws and ending.whole):
        return None
    stage("Picks under each law")
    return law_answers(study.problem, study.laws, picks, frontier)


def _apart(scale: Scale | None, frontier: Evaluations, exact: ExactSolution | None) -> Distance | None:
    """How far a frontier is from the exact one; unknown without it."""
    if exact is None or scale is None:
        return None
    common = len(np.intersect1d(frontier.keys, exact.frontier.keys))
    return distance(scale, frontier.values, exact.frontier.values, common)


def exact_losses(problem: Problem, whole: bool) -> tuple[float | None, ...]:
    """The loss of each question's exact pick where that takes no time; unknown elsewhere, and where nothing fits.

    A run of the whole space has the exact picks already: None for each.
    """
    if whole or not problem.analytic or problem.space.size > SMALL:
        return (None,) * len(problem.queries)
    everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    found = (pick.answer for pick in answers(problem, everything))
    return tuple(None if row is None else float(row.metrics["loss"][0]) for row in found)


def scale_of(problem: Problem, frontier: Evaluations) -> Scale | None:
    """The scale that a frontier spans; none of an empty one."""
    return Scale.from_frontier(problem.objectives, frontier.values) if len(frontier) else None
