"""Results of the models of expensive metrics: in words and as files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.search.strategy import ReportSection
from plas_prior.corrected import Corrected, Model, size
from plas_prior.prior_columns import Designs
from search_spaces.arrays import AnyArray, FloatArray, IntArray

LITTLE = 0.9  # of the spread of a metric that its prior leaves
TAIL = 1.6448536269514722  # sds of a normal distribution beyond which 5 % lie


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
    learned from, by metric.
    """

    said: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Any]]
    genotypes: IntArray
    columns: Mapping[str, AnyArray]
    left_out: Mapping[str, LeftOut]


def lessons_of(corrected: Corrected, told: Evaluations, best: Designs, analytic: IntArray) -> Lessons:
    """Of each metric how well designs are predicted that were left out; of the whole space what is expected.

    best: the corrected frontier's; analytic: keys of the frontier before anything was told.
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
    return Lessons(tuple(lines), figures, best.genotypes, columns, left_out)


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
    """The section of an answer, with corrected.csv and learned.csv."""
    files: dict[str, Mapping[str, Any]] = {
        "corrected.csv": {**problem.architectures(lessons.genotypes).columns(), **lessons.columns}
    }
    files |= {"learned.csv": _columns_of_values(lessons.left_out)} if lessons.left_out else {}
    return ReportSection("What was learned", lessons.said, lessons.figures, files)


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
