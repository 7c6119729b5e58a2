"""Results of the models of expensive metrics: in words, as picks, tables and files, and read again from a run folder."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.record.candidates import read_candidates, read_numbers
from nas.search.strategy import ReportSection, ReportTable
from objectives.display_text import chance
from plas_prior.corrected import Corrected, Model, size
from plas_prior.corrected_picks import TAIL, CorrectedPick, picks_of
from plas_prior.prior_columns import Designs
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray

LITTLE = 0.9  # of the spread of a metric that its prior leaves
EXPECTED, ALONE = "expected, and 90 % of measurements", "by the formulas alone"
HEADER = ("within", "architecture", EXPECTED, "holds", ALONE, "holds", "better")
EXPLAINED = (
    "holds: the probability that one measurement of every limited metric is within its limit, and that nothing fails. "
    "better: that the loss is truly lower than that of the formulas' pick."
)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The values that taught a metric beside what all others say of each: by the model, by its prior on a straight line.

    All (n,), in the metric's unit; by_prior is None of a metric without one. known: how many of them, the first, were known before.
    """

    values: FloatArray
    expected: FloatArray
    by_prior: FloatArray | None
    log_scale: bool
    known: int


@dataclass(frozen=True, eq=False)
class Lessons:
    """Models that a strategy learned from its evaluations.

    said: sentences; figures: the same in numbers, by metric; genotypes: the designs that it believes to be the frontier of
    the whole space, (k, 6), evaluated or not; columns: what it expects of each, by name, (k,). left_out: the values that it
    learned from, by metric; picks: what the space's answers now are.
    """

    said: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Any]]
    genotypes: IntArray
    columns: Mapping[str, AnyArray]
    left_out: Mapping[str, LeftOut]
    picks: tuple[CorrectedPick, ...]


def lessons_of(
    corrected: Corrected, told: Evaluations, pool: Designs, best: Designs, analytic: IntArray, confidence: float
) -> Lessons:
    """Of each metric how well designs are predicted that were left out; of the whole space what is expected.

    pool: designs that stand for the space; best: the corrected frontier's; analytic: keys of the frontier before anything was told.
    """
    figures = {name: figures_of(corrected, model) for name, model in corrected.models.items()}
    lines = [sentence(model.columns.metric, figures[name]) for name, model in corrected.models.items()]
    evaluated, before = np.isin(best.keys, told.keys), np.isin(best.keys, analytic)
    lines.append(
        f"Corrected frontier (corrected.csv): {len(best):,} architectures, {int(before.sum()):,} of them on the analytic one "
        f"too, {int(evaluated.sum()):,} evaluated; the others are worth evaluating next."
    )
    columns: dict[str, AnyArray] = {"evaluated": evaluated.astype(np.int64), "analytic": before.astype(np.int64)}
    near = corrected.nearness(best, corrected.told)
    for model in corrected.models.values():
        columns |= expected(model, best, near)
    columns |= {name: column for name, column in best.known.items() if name not in columns}
    left_out = {name: left_out_of(corrected, model) for name, model in corrected.models.items()}
    picks = picks_of(corrected, told, pool, confidence)
    return Lessons(tuple(lines), figures, best.genotypes, columns, left_out, picks)


def expected(model: Model, designs: Designs, near: FloatArray) -> dict[str, FloatArray]:
    """The expected value of a metric under its name, and the ends between which one measurement lies with 90 %, each (k,).

    To six digits: further ones are those of the optimiser, not of the metric.
    """
    metric, mean, sd = model.columns.metric, model.mean(designs, near), model.sd(designs, near)
    ends = {metric.name: mean, f"{metric.name}_low": mean - TAIL * sd, f"{metric.name}_high": mean + TAIL * sd}
    values = {name: np.exp(column) if metric.log_scale else column for name, column in ends.items()}
    return {name: np.array([float(f"{value:.6g}") for value in column]) for name, column in values.items()}


def figures_of(corrected: Corrected, model: Model) -> dict[str, object]:
    """How far designs that were left out are predicted, by the model and by each prior on a straight line; the noise; the spread."""
    metric, posterior, values = model.columns.metric, model.posterior, model.values
    laws = [model.columns.laws[name].name for name in model.columns.priors]
    alone = {law: _rms(beside_a_line(posterior.columns[:, 1 + place], values)) for place, law in enumerate(laws)}
    found: dict[str, object] = {
        "prior": metric.prior or None,
        "evaluations": len(values),
        "scale": "log" if metric.log_scale else "linear",
        "left_out_rmse": _rms(posterior.left_out),
        "prior_alone_rmse": alone[laws[0]] if laws else None,
        "spread": float(values.std()),
        "noise": posterior.noise,
    }
    before = known_of(corrected, model)
    found |= {"evaluations": len(values) - before, "known": before} if before else {}
    return found | ({"priors_alone_rmse": alone} if len(alone) > 1 else {})


def known_of(corrected: Corrected, model: Model) -> int:
    """How many of the values that taught a metric were known before the search."""
    return int((np.arange(len(corrected.told))[model.rows] < corrected.before).sum())


def left_out_of(corrected: Corrected, model: Model) -> LeftOut:
    """The values that taught a metric, and what all others say of each."""
    metric, posterior, values = model.columns.metric, model.posterior, model.values
    back = np.exp if metric.log_scale else np.asarray
    line = back(values - beside_a_line(posterior.columns[:, 1], values)) if metric.prior else None
    known = known_of(corrected, model)
    return LeftOut(back(values), back(values - posterior.left_out), line, metric.log_scale, known)


def beside_a_line(x: FloatArray, y: FloatArray) -> FloatArray:
    """By how much each value differs from a straight line through all others, (n,)."""
    design = np.column_stack([np.ones(len(x)), x])
    hat = design @ np.linalg.pinv(design)
    return np.asarray((y - hat @ y) / np.maximum(1.0 - np.diag(hat), 1e-9))


def sentence(metric: Objective, figures: dict[str, object]) -> str:
    """The correction of one metric."""
    known = f" and {figures['known']} known results" if "known" in figures else ""
    left_out, noise = figures["left_out_rmse"], figures["noise"]
    assert isinstance(left_out, float)
    assert isinstance(noise, float)
    text = f"{metric.name}: {figures['evaluations']} evaluations{known}; left out, one is predicted to {size(metric, left_out)}"
    if metric.prior:
        alone, spread = figures["prior_alone_rmse"], figures["spread"]
        assert isinstance(alone, float)
        assert isinstance(spread, float)
        text += f", by {metric.prior} alone on a straight line to {size(metric, alone)}"
        text += ": it says little here" * (alone > LITTLE * spread)
    several = figures.get("priors_alone_rmse")
    if isinstance(several, dict):
        nearest = min(several, key=lambda name: several[name])
        text += f"; of {len(several)} laws {nearest} comes closest, {size(metric, several[nearest])}"
    return f"{text}; noise about {size(metric, noise)}."


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).mean()))


def section_of(problem: Problem, lessons: Lessons) -> ReportSection:
    """The section of an answer, with corrected.csv, learned.csv and corrected_picks.csv."""
    files: dict[str, Mapping[str, Any]] = {
        "corrected.csv": {**problem.architectures(lessons.genotypes).columns(), **lessons.columns}
    }
    files |= {"learned.csv": _columns_of_values(lessons.left_out)} if lessons.left_out else {}
    files |= {"corrected_picks.csv": _columns_of_picks(problem, lessons.picks)} if lessons.picks else {}
    section = ReportSection("What was learned", lessons.said, lessons.figures, files)
    return _shown(section, problem, lessons.picks)


def completed(section: ReportSection, folder: Path, problem: Problem) -> ReportSection:
    """The recorded sentences with the picks of the folder; a table that is missing or was altered is left out."""
    return _shown(section, problem, _picks(folder / "corrected_picks.csv", problem))


def _shown(section: ReportSection, problem: Problem, picks: tuple[CorrectedPick, ...]) -> ReportSection:
    """The section with the table of picks, where there are any."""
    rows = tuple(_row(pick, *_designs(problem, pick)) for pick in picks)
    table = (
        ReportTable("Picks of the whole space", HEADER, rows, _changed(problem, picks), EXPLAINED) if picks else None
    )
    return replace(section, table=table)


def _changed(problem: Problem, picks: tuple[CorrectedPick, ...]) -> tuple[str | Architectures, ...]:
    """How many answers differ from those of the formulas alone, and the first that does."""
    changed = [pick for pick in picks if pick.changed]
    verb = "differs" if len(changed) == 1 else "differ"
    text = f"Picks of the whole space (corrected_picks.csv): {len(changed)} of {len(picks)} {verb} from those of the formulas alone"
    if not changed:
        return (f"{text}.",)
    now, before = _designs(problem, changed[0])
    better = "" if (p := changed[0].better) is None else f", better with {chance(p)}"
    holds, held = map(chance, changed[0].holds)
    asked = changed[0].question[:1].upper() + changed[0].question[1:]
    expected = f" ({_expected(changed[0])}; holds with {holds}{better}) instead of "
    return f"{text}. {asked}: ", now, expected, before, f" (holds with {held})."


def _designs(problem: Problem, pick: CorrectedPick) -> tuple[Architectures, Architectures]:
    both = problem.architectures(pick.genotypes)
    return both[:1], both[1:]


def _expected(pick: CorrectedPick) -> str:
    """`loss 3.151, board:latency_ms 97.8 (95.1 to 100.6)`; what is known exactly has no ends."""
    return ", ".join(
        f"{name} {value:.4g}" + (f" ({low:.4g} to {high:.4g})" if low < high else "")
        for name, (value, low, high) in pick.expected.items()
    )


def _row(pick: CorrectedPick, now: Architectures, before: Architectures) -> tuple[str | Architectures, ...]:
    """An answer as a row of the table whose head is `HEADER`."""
    better = "" if pick.better is None else chance(pick.better)
    holds, held = map(chance, pick.holds)
    return pick.question, now, _expected(pick), holds, before if pick.changed else "the same", held, better


def _columns_of_picks(problem: Problem, picks: tuple[CorrectedPick, ...]) -> dict[str, Any]:
    """The answers as columns: the corrected design, what is expected of it, the formulas' design beside it."""
    genotypes = np.concatenate([pick.genotypes for pick in picks])
    designs = problem.architectures(genotypes)
    now, before = designs[np.arange(0, len(designs), 2)], designs[np.arange(1, len(designs), 2)]
    found: dict[str, Any] = {"question": [pick.question for pick in picks]}
    found |= {"changed": [int(pick.changed) for pick in picks], "evaluated": [int(pick.evaluated) for pick in picks]}
    found |= now.columns()
    for name in picks[0].expected:
        for place, ending in enumerate(("", "_low", "_high")):
            found[f"{name}{ending}"] = [pick.expected[name][place] for pick in picks]
    found |= {"holds": [pick.holds[0] for pick in picks], "analytic_holds": [pick.holds[1] for pick in picks]}
    found["better"] = [float("nan") if pick.better is None else pick.better for pick in picks]
    return found | {f"analytic_{name}": column for name, column in before.columns().items()}


def _columns_of_values(parts: Mapping[str, LeftOut]) -> dict[str, AnyArray | list[str]]:
    """A row per value that taught: its metric and scale, whether it was known before, and what all others say of it."""
    return {
        "metric": [name for name, part in parts.items() for _ in part.values],
        "scale": ["log" if part.log_scale else "linear" for part in parts.values() for _ in part.values],
        "known": np.concatenate([np.arange(len(part.values)) < part.known for part in parts.values()]).astype(np.int64),
        "value": np.concatenate([part.values for part in parts.values()]),
        "left_out": np.concatenate([part.expected for part in parts.values()]),
        "by_prior": np.concatenate(
            [np.full(len(p.values), np.nan) if p.by_prior is None else p.by_prior for p in parts.values()]
        ),
    }


def _picks(path: Path, problem: Problem) -> tuple[CorrectedPick, ...]:
    """The answers of the whole space; none where a design is not in it."""
    if not path.is_file():  # nor is a pipe waited for
        return ()
    with suppress(UsageError):
        (now, questions), (before, _) = read_candidates(path), read_candidates(path, "analytic_")
        keys = np.stack([problem.space.find(now), problem.space.find(before)], axis=1)
        if (keys >= 0).all():
            numbers = read_numbers(path)
            rows = zip(questions, keys, strict=True)
            return tuple(_pick(question, problem, of, numbers, row) for row, (question, of) in enumerate(rows))
    return ()


def _pick(
    question: str, problem: Problem, keys: IntArray, numbers: Mapping[str, FloatArray], row: int
) -> CorrectedPick:
    def number(name: str) -> float:
        return float(numbers[name][row]) if name in numbers else float("nan")

    expected = [name for name in numbers if {f"{name}_low", f"{name}_high"} <= set(numbers)]
    better = number("better")
    return CorrectedPick(
        question,
        problem.space.genotypes(keys),
        number("evaluated") == 1,
        {name: (number(name), number(f"{name}_low"), number(f"{name}_high")) for name in expected},
        (number("holds"), number("analytic_holds")),
        None if np.isnan(better) else better,
    )
