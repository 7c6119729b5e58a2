"""How laboratories differ: coefficients of every table, normal about those of the population, from all tables at once.

Empirical Bayes: each table's coefficients by Gauss-Newton under the population's normal and Student's t residuals, then the population's mean and
covariance from these and their errors, in turns. A laboratory counts once, however many tables it has.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm

from nas.study.baselines import model_named
from objectives.loss_law.coverage import DesignKind, Region, ends_of
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from objectives.published_models import model_ids
from plas_fit.evidence.joint_form import (
    FORM,
    NAMES,
    REFERENCE,
    Quantities,
    Trainings,
    coefficients,
    excess,
    with_slopes,
)
from plas_fit.evidence.posterior import (
    BOUNDED,
    DRAWS,
    FREEDOM,
    LEAST_LEVEL,
    LEAST_SCALE,
    START,
    normal_points,
    predicted,
)
from plas_fit.fitting.law_file import covered, ranges_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

CENTRE = np.array(
    [np.log(0.12), np.log(0.3), -0.2, np.log(0.15), np.log(0.33), np.log(2.0), 0.0, np.log(0.015), 0.0, -0.02]
)
CENTRE_SD = np.array([0.5, 0.4, 0.5, 0.5, 0.4, 0.5, 0.04, 0.6, 0.03, 0.03])
APART_SD = np.array([0.15, 0.3, 0.4, 0.15, 0.3, 0.3, 0.04, 0.4, 0.03, 0.02])
SHARED_SD = 0.15  # of what all that a factor of parameters and of tokens is worth has in common: tokenizer and text
LABORATORIES = 4.0  # how many laboratories the prior of how they differ weighs
ROUNDS, STEPS, TRIES = 40, 12, 8
LONGEST_STEP = 0.5
TRIED = 64 * DRAWS  # points, of which those within the bounds are drawn


@dataclass(frozen=True, eq=False)
class TableFit:
    """A table's coordinates (k,), their covariance (k, k), the scale of its residuals and its groups' levels, in the law's nats."""

    theta: FloatArray
    covariance: FloatArray
    scale: float
    levels: FloatArray


@dataclass(frozen=True, eq=False)
class Population:
    """Laboratories: mean (k,) with its covariance (k, k), covariance between them (k, k), one design's misfit, nats.

    at_reference: loss at 10⁹ parameters and 10¹⁰ tokens, nats per token, and what texts and tokenizers make of it, its sd.
    bounds: least and greatest of the tables' own coordinates, an sd between laboratories about their mean at the least, (2, k).
    """

    mean: FloatArray
    mean_covariance: FloatArray
    between: FloatArray
    misfit: float
    at_reference: tuple[float, float]
    bounds: FloatArray

    @property
    def new(self) -> FloatArray:
        """Covariance of a laboratory's coordinates that is not among them, (k, k)."""
        return self.between + self.mean_covariance


def prior_between() -> FloatArray:
    """How laboratories differ before any is seen, (k, k)."""
    shared = np.zeros(len(NAMES))
    shared[[NAMES.index("ln S_N"), NAMES.index("ln S_D")]] = SHARED_SD
    return np.diag(APART_SD**2) + np.outer(shared, shared)


def population(tables: Sequence[Trainings]) -> Population:
    """The population that tables of trainings show, from the rows that are fitted.

    Raises:
        ValueError: no table has two of them.
    """
    fitted = [table[rows] for table in tables if len(rows := np.flatnonzero(table.fitted)) > 1]
    if not fitted:
        raise ValueError(
            "tables: expected trainings of 10 M parameters and 100 M tokens or more, got none; name another"
        )
    count = Counter(table.laboratory for table in fitted)
    weight = np.array([1.0 / count[table.laboratory] for table in fitted])
    before, of_mean = prior_between(), np.diag(CENTRE_SD**-2.0)
    mean, between = CENTRE, before
    known = [fit_table(table, mean, between) for table in fitted]
    for _ in range(ROUNDS):
        known = [fit_table(table, mean, between, each) for table, each in zip(fitted, known, strict=True)]
        theta, inverse = np.stack([each.theta for each in known]), np.linalg.inv(between)
        precision = weight.sum() * inverse + of_mean
        mean = np.linalg.solve(precision, inverse @ (weight @ theta) + of_mean @ CENTRE)
        apart = theta - mean
        spread = (weight[:, None] * apart).T @ apart + sum(
            w * each.covariance for w, each in zip(weight, known, strict=True)
        )
        between = (spread + LABORATORIES * before) / (weight.sum() + LABORATORIES)
    scales, sd = np.array([each.scale for each in known]), np.sqrt(np.diag(between))
    return Population(
        mean,
        np.linalg.inv(precision),
        between,
        float(np.exp(np.average(np.log(scales), weights=weight))),
        _at_reference(fitted, known, weight),
        np.stack([np.minimum(theta.min(axis=0), mean - sd), np.maximum(theta.max(axis=0), mean + sd)]),
    )


def _at_reference(tables: Sequence[Trainings], known: Sequence[TableFit], weight: FloatArray) -> tuple[float, float]:
    """Mean and sd of the loss at the form's reference over laboratories, of tables in nats per token."""
    kept = [i for i, table in enumerate(tables) if table.per == 1.0]
    at = [known[i].levels.mean() + excess(known[i].theta, REFERENCE)[0] for i in kept]
    middle = float(np.average(at, weights=weight[kept]))
    return middle, float(np.sqrt(np.average((np.array(at) - middle) ** 2, weights=weight[kept])))


def fit_table(table: Trainings, mean: FloatArray, between: FloatArray, start: TableFit | None = None) -> TableFit:
    """One table's coordinates and the scale of its residuals, nats of the law, under a normal of `mean` and `between`."""
    loss, inverse = table.loss / table.per, np.linalg.inv(between)
    theta, sigma = (mean, START) if start is None else (start.theta, start.scale)
    damping, free = 1e-3, max(len(table) - int(table.group.max()) - 1, 0)
    weight = np.ones(len(table))
    for step in range(STEPS if start is not None else 3 * STEPS):
        value, slope = with_slopes(theta, table.of)
        if step or start is not None:
            weight = _weights(_centred(weight, loss - value, table.group) / sigma)
        error, slope = _centred(weight, loss - value, table.group), _centred(weight, slope, table.group)
        if step > 2 or start is not None:
            sigma = float(np.sqrt((weight @ error**2 + 2 * LEAST_SCALE**2) / (free + 2)))
        curvature = (slope * weight[:, None]).T @ slope / sigma**2 + inverse
        gradient = (slope * weight[:, None]).T @ error / sigma**2 - inverse @ (theta - mean)

        def cost(at: FloatArray, weight: FloatArray = weight, sigma: float = sigma) -> float:
            off = _centred(weight, loss - excess(at, table.of), table.group)
            return float(weight @ off**2 / sigma**2 + (at - mean) @ inverse @ (at - mean))

        theta, damping = _step(cost, theta, curvature, gradient, damping)
    value, slope = with_slopes(theta, table.of)
    slope = _centred(weight, slope, table.group)
    covariance = np.linalg.inv((slope * weight[:, None]).T @ slope / sigma**2 + inverse)
    levels = np.bincount(table.group, weight * (loss - value)) / np.bincount(table.group, weight)
    return TableFit(theta, covariance, sigma, levels)


def _step(
    cost: Callable[[FloatArray], float], theta: FloatArray, curvature: FloatArray, gradient: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Levenberg and Marquardt's step that lowers the cost, with the damping after it; the same place where none is found."""
    before = cost(theta)
    for _ in range(TRIES):
        step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
        moved = theta + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if cost(moved) <= before:
            return moved, max(damping / 4.0, 1e-8)
        damping *= 8.0
    return theta, damping


def _weights(error: FloatArray) -> FloatArray:
    """Of residuals in scales: what Student's t gives each, (n,)."""
    weight: FloatArray = (FREEDOM + 1.0) / (FREEDOM + error**2)
    return weight


def _centred(weight: FloatArray, values: FloatArray, group: IntArray) -> FloatArray:
    """Values (n,) or (n, k) less their weighted mean in each group."""
    total = np.bincount(group, weight)
    if values.ndim == 1:
        centred: FloatArray = values - (np.bincount(group, weight * values) / total)[group]
        return centred
    return np.stack([_centred(weight, column, group) for column in values.T], axis=1)


TOKENS = np.log([1e10, 1e11, 1e12])  # for which designs of the tables are priced


def law_of(
    found: Population, widening: float, tables: Sequence[Trainings], tokens: float = 1e11, **said: object
) -> Law:
    """A law whose draws are of a new laboratory, `widening` times as far from the population's mean as laboratories lie; `said` are further fields.

    Its coefficients are those that give the mean of the draws, so that the design of the lowest loss is that of the least expected regret.
    """
    fitted = [each[np.flatnonzero(each.fitted)] for each in tables if each.fitted.any()]
    rows = [each.table for each in fitted]
    regions = {kind: with_usual(region, kind) for kind, region in covered(rows).items()}
    theta, losses = drawn_coordinates(found, widening)
    coordinates, loss = mean_of(theta, losses, [each.of for each in fitted])
    return Law.model_validate(
        {
            "form": FORM,
            "coefficients": dict(zip(FORM.coefficients, _row(coordinates, loss), strict=True)),
            "fitted_on": ranges_of(rows),
            "covers": {kind: region.model_dump() for kind, region in regions.items()},
            "tokens": tokens,
            "residual_sd": float(f"{widening * found.misfit:.4g}"),
            "draws": tuple(
                " ".join(f"{value:.9g}" for value in _row(*each)) for each in zip(theta, losses, strict=True)
            ),
            **said,
        }
    )


def mean_of(theta: FloatArray, at_reference: FloatArray, of: Sequence[Quantities]) -> tuple[FloatArray, float]:
    """Coordinates (k,) and loss at the reference of which the form gives the mean loss of draws (draws, k), (draws,), at the designs `of`."""
    columns = [np.concatenate(column) for column in zip(*(each.columns for each in of), strict=True)]
    designs = Quantities(*(np.tile(column, len(TOKENS)) for column in columns))
    designs = replace(designs, tokens=np.repeat(TOKENS - np.log(1e10), len(columns[0])))
    points = np.column_stack([theta, at_reference])
    mean = predicted(points, designs).mean(axis=0)
    spread = points.std(axis=0)
    start = points.mean(axis=0)

    def off(z: FloatArray) -> FloatArray:
        return np.asarray(predicted(start + z * spread, designs) - mean)

    best: FloatArray = least_squares(off, np.zeros(len(start))).x
    coordinates = start + best * spread
    return coordinates[:-1], float(coordinates[-1])


def drawn_coordinates(found: Population, widening: float) -> tuple[FloatArray, FloatArray]:
    """Coordinates of new laboratories (draws, k) and their losses at the reference (draws,), from scrambled Sobol points.

    Exponents and κ lie between those of the tables, and the loss at the reference above what a larger model could still gain: no loss
    is below 0 however large a model is.
    """
    normal = normal_points(len(NAMES) + 1, TRIED)
    apart = normal[:, :-1] @ np.linalg.cholesky(found.new).T
    theta = found.mean + widening * apart
    low, high = found.bounds[:, BOUNDED]
    inside = np.flatnonzero(((low <= theta[:, BOUNDED]) & (theta[:, BOUNDED] <= high)).all(axis=1))[:DRAWS]
    theta, (middle, sd) = theta[inside], found.at_reference
    gained = excess(theta, REFERENCE)[:, 0]
    below = norm.cdf((gained - middle) / max(sd, LEAST_SCALE))
    quantile = below + (1.0 - below) * norm.cdf(normal[inside, -1])
    drawn = middle + sd * norm.ppf(np.clip(quantile, 1e-9, 1 - 1e-9))
    return theta, np.maximum(drawn, gained + LEAST_LEVEL)


USUAL = ("head_dim", "kv_ratio", "ffn_ratio")  # what the law does not see
MIDDLE = (0.125, 0.875)  # of published models


def with_usual(region: Region, kind: DesignKind) -> Region:
    """The region with what three quarters of published models have of axes that the law does not see, in place of what its rows have."""
    models = [each for each in published() if (each.n_experts[0] > 1) == (kind == "sparse")]
    columns = {name: np.array([feature(each, name)[0] for each in models]) for name in USUAL}
    ranges = {name: ends for name, ends in region.ranges.items() if name not in USUAL}
    usual = {name: ends_of(np.quantile(values, MIDDLE)) for name, values in columns.items()}
    return region.model_copy(update={"ranges": ranges, "usual": usual})


@cache
def published() -> tuple[Architectures, ...]:
    """The shapes of published models."""
    return tuple(model_named(name).architecture for name in model_ids())


def _row(theta: FloatArray, at_reference: float) -> list[float]:
    """The form's coefficients in its order; the level is such that the loss at the reference is the given one."""
    found = coefficients(theta, at_reference - float(excess(theta, REFERENCE)[0]))
    return [float(f"{found[name]:.9g}") for name in FORM.coefficients]
