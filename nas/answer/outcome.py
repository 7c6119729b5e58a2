"""What came out of a run: frontier, picks, distance to the exact frontier, and the files that hold them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.answer.device_times import device_times, limits
from nas.exact.infeasibility import diagnosed
from nas.exact.solution import SMALL, ExactSolution, quick_frontier
from nas.files.tables import BLOCK, csv_text, write, write_json
from nas.frontier.blind_axes import blind_axes
from nas.frontier.diagnosis import Diagnosis, lines
from nas.frontier.dominance import frontier_rows
from nas.frontier.indicators import Distance, Scale, distance, too_many
from nas.frontier.picks import Pick, answers
from nas.frontier.uncertainty import Uncertainty, uncertainty
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.problem.questions import Question
from nas.search.assembly import Study, under_preset
from nas.search.loop import Search
from objectives.loss_law.law import Law
from objectives.loss_law.origin import origin_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished search, read in every way the product shows it."""

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
    regrets: tuple[tuple[float, float] | None, ...]
    scale: Scale | None
    exact: ExactSolution | None
    distance: Distance | None
    diagnosis: Diagnosis | None
    covered: int
    how: str
    asked: int
    stop_reason: str
    seconds: dict[str, float]

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
    """How a search came to its end: why it stopped, what it asked for, where the time went, how it covered a whole space.

    whole: every architecture of the space is accounted for.
    """

    reason: str
    asked: int
    seconds: dict[str, float]
    how: str = ""
    whole: bool = False


Stage = Callable[[str], None]  # is told what begins


def conclude(
    study: Study,
    search: Search,
    found: Evaluations,
    batches: IntArray,
    reason: str,
    stage: Stage = lambda begun: None,
) -> Outcome:
    """Everything that is derived from what a search evaluated."""
    whole = study.config.algo == "exact"
    how = getattr(search.strategy, "explanation", "") if whole else ""
    asked = len(found) + search.progress.repeats
    return derived(study, found, batches, Ending(reason, asked, search.progress.seconds, how, whole), stage)


def derived(
    study: Study,
    found: Evaluations,
    batches: IntArray,
    ending: Ending,
    stage: Stage = lambda begun: None,
) -> Outcome:
    """Everything that is derived from evaluations, a search's or recorded ones."""
    problem = study.problem
    rows = frontier_rows(found)
    frontier = found[rows]
    stage("Picks of the exact frontier" if ending.whole else "Exact frontier, to compare with")
    exact = quick_frontier(problem) if not ending.whole else None
    scale = scale_of(problem, exact.frontier if exact else frontier)
    stage("Picks, and what they take on the device")
    picks = answers(problem, found)
    on_device = under_preset(study, "device")
    unsure = uncertainty(problem.scenario.law, lambda some: problem.architectures(found.genotypes[some]), found)
    return Outcome(
        study,
        found,
        batches,
        frontier,
        picks,
        on_device,
        tuple(device_times(on_device, pick) for pick in picks),
        exact_losses(problem, ending.whole),
        blind_axes(problem.space, problem.scenario.law),
        None if unsure is None else unsure.probability()[rows],
        tuple(_regret(unsure, pick) for pick in picks),
        scale,
        exact,
        _apart(scale, frontier, exact),
        None if len(frontier) else diagnosed(problem, found),
        problem.space.size if ending.whole else len(found),
        ending.how if ending.whole else "" if exact is None else exact.explanation,
        ending.asked,
        ending.reason,
        ending.seconds,
    )


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
        return (None,) * len(problem.questions)
    everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    found = (pick.answer for pick in answers(problem, everything))
    return tuple(None if row is None else float(row.metrics["loss"][0]) for row in found)


def _regret(unsure: Uncertainty | None, pick: Pick) -> tuple[float, float] | None:
    """What another evaluated design within the pick's budgets may gain; unknown beside a baseline."""
    if unsure is None or pick.answer is None or pick.question.baseline:
        return None
    within = np.ones(len(unsure.evaluations), dtype=bool)
    for budget in pick.question.budgets:
        within &= unsure.evaluations.metrics[budget.metric] <= budget.limit
    return unsure.regret(int(pick.answer.keys[0]), within)


def scale_of(problem: Problem, frontier: Evaluations) -> Scale | None:
    """The scale that a frontier spans; none of an empty one."""
    return Scale.of(problem.objectives, frontier.values) if len(frontier) else None


def columns_of(problem: Problem, evaluations: Evaluations) -> dict[str, AnyArray]:
    """Architecture columns, then metrics: the columns of `frontier.csv`."""
    return file_columns(
        problem.architectures(evaluations.genotypes), {name: evaluations.metrics[name] for name in problem.metric_names}
    )


def file_columns(architectures: Architectures, metrics: Mapping[str, FloatArray]) -> dict[str, AnyArray]:
    """The shape, the metrics, then further columns that differ from their defaults."""
    further = architectures.further_columns()
    shape = {name: column for name, column in architectures.columns().items() if name not in further}
    return shape | {name: readable(name, column) for name, column in metrics.items()} | further


def readable(name: str, values: FloatArray) -> AnyArray:
    """Parameter counts as whole numbers (NaN of a failed row stays), everything else as it is."""
    if not name.startswith("params_"):
        return values
    if np.isfinite(values).all():
        return values.astype(np.int64)
    return np.array([int(value) if np.isfinite(value) else value for value in values.tolist()], dtype=object)


def write_files(folder: Path, outcome: Outcome) -> None:
    """evaluations.csv, frontier.csv, picks.csv and summary.json."""
    problem = outcome.study.problem
    write(folder / "evaluations.csv", evaluation_table(problem, outcome.evaluations, outcome.batches))
    sure = {} if outcome.optimal is None else {"probability_optimal": outcome.optimal}
    write(folder / "frontier.csv", csv_text({**columns_of(problem, outcome.frontier), **sure}))
    write(folder / "picks.csv", csv_text(pick_columns(outcome)))
    write_json(folder / "summary.json", summary(outcome))


def evaluation_table(problem: Problem, found: Evaluations, batches: IntArray) -> Iterator[str]:
    """`index, batch, state, reason`, the columns of `frontier.csv`, violations: CSV in blocks."""
    for start in range(0, max(len(found), 1), BLOCK):
        part = found[slice(start, start + BLOCK)]
        reasons = part.reasons or ("",) * len(part)
        columns: dict[str, Any] = {
            "index": range(start, start + len(part)),
            "batch": batches[start : start + BLOCK],
            "state": ["failed" if reason else "ok" for reason in reasons],
            "reason": reasons,
            **columns_of(problem, part),
            **{f"violation_{b.metric}": column for b, column in zip(part.budgets, part.violations.T, strict=True)},
        }
        yield csv_text(columns, header=start == 0)


def asked_text(problem: Problem, question: Question) -> str:
    """A question in words: `your budgets: decode_ms <= 20, memory_gb <= 64`, or an application's or baseline's label."""
    if question.budget is not None:
        return question.label
    return f"{question.label}: {', '.join(str(budget) for budget in problem.budgets) or 'none'}"


def answered(outcome: Outcome) -> list[dict[str, Any]]:
    """Per question what was asked and, where something fits, the architecture, its metrics and its times on the device."""
    rows: list[dict[str, Any]] = []
    unsure = any(regret is not None for regret in outcome.regrets)
    for pick, there, regret, best in zip(
        outcome.picks, outcome.device_times, outcome.regrets, outcome.exact_losses, strict=True
    ):
        row: dict[str, Any] = {"question": asked_text(outcome.study.problem, pick.question)}
        row["budgets"] = limits(outcome.study.problem, pick.question)
        if best is not None:
            row["exact_loss"] = best
        if pick.answer is not None:
            problem = outcome.study.problem.with_vocabulary(pick.question.vocabulary)
            design = {name: column[0] for name, column in columns_of(problem, pick.answer).items()}
            row |= {name: value.item() if hasattr(value, "item") else value for name, value in design.items()}
            row.setdefault("vocabulary", 0)
            row |= there
            row |= dict(zip(("regret_low", "regret_high"), regret or (None, None), strict=True)) if unsure else {}
        rows.append(row)
    return rows


def pick_columns(outcome: Outcome) -> dict[str, Any]:
    """The answered questions as columns; `metric` and `limit` are the budget that a question adds, none for your own."""
    rows = []
    for pick, row in zip(outcome.picks, answered(outcome), strict=True):
        budget = pick.question.budget
        added = {"metric": None, "limit": None} if budget is None else {"metric": budget.metric, "limit": budget.limit}
        design = {name: value for name, value in row.items() if name not in ("question", "budgets", "exact_loss")}
        rows += [{"question": row["question"], **added, **design}] if pick.answer is not None else []
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["question", "metric", "limit"]
    return {name: [_cell(row.get(name)) for row in rows] for name in names}


def _cell(value: Any) -> Any:
    return float("nan") if value is None else value


def law_in_numbers(law: Law) -> dict[str, Any]:
    """The law of a run: its name, form, tokens, residual sd and, of a fitted one, where it comes from."""
    origin = origin_of(law)
    return {
        "name": law.name,
        "form": law.form if isinstance(law.form, str) else "its own",
        "tokens": law.tokens,
        "residual_sd": law.residual_sd,
        "origin": None if origin is None else origin.model_dump(mode="json"),
    }


def summary(outcome: Outcome) -> dict[str, Any]:
    """The run in numbers, each with what it is relative to."""
    scale, found = outcome.scale, outcome.evaluations
    rough = too_many(outcome.frontier.values)
    best = None if scale is None else scale.hypervolume(outcome.frontier.values, approximate=rough)
    return {
        "stop_reason": outcome.stop_reason,
        "space": {
            "name": outcome.study.problem.space.name,
            "architectures": outcome.study.problem.space.size,
            "covered": outcome.covered,
            "exact_frontier": outcome.how or None,
        },
        "evaluations": {
            "asked": outcome.asked,
            "distinct": len(found),
            "repeats": outcome.asked - len(found),
            "failed": int((~found.ok).sum()),
            "feasible": int(found.feasible.sum()),
        },
        "frontier": len(outcome.frontier),
        "hypervolume": best,
        "hypervolume_is": "approximate (moocore.hv_approx, error about 1e-3)" if rough else "exact",
        "scale": None
        if scale is None
        else {"bounds_from": "exact frontier" if outcome.exact else "this run's frontier", **scale.described()},
        "exact": None if outcome.distance is None else asdict(outcome.distance),
        "picks": answered(outcome),
        "law": law_in_numbers(outcome.study.problem.scenario.law),
        "law_does_not_see": list(outcome.blind),
        "diagnosis": outcome.diagnosis and lines(outcome.diagnosis, outcome.diagnosis_covers_space),
        "seconds": outcome.seconds,
    }
