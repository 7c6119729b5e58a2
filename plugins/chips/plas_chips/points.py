"""Pairs of a chip and an architecture that are known, and whether a point is behind them."""

from dataclasses import dataclass, fields

import numpy as np

from nas.exact.decomposition.dominance_lookup import SLACK, Bins
from nas.problem.evaluations import non_dominated
from plas_chips.cells import Levels
from search_spaces.arrays import BoolArray, FloatArray, IntArray

ONE_AXIS, SEVERAL = 1 << 14, 1 << 16  # cells of a level's table
RUN = 16_384  # pairs whose least values are kept together
ENOUGH = 500  # further pairs that are worth an update of a table


@dataclass(frozen=True, eq=False)
class Points:
    """Pairs as columns: objective values of the architecture (n, m), costs of the chip (n, k), place of the chip and key of the architecture, (n,)."""

    values: FloatArray
    costs: FloatArray
    chip: IntArray
    key: IntArray

    def __len__(self) -> int:
        return len(self.chip)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> "Points":
        return Points(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def joined(parts: list["Points"]) -> "Points":
        """The rows of all."""
        return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))

    def frontier(self) -> "Points":
        """The rows that no other dominates, each pair once, with all ties."""
        once = self[self._first_of_each()]
        return once[non_dominated(np.concatenate([once.values, once.costs], axis=1))]

    def _first_of_each(self) -> IntArray:
        order = np.lexsort((self.chip, self.key))
        chip, key = self.chip[order], self.key[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (chip[1:] != chip[:-1]) | (key[1:] != key[:-1])
        return order[new]


class Known:
    """Feasible pairs of which none dominates another, renewed when enough new ones wait; the axes of tables are those of
    the objective values `spans`, (n, m)."""

    def __init__(self, first: Points, spans: FloatArray) -> None:
        self.front, self.waiting = first.frontier(), list[Points]()
        least, most = spans.min(axis=0), spans.max(axis=0)
        self.kept = int(np.argmin((most - least) / np.maximum(np.abs(most), 1e-300)))
        others = [i for i in range(spans.shape[1]) if i != self.kept]
        side = ONE_AXIS if len(others) == 1 else int(SEVERAL ** (1 / max(len(others), 1)))
        self.bins = [(i, Bins(least[i], most[i], side)) for i in others]
        self._arrange()

    def _arrange(self) -> None:
        """Sort the front by its first cost; the cell of a table that each counts from, (n,), and the least of the kept value in each of the first so many."""
        if self.front.costs.shape[1]:
            self.front = self.front[np.argsort(self.front.costs[:, 0], kind="stable")]
        self.cells = cells_of(self.bins, self.front.values)
        least = np.full(int(np.prod([axis.count + 2 for _, axis in self.bins])), np.inf)
        self.least_of_first = [least]
        for start in range(0, len(self.front) - RUN, RUN):
            least = least.copy()
            rows = slice(start, start + RUN)
            np.minimum.at(least, self.cells[rows], _raised(self.front.values[rows, self.kept]))
            self.least_of_first.append(least)

    def add(self, points: Points) -> None:
        """Take pairs in."""
        if len(points):
            self.waiting.append(points)
        if sum(map(len, self.waiting)) > max(20_000, len(self.front) // 2):
            self.settle()

    def settle(self) -> Points:
        """All of them."""
        if self.waiting:
            self.front, self.waiting = Points.joined([self.front, *self.waiting]).frontier(), []
            self._arrange()
        return self.front

    def table(self, levels: Levels) -> "LevelTable":
        """What of them counts against chips of these levels."""
        table, front, runs, end = LevelTable(self.bins, self.kept, levels), self.front, 0, len(self.front)
        if levels.costs.shape[1]:
            cheapest, end = np.searchsorted(front.costs[:, 0], levels.costs[[0, -1], 0], side="right").tolist()
            runs = min(cheapest // RUN, len(self.least_of_first) - 1) if levels.costs.shape[1] == 1 else 0
        table.least[0].reshape(-1)[:] = self.least_of_first[runs]
        table.enter(front[runs * RUN : end], self.cells[runs * RUN : end])
        self.waiting = [Points.joined(self.waiting)] if len(self.waiting) > 1 else self.waiting
        table.take_in(self.waiting)
        return table


def cells_of(bins: list[tuple[int, Bins]], values: FloatArray) -> IntArray:
    """The cells of a level's table that points (n, m) count from, those after their own, (n,)."""
    cell = np.zeros(len(values), dtype=np.int64)
    for i, axis in bins:
        cell = cell * (axis.count + 2) + axis.index(_raised(values[:, i])) + 1
    return cell


def _raised(values: FloatArray) -> FloatArray:
    """Values that are larger by SLACK of their magnitude: who is beyond them is beyond by so much."""
    raised: FloatArray = values * (1.0 + np.copysign(SLACK, values))
    return raised


class LevelTable:
    """The least value of one objective among pairs in strictly smaller bins of the others, on chips no dearer than a level.

    What it calls behind is dominated: by a pair that costs no more and is better in every objective of architectures.
    """

    def __init__(self, bins: list[tuple[int, Bins]], kept: int, levels: Levels) -> None:
        self.bins, self.kept, self.levels = bins, kept, levels
        self.least = np.full([len(levels.memory_gb), *([axis.count + 2 for _, axis in bins] or [1])], np.inf)
        self.later, self.waiting = list[Points](), 0

    def add(self, points: Points) -> None:
        """Take in further pairs, when there are enough of them."""
        self.later.append(points)
        self.waiting += len(points)
        if self.waiting > ENOUGH:
            self.take_in(self.later)
            self.later, self.waiting = [], 0

    def take_in(self, parts: list[Points]) -> None:
        """Take in pairs at once."""
        for points in [Points.joined(parts)] if len(parts) > 1 else parts:
            self.enter(points, cells_of(self.bins, points.values))
        for axis in range(1, self.least.ndim):
            np.minimum.accumulate(self.least, axis=axis, out=self.least)
        for cheaper, dearer in zip(self.least[:-1], self.least[1:], strict=True):
            np.minimum(dearer, cheaper, out=dearer)

    def enter(self, points: Points, cells: IntArray) -> None:
        """Enter pairs at their own level and cell, no dearer level and later cell yet."""
        level = np.zeros(len(points), dtype=np.int64)
        for limits, costs in zip(self.levels.costs.T, points.costs.T, strict=True):
            np.maximum(level, np.searchsorted(limits, costs, side="left"), out=level)
        rows = np.flatnonzero(level < len(self.least))
        flat = self.least.reshape(-1)
        np.minimum.at(
            flat, level[rows] * (flat.size // len(self.least)) + cells[rows], _raised(points.values[rows, self.kept])
        )

    def behind(self, values: list[FloatArray], level: IntArray | int) -> BoolArray:
        """Which points (objective by objective, each (n,)) of chips of these levels are beaten, by more than SLACK in every objective."""
        cell = level
        for (i, axis), side in zip(self.bins, self.least.shape[1:], strict=False):
            cell = cell * side + axis.index(values[i])
        behind: BoolArray = self.least.reshape(-1).take(cell) < values[self.kept]
        return behind
