"""What the models of expensive metrics learned, in words and as a table of the corrected frontier."""

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.search.strategy import Lessons
from nas.strategies._corrected import Corrected, Model
from nas.strategies._prior_columns import Designs
from search_spaces.arrays import AnyArray, FloatArray, IntArray

TAIL = 1.6448536269514722  # sds of a normal distribution beyond which 5 % lie
LITTLE = 0.9  # of the spread of a metric that its prior leaves


def lessons_of(corrected: Corrected, told: Evaluations, best: Designs, analytic: IntArray) -> Lessons:
    """Of each metric how well designs are predicted that were left out; of the corrected frontier what is expected.

    best: that frontier's designs; analytic: keys of the frontier before anything was told.
    """
    figures = {name: figures_of(model, told) for name, model in corrected.models.items()}
    said = [sentence(model.columns.metric, figures[name]) for name, model in corrected.models.items()]
    evaluated, before = np.isin(best.keys, told.keys), np.isin(best.keys, analytic)
    said.append(
        f"Corrected frontier (corrected.csv): {len(best):,} architectures, {int(before.sum()):,} of them on the analytic one "
        f"too, {int(evaluated.sum()):,} evaluated; the others are worth evaluating next."
    )
    columns: dict[str, AnyArray] = {"evaluated": evaluated.astype(np.int64), "analytic": before.astype(np.int64)}
    near = corrected.nearness(best, corrected.told)
    for model in corrected.models.values():
        columns |= expected(model, best, near)
    columns |= {name: column for name, column in best.known.items() if name not in columns}
    return Lessons(tuple(said), figures, best.genotypes, columns)


def expected(model: Model, designs: Designs, near: FloatArray) -> dict[str, FloatArray]:
    """The expected value of a metric under its name, and the ends between which one measurement lies with 90 %, each (k,).

    To six digits: further ones are those of the optimiser, not of the metric.
    """
    metric, mean, sd = model.columns.metric, model.mean(designs, near), model.sd(designs, near)
    ends = {metric.name: mean, f"{metric.name}_low": mean - TAIL * sd, f"{metric.name}_high": mean + TAIL * sd}
    values = {name: np.exp(column) if metric.log_scale else column for name, column in ends.items()}
    return {name: np.array([float(f"{value:.6g}") for value in column]) for name, column in values.items()}


def figures_of(model: Model, told: Evaluations) -> dict[str, object]:
    """How far designs that were left out are predicted, by the model and by the prior on a straight line; the noise; the spread."""
    metric, posterior = model.columns.metric, model.posterior
    values = metric.scaled(told.metrics[metric.name][told.ok])
    return {
        "prior": metric.prior or None,
        "evaluations": len(values),
        "scale": "log" if metric.log_scale else "linear",
        "left_out_rmse": _rms(posterior.left_out),
        "prior_alone_rmse": _rms(beside_a_line(posterior.columns[:, 1], values)) if metric.prior else None,
        "spread": float(values.std()),
        "noise": posterior.noise,
    }


def beside_a_line(x: FloatArray, y: FloatArray) -> FloatArray:
    """By how much each value differs from a straight line through all others, (n,)."""
    design = np.column_stack([np.ones(len(x)), x])
    hat = design @ np.linalg.pinv(design)
    found: FloatArray = (y - hat @ y) / np.maximum(1.0 - np.diag(hat), 1e-9)
    return found


def sentence(metric: Objective, figures: dict[str, object]) -> str:
    """What was learned of one metric."""
    said = f"{metric.name}: {figures['evaluations']} evaluations; left out, one is predicted to {_size(metric, figures['left_out_rmse'])}"
    if metric.prior:
        alone, spread = figures["prior_alone_rmse"], figures["spread"]
        assert isinstance(alone, float)
        assert isinstance(spread, float)
        said += f", by {metric.prior} alone on a straight line to {_size(metric, alone)}"
        said += ": it says little here" * (alone > LITTLE * spread)
    return f"{said}; noise about {_size(metric, figures['noise'])}."


def _size(metric: Objective, sd: object) -> str:
    assert isinstance(sd, float)
    return f"{100 * sd:.2g} %" if metric.log_scale else f"{sd:.2g}{' ' * bool(metric.unit)}{metric.unit}"


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).mean()))
