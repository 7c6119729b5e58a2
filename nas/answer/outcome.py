"""The outcome of a run: frontier, picks, distance to the exact frontier, how sure a law is of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np

from nas.answer.changes import Changes, changes_of
from nas.answer.device_times import alike, device_times
from nas.answer.on_each_device import OnDevice, held_on_device, on_each_device
from nas.answer.sureness import Witness, of_picks
from nas.answer.take import TrainOrTake, train_or_take
from nas.answer.under_laws import LawAnswers, law_answers
from nas.errors import UsageError
from nas.exact.expected_regret import ExpectedRegret, least_expected_regret, least_expected_regrets
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import SMALL, ExactSolution, quick_frontier
from nas.problem import uncertainty as law_doubt
from nas.problem.diagnosis import Diagnosis
from nas.problem.evaluations import Distance, Evaluations, Scale, distance, frontier_rows
from nas.problem.law_caveats import blind_axes
from nas.problem.picks import Pick, PickRule, answers
from nas.problem.problem import UNCOVERED, Problem
from nas.record.store import known_in
from nas.search.assembly import Study, under_preset
from nas.search.discovery import penalised
from nas.search.loop import Search
from nas.search.strategy import ReportSection, sections_of
from nas.search.successive_halving import STOPPED
from objectives.loss_law.draws import spread, trimmed_mean
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray, IntArray

Made = TypeVar("Made")
Stage = Callable[[str], None]  # gets the name of what begins


def unsaid(begun: str) -> None:
    """Say nothing of what begins."""


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


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished search; everything that is derived from its evaluations is computed when it is first asked for."""

    study: Study
    evaluations: Evaluations
    batches: IntArray
    ending: Ending
    stage: Stage = unsaid

    @property
    def known(self) -> int:
        """How many of the evaluations were known before the run."""
        return known_in(self.batches)

    @property
    def charged(self) -> int:
        """How many evaluations the run itself took."""
        return len(self.evaluations) - self.known

    @cached_property
    def without_value(self) -> dict[str, int]:
        """How many evaluations `failed`, how many designs a fidelity step `stopped`, and how many are `not_covered` by the law."""
        reasons, kinds = self.evaluations.reasons or (), {"stopped": STOPPED, "not_covered": UNCOVERED}
        others = {kind: sum(reason.startswith(why) for reason in reasons) for kind, why in kinds.items()}
        return {"failed": int((~self.evaluations.ok).sum()) - sum(others.values()), **others}

    @property
    def covered(self) -> int:
        """How many designs are accounted for."""
        return self.study.problem.space.size if self.ending.whole else len(self.evaluations)

    @property
    def whole(self) -> bool:
        """Whether the run itself accounted for every architecture of the space, so that its frontier is the exact one."""
        return self.study.config.algo == "exact" and self.covered == self.study.problem.space.size

    @property
    def solved(self) -> bool:
        """Whether the run kept the frontier and the picks alone of a space that it covered."""
        return self.ending.whole and len(self.evaluations) < self.study.problem.space.size

    @cached_property
    def rows(self) -> IntArray:
        """The rows of the evaluations that are on the frontier."""
        return frontier_rows(self.evaluations)

    @cached_property
    def frontier(self) -> Evaluations:
        """The designs that no evaluated one dominates."""
        return self.evaluations[self.rows]

    @cached_property
    def picks(self) -> tuple[Pick, ...]:
        """The pick of each question, among everything evaluated."""
        self.stage("Picks, and what they take on the device")
        return answers(self.study.problem, self.evaluations)

    @cached_property
    def unsafe(self) -> Evaluations | None:
        """The pick within your budgets as times are predicted, one row, without a margin."""
        return replace(PickRule.for_query(self.picks[0].question), margin=False).answer(self.evaluations)

    @cached_property
    def on_device(self) -> Problem:
        """The study's problem under preset `device`."""
        return under_preset(self.study, "device")

    @cached_property
    def device_times(self) -> tuple[dict[str, float], ...]:
        """Of each pick its times under preset `device`, ms."""
        return tuple(device_times(self.on_device, pick) for pick in self.picks)

    @cached_property
    def alike(self) -> bool:
        """Whether times of the picks under preset `device` are the study's own; of those beside no published model."""
        pairs = zip(self.picks, self.device_times, strict=True)
        return alike(self.study.problem, [pair for pair in pairs if not pair[0].question.baseline])

    @cached_property
    def exact_losses(self) -> tuple[float | None, ...]:
        """The loss of each question's exact pick where that takes no time; None elsewhere, where nothing fits and of a run of the whole space, which has them."""
        problem = self.study.problem
        if self.ending.whole or not problem.analytic or problem.space.size > SMALL:
            return (None,) * len(problem.queries)
        everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
        rows = (pick.answer for pick in answers(problem, everything))
        return tuple(None if row is None else float(row.metrics["loss"][0]) for row in rows)

    @cached_property
    def blind(self) -> tuple[str, ...]:
        """The axes that the law does not see."""
        return blind_axes(self.study.problem.space, self.study.problem.scenario.law)

    @cached_property
    def optimal(self) -> FloatArray | None:
        """The probability that each design of the frontier is one, over the law's draws; None without draws."""
        problem, every = self.study.problem, self.evaluations
        unsure = law_doubt.uncertainty(
            problem.scenario.law, lambda rows: problem.architectures(every.genotypes[rows]), every
        )
        return None if unsure is None else unsure.probability()[self.rows]

    @cached_property
    def doubt(self) -> "Doubt | None":
        """How sure the law is of the answer; None of one that does not say it."""
        return Doubt(self) if law_doubt.has_doubt(self.study.problem.scenario.law) else None

    @cached_property
    def witnesses(self) -> tuple[Witness | None, ...]:
        """What `evidence` says of each pick beside a model, of a study under another law."""
        return of_picks(self.study.problem, self.study.baselines, self.picks, self.evaluations)

    @cached_property
    def exact(self) -> ExactSolution | None:
        """The exact frontier to compare with; None of a run that is one, and where it takes more than seconds."""
        if self.ending.whole:
            return None
        self.stage("Exact frontier, to compare with")
        return quick_frontier(self.study.problem)

    @cached_property
    def how(self) -> str:
        """How the exact frontier was found; "" of none."""
        exact = self.exact
        return self.ending.how if self.ending.whole else "" if exact is None else exact.explanation

    @cached_property
    def scale(self) -> Scale | None:
        """The scale that the exact frontier, else the run's, spans; None of an empty one."""
        frontier = self.exact.frontier if self.exact else self.frontier
        return Scale.from_frontier(self.study.problem.objectives, frontier.values) if len(frontier) else None

    @cached_property
    def distance(self) -> Distance | None:
        """How far the frontier is from the exact one; None without it."""
        if self.exact is None or self.scale is None:
            return None
        common = len(np.intersect1d(self.frontier.keys, self.exact.frontier.keys))
        return distance(self.scale, self.frontier.values, self.exact.frontier.values, common)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Why nothing fits; None where something does."""
        return None if len(self.rows) else diagnosed(self.study.problem, self.evaluations)

    @property
    def diagnosis_covers_space(self) -> bool:
        """Whether the diagnosis looked at every architecture of the space."""
        return self.diagnosis is not None and self.diagnosis.examined == self.study.problem.space.size

    @cached_property
    def under_laws(self) -> LawAnswers | None:
        """Answers of several laws for a run of the whole space; None for another, and where the study has one law."""
        if not (self.study.laws and self.ending.whole):
            return None
        self.stage("Picks under each law")
        return law_answers(self.study.problem, self.study.laws, self.picks)

    @cached_property
    def on_each_device(self) -> tuple[OnDevice, ...]:
        """The answer on each device of a study with several."""
        return on_each_device(self.study.problem, self.evaluations, self.frontier, solved=self.solved)

    @cached_property
    def changes(self) -> Changes | None:
        """What one change would buy beside the pick within your budgets; None where nothing fits or it would take long to say."""
        own = self.picks[0]
        self.stage("What one change would buy")
        if own.answer is None or own.question.least != "loss":
            return None
        return changes_of(self.study, own.answer, self.evaluations, solved=self.solved)

    @cached_property
    def held(self) -> tuple[Pick, ...]:
        """The picks that hold under preset `device`; none where times there are the study's own."""
        return () if self.alike else held_on_device(self.study, self.on_device, self.evaluations, solved=self.solved)

    @cached_property
    def take(self) -> TrainOrTake | None:
        """The published models to take instead of the pick within your budgets, where they can be compared."""
        pick, problem = self.picks[0], self.study.problem
        # Of models the loss is all that is known besides their costs.
        if pick.answer is None or pick.question.least != "loss":
            return None
        return train_or_take(problem, problem.architectures(pick.answer.genotypes))


def once(made: Callable[[Outcome], Made]) -> Callable[[Outcome], Made]:
    """Make something of an outcome once, and keep it with the outcome."""

    @wraps(made)
    def kept(outcome: Outcome) -> Made:
        if made.__name__ not in vars(outcome):
            vars(outcome)[made.__name__] = made(outcome)
        found: Made = vars(outcome)[made.__name__]
        return found

    return kept


def conclude(
    study: Study, search: Search, evaluations: Evaluations, batches: IntArray, reason: str, stage: Stage = unsaid
) -> Outcome:
    """The outcome of a search; `stage` is told what is computed when it begins."""
    whole = study.config.algo == "exact"
    how = getattr(search.strategy, "explanation", "") if whole else ""
    asked = search.charged + search.progress.repeats
    sections = sections_of(search.strategy, penalised(evaluations, study.handling, study.config.penalty_weight))
    return Outcome(
        study, evaluations, batches, Ending(reason, asked, search.progress.seconds, how, whole, sections), stage
    )


@dataclass(frozen=True, eq=False)
class PickRegret:
    """A pick's expected regret over a law's draws, nats, and the design of the least one."""

    nats: float
    least: ExpectedRegret


@dataclass(frozen=True, eq=False)
class Doubt:
    """What a law that says how sure it is leaves open in a run's answer; computed when it is first asked for."""

    of: Outcome

    @property
    def _on_loss(self) -> bool:
        return bool({name.partition("@")[0] for name in self.of.frontier.objectives} & set(law_doubt.FROM_LOSS))

    @cached_property
    def differences(self) -> tuple[dict[str, law_doubt.Difference], ...]:
        """Per pick those from each published model, by its label; of all picks at once, since losses are drawn law by law."""
        problem, picks = self.of.study.problem, self.of.picks
        by_pick: list[dict[str, law_doubt.Difference]] = [{} for _ in picks]
        answered = {at: pick.answer.genotypes for at, pick in enumerate(picks) if pick.answer is not None}
        if answered:
            designs = problem.architectures(np.concatenate(list(answered.values())))
            for label, column in law_doubt.from_models(problem.scenario.law, designs, self.of.study.baselines).items():
                for at, difference in zip(answered, column, strict=True):
                    by_pick[at][label] = difference
        return tuple(by_pick)

    @cached_property
    def groups(self) -> IntArray | None:
        """Of the frontier's designs those that are not told apart, -1 outside of the evidence; None without a loss among the objectives."""
        problem = self.of.study.problem
        return (
            law_doubt.tied(problem.scenario.law, problem.architectures(self.of.frontier.genotypes))
            if self._on_loss
            else None
        )

    @property
    def steps(self) -> int:
        """How many groups of the frontier's designs are told apart."""
        return 0 if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @cached_property
    def level_sd(self) -> float | None:
        """The sd of one loss on an unknown text, at the first pick, nats; None without draws or a pick."""
        problem, answer = self.of.study.problem, self.of.picks[0].answer
        if not problem.scenario.law.draws or answer is None:
            return None
        losses = problem.scenario.law.drawn_losses(problem.architectures(answer.genotypes))
        return float(np.hypot(spread(losses[:, 0]), law_doubt.misfit(problem.scenario.law)))

    @cached_property
    def not_told_apart(self) -> law_doubt.NotToldApart | None:
        """The evaluated designs that the law cannot tell from the first pick."""
        answer = self.of.picks[0].answer
        if not self._on_loss or answer is None:
            return None
        return law_doubt.not_told_apart_from(self.of.study.problem, answer, self.of.evaluations)

    @cached_property
    def regrets(self) -> tuple[PickRegret | None, ...]:
        """Per pick its expected regret; None beside a published model, outside of the evidence, and where nothing is known of it."""
        problem, picks = self.of.study.problem, self.of.picks
        law, own = problem.scenario.law, {metric.name for metric in problem.functions}
        by_pick: list[PickRegret | None] = [None] * len(picks)
        if not law.draws or own & {budget.metric for budget in problem.budgets}:
            return tuple(by_pick)
        asked: dict[int, tuple[Evaluations, PickRule]] = {}
        for at, pick in enumerate(picks):
            rule, question = PickRule.for_query(pick.question), pick.question
            if (
                pick.answer is not None
                and not question.baseline
                and question.least == "loss"
                and not own & {*rule.metrics}
            ):
                asked[at] = pick.answer, rule.as_answered(pick.answer)
        if asked:
            candidates = np.concatenate([self.of.frontier.genotypes, *(row.genotypes for row, _ in asked.values())])
            least = least_expected_regrets(problem, law, tuple(rule for _, rule in asked.values()), candidates)
            for (at, (row, _)), best in zip(asked.items(), least, strict=True):
                by_pick[at] = None if best is None else _pick_regret(problem, law, row.genotypes[0], best)
        return tuple(by_pick)


def solved_regret(problem: Problem, rule: PickRule, pick: IntArray) -> PickRegret | None:
    """The expected regret of a pick, a genotype (g,), over the whole space, however large; None outside of the evidence.

    Raises:
        UsageError: the law has no draws, a budget is on a user's own metric, or the space is no sum of parts.
    """
    own = {metric.name for metric in problem.functions}
    if mine := sorted(own & {budget.metric for budget in (*problem.budgets, *rule.limits)}):
        raise UsageError(
            f"expected-regret: expected budgets on shipped metrics, got one on {', '.join(mine)}; drop the budget"
        )
    law = problem.scenario.law
    if law.draws and law.extrapolates(problem.architectures(pick[None])).any():
        return None
    best = least_expected_regret(problem, law, rule.as_answered(problem.evaluate(pick[None])))
    return None if best is None else _pick_regret(problem, law, pick, best)


def _pick_regret(problem: Problem, law: Law, pick: IntArray, best: ExpectedRegret) -> PickRegret | None:
    """A pick's own expected regret, beside the least; the pick's is the least where no other is known to be less."""
    if law.extrapolates(problem.architectures(np.stack([pick, best.genotype]))).any():
        return None
    lowest = np.minimum(own := law.drawn_losses(problem.architectures(pick[None]))[:, 0], best.lowest)
    nats = trimmed_mean(own - lowest)
    least = best if best.expected_regret < nats else replace(best, genotype=pick, expected_regret=nats)
    return PickRegret(nats, least)
