"""The reference that runs are measured against: the exact frontier or the union of all runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.problem.evaluations import Distance, Scale, distance, non_dominated, too_many
from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray, IntArray

EXACT, UNION = "exact frontier", "union of all runs"
BUDGETS = 20


@dataclass(frozen=True, eq=False)
class Reference:
    """A frontier with the scale it spans; values (n, m), keys (n,), n at least 1."""

    source: str
    scale: Scale
    values: FloatArray
    keys: IntArray

    def distance(self, values: FloatArray, keys: IntArray) -> Distance:
        """Gap, share, IGD+ and epsilon of a found frontier, as a run's summary has them."""
        return distance(self.scale, values, self.values, int(np.isin(self.keys, keys).sum()))

    def gap(self, values: FloatArray) -> float:
        """1 − HV(found)/HV(reference), at least 0; both approximated where one has too many points, as in `distance`."""
        rough = too_many(self.values) or too_many(values)
        return max(1.0 - self.scale.hypervolume(values, approximate=rough) / self._volume(approximate=rough), 0.0)

    def _volume(self, *, approximate: bool) -> float:
        if approximate not in self._volumes:
            self._volumes[approximate] = self.scale.hypervolume(self.values, approximate=approximate)
        return self._volumes[approximate]

    @cached_property
    def _volumes(self) -> dict[bool, float]:
        return {}

    @cached_property
    def picked(self) -> int:
        """The objective that picks minimise: the loss or a quantile of it, else the first."""
        names = [objective.name.partition("@")[0] for objective in self.scale.objectives]
        return names.index("loss") if "loss" in names else 0

    @cached_property
    def budgets(self) -> list[tuple[int, FloatArray, FloatArray]]:
        """Per budgeted objective its index, a grid of budgets, and the best picked value within each.

        Twenty budgets from just above the reference's best value to its worst, evenly spaced on the
        objective's scale: within the tightest one there is something, and the loosest holds everything.
        """
        others = [i for i in range(self.values.shape[1]) if i != self.picked] or [self.picked]
        grids = [(i, np.unique(self._grid(i))) for i in others]
        return [(i, grid, best_within(self.values, self.picked, i, grid)) for i, grid in grids]

    def _grid(self, objective: int) -> FloatArray:
        low, high = self.scale.best[objective], self.scale.worst[objective]
        points = low + (high - low) * np.arange(1, BUDGETS + 1) / BUDGETS
        points[-1] = high
        limits: FloatArray = np.exp(points) if self.scale.objectives[objective].log_scale else points
        above: FloatArray = np.maximum(limits, self.values[:, objective].min()) * (1 + 1e-12 * np.sign(limits))
        return above

    def regret(self, values: FloatArray) -> float:
        """The largest excess of the pick over the best possible one among all budgets; infinite where nothing fits one."""
        worst = 0.0
        for objective, grid, best in self.budgets:
            worst = max(worst, float((best_within(values, self.picked, objective, grid) - best).max()))
        return worst


def best_within(values: FloatArray, picked: int, budgeted: int, limits: FloatArray) -> FloatArray:
    """Lowest picked value within each limit of the budgeted objective, (limits,); infinite where nothing fits."""
    if len(values) == 0:
        return np.full(len(limits), np.inf)
    order = np.argsort(values[:, budgeted], kind="stable")
    lowest = np.minimum.accumulate(values[order, picked])
    count = np.searchsorted(values[order, budgeted], limits, side="right")
    return np.where(count > 0, lowest[np.maximum(count - 1, 0)], np.inf)


def exact_reference(objectives: tuple[Objective, ...], values: FloatArray, keys: IntArray) -> Reference | None:
    """The exact frontier as a reference; none of an empty one."""
    return Reference(EXACT, Scale.from_frontier(objectives, values), values, keys) if len(values) else None


def union(objectives: tuple[Objective, ...], fronts: Sequence[tuple[FloatArray, IntArray]]) -> Reference | None:
    """The frontier of everything that all runs found, a design counted once; none when nothing is feasible."""
    values = np.concatenate([front for front, _ in fronts] or [np.zeros((0, len(objectives)))])
    keys = np.concatenate([key for _, key in fronts] or [np.zeros(0, dtype=np.int64)])
    first = np.sort(np.unique(keys, return_index=True)[1])
    values, keys = values[first], keys[first]
    kept = non_dominated(values)
    if len(kept) == 0:
        return None
    return Reference(UNION, Scale.from_frontier(objectives, values[kept]), values[kept], keys[kept])
