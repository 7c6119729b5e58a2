"""The fleet of least weighted loss among given designs: exact, by combinations that a Lagrangian bound does not rule out."""

import time
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from plas_fleet.relaxation import Bound, Columns, relaxed
from plas_fleet.slots import SlotSearch
from search_spaces.arrays import IntArray

FEW = 20_000  # combinations that are simply tried
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Choice:
    """Columns of the best fleet known, its value, and a bound that no fleet is below; `proved`: it is the best."""

    chosen: IntArray
    value: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no fleet is better."""
        return self.bound >= self.value - ROUNDING * abs(self.value)


NONE = Choice(np.zeros(0, dtype=np.int64), float("inf"), float("inf"))


def least_loss(columns: Columns, most: int, start: IntArray, deadline: float, cutoff: float = np.inf) -> Choice:
    """The best fleet of at most so many designs; `start` serves all cases within the budget, fleets of `cutoff` or more are of no use."""
    ideal = float(columns.value.min(axis=0).sum())
    known = improved(columns, most, start)
    if columns.total(known) <= ideal + ROUNDING:
        return Choice(known, columns.total(known), min(ideal, columns.total(known)))
    if sum(comb(len(columns), size) for size in range(1, most + 1)) <= FEW:
        return _tried(columns, most)
    bound = relaxed(columns, most, known)
    return _searched(columns, bound, known, deadline, cutoff)


def improved(columns: Columns, most: int, start: IntArray) -> IntArray:
    """A fleet that no single design added, or put in the place of one, makes better."""
    chosen, best = np.unique(start)[:most], columns.total(start)
    while True:
        candidates = [np.delete(chosen, place) for place in range(len(chosen))]
        candidates += [chosen] if len(chosen) < most else []
        found = [(*_with_one(columns, rest), i) for i, rest in enumerate(candidates)]
        value, design, i = min(found, default=(np.inf, 0, 0))
        if not value < best - ROUNDING:
            return chosen
        chosen, best = np.append(candidates[i], design), value


def _with_one(columns: Columns, rest: IntArray, among: IntArray | None = None) -> tuple[float, int]:
    """The least value of a fleet with one design more, and which it is."""
    rows = np.arange(len(columns)) if among is None else among
    if len(rows) == 0:
        return float("inf"), -1
    now = columns.value[rest].min(axis=0) if len(rest) else np.full(columns.value.shape[1], np.inf)
    values = np.minimum(now, columns.value[rows]).sum(axis=1)
    if np.isfinite(columns.budget):
        values = np.where(columns.cost[rest].sum() + columns.cost[rows] <= columns.budget, values, np.inf)
    best = int(np.argmin(values))
    return float(values[best]), int(rows[best])


def _tried(columns: Columns, most: int) -> Choice:
    """Every combination."""
    best, chosen = np.inf, NONE.chosen
    for size in range(1, most + 1):
        fleets = np.array(list(combinations(range(len(columns)), size)), dtype=np.int64).reshape(-1, size)
        values = columns.value[fleets].min(axis=1).sum(axis=1)
        values = np.where(columns.cost[fleets].sum(axis=1) <= columns.budget, values, np.inf)
        if len(values) and values.min() < best:
            best, chosen = float(values.min()), fleets[np.argmin(values)]
    return Choice(chosen, best, best)


def _searched(columns: Columns, bound: Bound, known: IntArray, deadline: float, cutoff: float) -> Choice:
    if np.isfinite(columns.budget):
        return _within_budget(columns, bound, known, deadline, cutoff)
    search = _Search(columns, bound, known, deadline, cutoff)
    done = search.run()
    value = columns.total(search.best)
    return Choice(search.best, value, min(value, search.limit if done else bound.least))


def _within_budget(columns: Columns, bound: Bound, known: IntArray, deadline: float, cutoff: float) -> Choice:
    search = SlotSearch(columns, bound, known, min(columns.total(known), cutoff), deadline)
    least = search.run()
    value = columns.total(search.best)
    return Choice(search.best, value, min(value, max(least, bound.least)))


class _Search:
    """Combinations in the order of their reduced costs, the last design of each by one look at all that are left."""

    def __init__(self, columns: Columns, bound: Bound, known: IntArray, deadline: float, cutoff: float) -> None:
        self.columns, self.bound, self.deadline = columns, bound, deadline
        self.best, self.limit = known, min(columns.total(known), cutoff)
        self.order = np.argsort(bound.reduced, kind="stable")
        self.reduced = bound.reduced[self.order]
        self.negative = np.concatenate([[0.0], np.cumsum(np.minimum(self.reduced, 0.0))])

    def run(self) -> bool:
        """Whether the search ended before the deadline."""
        return self._with(np.zeros(0, dtype=np.int64), 0.0, 0, self.bound.most)

    def _least(self, spent: float, start: int, left: int) -> float:
        """The bound of fleets with so much reduced cost that take at most so many from a place on."""
        end = min(start + left, len(self.reduced))
        return self.bound.base + spent + float(self.negative[end] - self.negative[start])

    def _with(self, chosen: IntArray, spent: float, start: int, left: int) -> bool:
        if (alone := self.columns.total(chosen)) < self._threshold:
            self.best, self.limit = chosen, alone
        if left == 1:
            return self._last(chosen, spent, start)
        for place in range(start, len(self.order)):
            if time.monotonic() > self.deadline:
                return False
            now = spent + self.reduced[place]
            if self._least(now, place + 1, left - 1) >= self._threshold:
                return True
            row = self.order[place]
            if self.columns.cost[chosen].sum() + self.columns.cost[row] > self.columns.budget:
                continue
            if not self._with(np.append(chosen, row), now, place + 1, left - 1):
                return False
        return True

    @property
    def _threshold(self) -> float:
        return self.limit - ROUNDING * abs(self.limit)

    def _last(self, chosen: IntArray, spent: float, start: int) -> bool:
        room = self._threshold - self.bound.base - spent
        end = int(np.searchsorted(self.reduced, room, side="left"))
        value, row = _with_one(self.columns, chosen, self.order[start:end])
        if value < self._threshold:
            self.best, self.limit = np.append(chosen, row), value
        return True
