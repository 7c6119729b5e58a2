"""Hypervolume, gap, IGD+ and additive epsilon on one stated scale (moocore computes them)."""

from dataclasses import dataclass

import moocore
import numpy as np

from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray

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
        """The scale whose ends are the extremes of a frontier's values (n, m), n at least 1."""
        scaled = _on_scale(objectives, values)
        return cls(objectives, scaled.min(axis=0), scaled.max(axis=0))

    def normalise(self, values: FloatArray) -> FloatArray:
        """Values (n, m) with this scale's best at 0 and worst at 1; an objective with best = worst by 1."""
        extent = self.worst - self.best
        normalised: FloatArray = (_on_scale(self.objectives, values) - self.best) / np.where(extent > 0, extent, 1.0)
        return normalised

    def hypervolume(self, values: FloatArray, *, approximate: bool = False) -> float:
        """Volume dominated within the reference point 1.1 in every objective; 0 of nothing."""
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


def _on_scale(objectives: tuple[Objective, ...], values: FloatArray) -> FloatArray:
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
