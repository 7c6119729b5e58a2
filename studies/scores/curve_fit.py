"""Fits curves to a table of scores, and judges them by laboratories left out."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from search_spaces.arrays import AnyArray, FloatArray
from studies.scores.curves import FamilyCurve, Scores, interval
from studies.scores.score_table import ScoreTable

FEWEST = 5  # models of a family
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Family:
    """Models that have every task of a family: their rows of the table, the mean score, the ends of it."""

    name: str
    tasks: list[str]
    rows: AnyArray
    score: FloatArray
    chance: float
    top: float


@dataclass(frozen=True)
class LeftOut:
    """A laboratory that was left out, predicted by the others: RMSE in the score's unit, that of the mean of the others and of the nearest of them in bits per byte.

    inside: share of its scores in the 90 % interval.
    """

    family: str
    laboratory: str
    models: int
    rmse: float
    mean_rmse: float
    nearest_rmse: float
    inside: float


def families_of(table: ScoreTable) -> list[Family]:
    """The families of a table, each with the models that have all of its tasks.

    Raises:
        ValueError: too few models, or all of one score.
    """
    found, faults = [], []
    for name, tasks in table.families.items():
        columns = np.array([table.scores[task] for task in tasks])
        rows = np.flatnonzero(np.isfinite(columns).all(axis=0))
        if len(np.unique(table.bits[rows])) < FEWEST:
            counted = f"{len(np.unique(table.bits[rows]))} of {len(table)}"
            faults.append(
                f"{name}: expected at least {FEWEST} models of different bits per byte with all of its tasks, got {counted}; add models, or leave out a task"
            )
            continue
        score = columns[:, rows].mean(axis=0)
        if np.ptp(score) == 0.0:
            faults.append(f"{name}: expected scores that differ, got {score[0]:g} in all models; leave it out")
            continue
        chance = float(np.mean([table.chance.get(task, 0.0) for task in tasks]))
        top = float(np.mean([table.top.get(task, 1.0) for task in tasks]))
        found.append(Family(name, tasks, rows, score, chance, top))
    if faults:
        raise ValueError("\n".join(faults))
    return found


def fitted(table: ScoreTable, name: str, seed: int) -> Scores:
    """The curves of a table; of a laboratory that it does not have where it has several, else of its own.

    Raises:
        ValueError: too few models.
    """
    several = len(set(table.laboratory.tolist())) > 1
    everything = np.ones(len(table), dtype=bool)
    curves = {each.name: _curve(each, table, everything, seed, new_laboratory=several) for each in families_of(table)}
    return Scores(
        name=name,
        text=table.text,
        centre=centre(table),
        fitted_on=(round(float(table.bits.min()), DIGITS), round(float(table.bits.max()), DIGITS)),
        models=len(table),
        laboratories=sorted(set(table.laboratory.tolist())),
        new_laboratory=several,
        families=curves,
        source=asdict(table.source),
    )


def centre(table: ScoreTable) -> float:
    """The mean of the table's bits per byte, b₀."""
    return round(float(table.bits.mean()), DIGITS)


def left_out(table: ScoreTable, seed: int) -> list[LeftOut]:
    """Each laboratory predicted by a fit to the others, family by family; none of one laboratory."""
    found, laboratories = [], sorted(set(table.laboratory.tolist()))
    for each in families_of(table):
        for laboratory in laboratories if len(laboratories) > 1 else []:
            own = table.laboratory[each.rows] == laboratory
            if own.any() and len(np.unique(table.bits[each.rows][~own])) >= FEWEST:
                found.append(_judged(each, table, laboratory, seed))
    return found


def _judged(family: Family, table: ScoreTable, laboratory: str, seed: int) -> LeftOut:
    out = table.laboratory == laboratory
    curve = _curve(family, table, ~out, seed, new_laboratory=True)
    own = out[family.rows]
    bits, score = table.bits[family.rows], family.score
    value, low, high = interval(curve, bits[own] - centre(table))
    nearest = np.abs(bits[own][:, None] - bits[~own]).argmin(axis=1)
    errors = (value - score[own], score[~own].mean() - score[own], score[~own][nearest] - score[own])
    model, mean, near = (float(np.sqrt((each**2).mean())) for each in errors)
    inside = float(((low <= score[own]) & (score[own] <= high)).mean())
    return LeftOut(family.name, laboratory, int(own.sum()), model, mean, near, inside)


def _curve(family: Family, table: ScoreTable, kept: AnyArray, seed: int, *, new_laboratory: bool) -> FamilyCurve:
    here = kept[family.rows]
    rows, span = family.rows[here], family.top - family.chance
    share = (family.score[here] - family.chance) / span
    draws = drawn(
        Rows(table.bits[rows] - centre(table), share, table.laboratory[rows]), seed, new_laboratory=new_laboratory
    )
    draws[:, 2] *= span
    return FamilyCurve(
        tasks=[task.partition(":")[2].strip() for task in family.tasks],
        chance=family.chance,
        top=family.top,
        models=len(rows),
        draws=[
            (round(a, DIGITS), round(b, DIGITS), max(round(c, DIGITS), 10.0**-DIGITS)) for a, b, c in draws.tolist()
        ],
    )


KEPT, WEIGHTED, ROUNDS = 256, 20_000, 4
BETWEEN = 0.5  # sd of the half-normal of τ, on the scale of σ's argument
LEVEL = 3.0
SLOPE = (float(np.log(5.0)), 1.5)  # of its logarithm: mean and sd
LEAST = 1e-3  # of the residual, as a share of the span: what scores of three digits are rounded to
DEGREES, WIDER = 5.0, 1.3  # of the t that proposes, and of its spread


@dataclass(frozen=True, eq=False)
class Rows:
    """Models of one family: bits per byte less b₀, scores as a share of chance to top, laboratory by number, (n,) each."""

    offset: FloatArray
    share: FloatArray
    laboratory: AnyArray


def drawn(rows: Rows, seed: int, *, new_laboratory: bool) -> FloatArray:
    """Level, slope and residual sd (of the share) of draws, (draws, 3); with `new_laboratory` each of one that the rows do not have."""
    rng = np.random.default_rng(seed)
    centre, spread = _mode(rows, new_laboratory)
    for size in (*[WEIGHTED // 5] * ROUNDS, WEIGHTED):
        points = _proposed(rng, centre, spread, size)
        weights = _weights(rows, points, centre, spread)
        centre = weights @ points
        kept = points - centre
        spread = (kept.T * weights) @ kept + 1e-8 * np.eye(len(centre))
    chosen = points[_systematic(rng, weights)]
    level = chosen[:, 0]
    if new_laboratory:
        level = level + np.exp(chosen[:, 3]) * rng.permutation(ndtri((np.arange(KEPT) + 0.5) / KEPT))
    return np.column_stack([level, np.exp(chosen[:, 1]), _residual(chosen[:, 2])])


def log_posterior(rows: Rows, points: FloatArray) -> FloatArray:
    """Logarithm of the density of α, ln s, ln ε and, where there is a fourth column, ln τ, (n,), up to a constant.

    With u the level of a laboratory, normal with sd τ, integrated out to first order about 0; studies/scores/design.md has form and priors.
    """
    alpha, log_slope, log_sd = points[:, :3].T[..., None]
    between = np.exp(points[:, [3]]) if points.shape[1] == 4 else np.zeros_like(alpha)
    share = 1.0 / (1.0 + np.exp(-(alpha - np.exp(log_slope) * rows.offset)))
    gradient, rest, variance = share * (1.0 - share), rows.share - share, _residual(log_sd) ** 2
    total = -0.5 * len(rows.share) * np.log(variance)
    for each in np.unique(rows.laboratory):
        own = rows.laboratory == each
        g, r = gradient[:, own], rest[:, own]
        gg, gr, rr = ((a * b).sum(axis=1, keepdims=True) for a, b in ((g, g), (g, r), (r, r)))
        shared = between**2 / (variance + between**2 * gg)
        total = total - 0.5 * (np.log1p(between**2 * gg / variance) + (rr - shared * gr**2) / variance)
    prior = -0.5 * ((alpha / LEVEL) ** 2 + ((log_slope - SLOPE[0]) / SLOPE[1]) ** 2)
    if points.shape[1] == 4:
        prior = prior - 0.5 * (between / BETWEEN) ** 2 + points[:, [3]]
    return np.asarray((total + prior)[:, 0])


def _residual(log_sd: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.exp(2.0 * log_sd) + LEAST**2))


def _mode(rows: Rows, new_laboratory: bool) -> tuple[FloatArray, FloatArray]:
    """The mode and the covariance there."""
    start = np.array([0.0, SLOPE[0], np.log(0.05), np.log(0.2)])[: 4 if new_laboratory else 3]

    def negative(point: FloatArray) -> float:
        bound = (
            0.5 * max(0.0, float(np.log(LEAST / 10)) - float(point[2])) ** 2
        )  # below it the residual is that of rounding alone
        return bound - float(log_posterior(rows, np.clip(point, -50.0, 50.0)[None])[0])

    found = minimize(negative, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-4, "fatol": 1e-6})
    return np.asarray(found.x), _covariance(negative, np.asarray(found.x))


def _covariance(negative: Callable[[FloatArray], float], at: FloatArray) -> FloatArray:
    """The inverse of the second differences, with variances between 1e-4 and 1."""
    n, step = len(at), 1e-2
    unit = step * np.eye(n)
    hessian = np.array(
        [
            [sum(a * b * negative(at + a * unit[i] + b * unit[j]) for a in (1, -1) for b in (1, -1)) for j in range(n)]
            for i in range(n)
        ]
    ) / (4 * step**2)
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    return np.asarray((vectors / np.clip(values, 1.0, 1e4)) @ vectors.T)


def _proposed(rng: np.random.Generator, centre: FloatArray, spread: FloatArray, size: int) -> FloatArray:
    """Points of a multivariate t."""
    normal = rng.standard_normal((size, len(centre))) @ np.linalg.cholesky(spread).T
    return centre + WIDER * normal * np.sqrt(DEGREES / rng.chisquare(DEGREES, (size, 1)))


def _weights(rows: Rows, points: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """Weights of proposed points, which add up to 1."""
    apart = points - centre
    squared = (apart @ np.linalg.inv(spread) * apart).sum(axis=1) / WIDER**2
    proposed = -0.5 * (DEGREES + len(centre)) * np.log1p(squared / DEGREES)
    with np.errstate(over="ignore"):
        logs = log_posterior(rows, np.clip(points, -50.0, 50.0)) - proposed
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _systematic(rng: np.random.Generator, weights: FloatArray) -> AnyArray:
    """Places of `KEPT` points, each as often as its weight says."""
    at = (np.arange(KEPT) + rng.uniform()) / KEPT
    return np.minimum(np.searchsorted(np.cumsum(weights), at), len(weights) - 1)
