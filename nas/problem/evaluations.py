"""Evaluated architectures as columns, and the rule of dominance applied to them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Self

import moocore
import numpy as np

from nas.problem.objective import Budget, Objective
from search_spaces.arrays import BoolArray, FloatArray, IntArray, brief


@brief
@dataclass(frozen=True, eq=False)
class Evaluations:
    """Genotypes with their metrics; a failed row has a reason, and NaN for what could not be evaluated.

    genotypes (n, g), keys (n,), metrics name → (n,), reasons (n,) of str ("" is evaluated).
    """

    genotypes: IntArray
    keys: IntArray
    metrics: dict[str, FloatArray]
    reasons: tuple[str, ...] | None
    objectives: tuple[str, ...]
    budgets: tuple[Budget, ...]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def values(self) -> FloatArray:
        """Objective values, (n, m), all minimised; NaN where failed."""
        values = np.stack([self.metrics[name] for name in self.objectives], axis=1)
        return values if self.reasons is None else np.where(self.ok[:, None], values, np.nan)

    @property
    def first(self) -> dict[str, float]:
        """The metrics of the first row, by name."""
        return {name: float(column[0]) for name, column in self.metrics.items()}

    @property
    def violations(self) -> FloatArray:
        """value/limit − 1 per budget, (n, budgets); feasible at ≤ 0."""
        columns = [budget.violation(self.metrics[budget.metric]) for budget in self.budgets]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0))

    @property
    def ok(self) -> BoolArray:
        """Which rows were evaluated without failing."""
        if self.reasons is None:
            return np.ones(len(self), dtype=bool)
        return np.fromiter((not reason for reason in self.reasons), dtype=bool, count=len(self))

    @property
    def feasible(self) -> BoolArray:
        """Evaluated and within every budget."""
        within: BoolArray = (self.violations <= 0.0).all(axis=1) & self.ok
        return within

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Self:
        metrics = {name: column[rows] for name, column in self.metrics.items()}
        reasons = self.reasons
        if reasons is not None:
            reasons = reasons[rows] if isinstance(rows, slice) else tuple(np.asarray(reasons, dtype=object)[rows])
        return type(self)(self.genotypes[rows], self.keys[rows], metrics, reasons, self.objectives, self.budgets)


def distinct(parts: Iterable[Evaluations]) -> Evaluations:
    """The rows of all parts, in order, each architecture once; of one part at least."""
    rows = reduce(joined, parts)
    return rows[np.sort(np.unique(rows.keys, return_index=True)[1])]


def joined(first: Evaluations, second: Evaluations) -> Evaluations:
    """The rows of both."""
    metrics = {name: np.concatenate([first.metrics[name], second.metrics[name]]) for name in first.metrics}
    genotypes, keys = (
        np.concatenate(pair) for pair in ((first.genotypes, second.genotypes), (first.keys, second.keys))
    )
    reasons = None
    if first.reasons is not None or second.reasons is not None:
        reasons = (first.reasons or ("",) * len(first)) + (second.reasons or ("",) * len(second))
    return Evaluations(genotypes, keys, metrics, reasons, first.objectives, first.budgets)


def crowding_distance(values: FloatArray) -> FloatArray:
    """Mean over objectives of the distance between both neighbours, as a share of the range, (n,); inf at the ends.

    An objective that is the same for all adds nothing. Source: Deb et al. 2002, III.B; to the last bit pymoo's.
    """
    n, m = values.shape
    if n <= 2:
        return np.full(n, np.inf)
    order, column = values.argsort(axis=0, kind="stable"), np.arange(m)
    ordered = values[order, column]
    span = ordered[-1] - ordered[0]
    gaps = np.full((n + 1, m), np.inf)
    gaps[1:-1] = ordered[1:] - ordered[:-1]
    gaps = np.where(span > 0, gaps / np.where(span > 0, span, 1.0), 0.0)
    around = np.empty((n, m))
    around[order, column] = gaps[:-1] + gaps[1:]
    found: FloatArray = around.sum(axis=1) / m
    return found


DIGITS = 12
TINY = 1e-200
BLOCK = 131_072


def rounded(values: FloatArray) -> FloatArray:
    """Values to 12 significant digits, same shape; equal quantities computed in another order become equal."""
    boost = np.where(np.abs(values) < TINY, 1.0 / TINY, 1.0)  # else the scale of tiny values would overflow
    boosted = values * boost
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log10(np.abs(boosted)))
    exponent = np.where(np.isfinite(exponent), exponent, 0.0)
    scale = 10.0 ** (DIGITS - 1 - exponent)
    result: FloatArray = np.round(boosted * scale) / scale / boost
    return result


def non_dominated(values: FloatArray, *, exact: bool = False) -> IntArray:
    """Rows of (n, m) that no other dominates, ascending; equal rows are all kept. `exact`: values are compared as they are.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError("values: expected finite objectives, got NaN or infinity; leave failed rows out")
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    comparable = values if exact else rounded(values)
    if comparable.shape[1] == 1:
        return np.flatnonzero(comparable[:, 0] == comparable.min())
    return np.flatnonzero(moocore.is_nondominated(comparable, keep_weakly=True))


def frontier_rows(evaluations: Evaluations) -> IntArray:
    """Rows of the feasible non-dominated architectures, sorted by the objectives, then by genotype.

    In blocks: what a block dominates is gone before the next one, so that millions of rows take little memory.
    """
    rows: IntArray = np.zeros(0, dtype=np.int64)
    for start in range(0, len(evaluations), BLOCK):
        feasible = start + np.flatnonzero(evaluations[start : start + BLOCK].feasible)
        rows = np.concatenate([rows, feasible])
        rows = rows[non_dominated(objective_values(evaluations, rows))]
    values = rounded(objective_values(evaluations, rows))
    order = np.lexsort((evaluations.keys[rows], *values.T[::-1]))
    return rows[order]


def objective_values(evaluations: Evaluations, rows: IntArray) -> FloatArray:
    """Objective values of some rows, (k, m)."""
    return np.stack([evaluations.metrics[name][rows] for name in evaluations.objectives], axis=1)


REFERENCE = 1.1
DIRECTIONS = 20_000  # of the approximation
EXACT_POINTS = {4: 20_000, 5: 20_000, 6: 1_000, 7: 300, 8: 100, 9: 60, 10: 40}
"""By objectives: points beyond which an exact hypervolume may take more than seconds; three take any, eleven and more none."""
APPROXIMATE = "approximate (moocore.hv_approx, error about 1e-3; of six objectives and more up to 1e-2)"


@dataclass(frozen=True, eq=False)
class Scale:
    """Each objective on its own scale (log or linear), the best value at 0 and the worst at 1."""

    objectives: tuple[Objective, ...]
    best: FloatArray
    worst: FloatArray

    @classmethod
    def from_frontier(cls, objectives: tuple[Objective, ...], values: FloatArray) -> "Scale":
        """The scale whose ends are the extremes of a frontier's values (n, m), n at least 1.

        Args:
            objectives: of the columns, in order.
            values: (n, objectives), in their units.
        """
        scaled = on_scale(objectives, values)
        return cls(objectives, scaled.min(axis=0), scaled.max(axis=0))

    def normalise(self, values: FloatArray) -> FloatArray:
        """Values (n, m) with this scale's best at 0 and worst at 1; an objective with best = worst by 1.

        Args:
            values: (n, objectives), in their units.
        """
        extent = self.worst - self.best
        normalised: FloatArray = (on_scale(self.objectives, values) - self.best) / np.where(extent > 0, extent, 1.0)
        return normalised

    def hypervolume(self, values: FloatArray, *, approximate: bool = False) -> float:
        """Volume dominated within the reference point 1.1 in every objective; 0 of nothing.

        Args:
            values: (n, objectives), in their units.
            approximate: by sampling, for many points of many objectives.
        """
        if len(values) == 0:
            return 0.0
        return volume(self.normalise(values), np.full(len(self.objectives), REFERENCE), approximate=approximate)

    def described(self) -> dict[str, object]:
        """Bounds in the objectives' own units, scale and reference, as shown with every figure."""
        return {
            o.name: {
                "scale": "log" if o.log_scale else "linear",
                "best": _back(o, low),
                "worst": _back(o, high),
                "reference": REFERENCE,
            }
            for o, low, high in zip(self.objectives, self.best, self.worst, strict=True)
        }


def volume(points: FloatArray, reference: FloatArray, *, approximate: bool) -> float:
    """Hypervolume of points (n, m) within a reference point (m,), as they are; 0 of none."""
    if len(points) == 0:
        return 0.0
    if approximate:
        return float(moocore.hv_approx(points, ref=reference, nsamples=DIRECTIONS, seed=0))
    return float(moocore.hypervolume(points, ref=reference))


def too_many(values: FloatArray) -> bool:
    """Whether the hypervolume of so many points (n, m) is approximated."""
    return values.shape[1] > 3 and len(values) > EXACT_POINTS.get(values.shape[1], 0)


def on_scale(objectives: tuple[Objective, ...], values: FloatArray) -> FloatArray:
    """Values (n, m) on the scales of their objectives, on which results are measured: logarithms, or as they are."""
    return np.stack([o.scaled(column) for o, column in zip(objectives, values.T, strict=True)], axis=1)


def _back(objective: Objective, value: float) -> float:
    return float(np.exp(value)) if objective.log_scale else float(value)


@dataclass(frozen=True)
class Distance:
    """How far a found frontier is from the exact one."""

    gap: float
    share: float
    found: int
    exact: int
    igd_plus: float
    epsilon: float


def distance(scale: Scale, found: FloatArray, exact: FloatArray, common: int) -> Distance:
    """Gap = 1 − HV(found)/HV(exact), share of the exact frontier found (`common` of it), IGD+, epsilon."""
    rough = too_many(exact) or too_many(found)
    gap = 1.0 - scale.hypervolume(found, approximate=rough) / scale.hypervolume(exact, approximate=rough)
    if len(found) == 0:
        return Distance(1.0, 0.0, 0, len(exact), float("inf"), float("inf"))
    a, b = scale.normalise(found), scale.normalise(exact)
    igd, epsilon = float(moocore.igd_plus(a, ref=b)), float(moocore.epsilon_additive(a, ref=b))
    return Distance(max(gap, 0.0), common / len(exact), common, len(exact), igd, max(epsilon, 0.0))
