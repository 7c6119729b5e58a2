"""The fleet of least weighted loss among given designs: exact, by combinations that a Lagrangian bound does not rule out.

`value` is the weighted loss of each design in each case, (n, cases), ∞ where it does not fit.
"""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from search_spaces.arrays import FloatArray, IntArray

FEW = 20_000  # combinations that are simply tried
ROUNDS = 60
ADDED = 40  # designs that a round of the relaxation adds
ROUNDING = 1e-12


def total(value: FloatArray, chosen: IntArray) -> float:
    """The weighted loss of a fleet; ∞ of none, or where a case is not served."""
    return float(value[chosen].min(axis=0).sum()) if len(chosen) else float("inf")


def least_loss(value: FloatArray, most: int, start: IntArray) -> IntArray:
    """The rows of the best fleet of at most so many designs; `start` is one that serves all cases."""
    known = improved(value, most, start)
    if total(value, known) <= float(value.min(axis=0).sum()) + ROUNDING:
        return known
    if sum(comb(len(value), size) for size in range(1, most + 1)) <= FEW:
        return _tried(value, most)
    search = _Search(value, known, most)
    search.run(np.zeros(0, dtype=np.int64), 0.0, 0, most)
    return search.best


def improved(value: FloatArray, most: int, start: IntArray) -> IntArray:
    """A fleet that no single design added, or put in the place of one, makes better."""
    chosen, best = np.unique(start)[:most], total(value, start)
    while True:
        candidates = [np.delete(chosen, place) for place in range(len(chosen))]
        candidates += [chosen] if len(chosen) < most else []
        found = [(*_with_one(value, rest, np.arange(len(value))), i) for i, rest in enumerate(candidates)]
        lowest, design, i = min(found)
        if not lowest < best - ROUNDING:
            return chosen
        chosen, best = np.append(candidates[i], design), lowest


def _with_one(value: FloatArray, rest: IntArray, among: IntArray) -> tuple[float, int]:
    """The least value of a fleet with one design more, and which it is."""
    if len(among) == 0:
        return float("inf"), -1
    now = value[rest].min(axis=0, initial=np.inf)
    values = np.minimum(now, value[among]).sum(axis=1)
    best = int(np.argmin(values))
    return float(values[best]), int(among[best])


def _tried(value: FloatArray, most: int) -> IntArray:
    """Every combination."""
    best, chosen = np.inf, np.zeros(0, dtype=np.int64)
    for size in range(1, min(most, len(value)) + 1):
        fleets = np.array(list(combinations(range(len(value)), size)), dtype=np.int64)
        values = value[fleets].min(axis=1).sum(axis=1)
        if values.min() < best:
            best, chosen = float(values.min()), fleets[np.argmin(values)]
    return chosen


class _Search:
    """Combinations in the order of their reduced costs, the last design of each by one look at all that are left."""

    def __init__(self, value: FloatArray, known: IntArray, most: int) -> None:
        self.value, self.best, self.limit = value, known, total(value, known)
        self.base, reduced = relaxed(value, most, known)
        self.order = np.argsort(reduced, kind="stable")
        self.reduced = reduced[self.order]
        self.negative = np.concatenate([[0.0], np.cumsum(np.minimum(self.reduced, 0.0))])

    def run(self, chosen: IntArray, spent: float, start: int, left: int) -> None:
        """Better fleets with these designs, of so much reduced cost, and at most so many more from a place on."""
        self._offer(chosen, total(self.value, chosen))
        if left == 1:
            end = int(np.searchsorted(self.reduced, self._threshold - self.base - spent, side="left"))
            value, row = _with_one(self.value, chosen, self.order[start:end])
            self._offer(np.append(chosen, row), value)
            return
        for place in range(start, len(self.order)):
            now = spent + self.reduced[place]
            end = min(place + left, len(self.reduced))
            if self.base + now + float(self.negative[end] - self.negative[place + 1]) >= self._threshold:
                return
            self.run(np.append(chosen, self.order[place]), now, place + 1, left - 1)

    @property
    def _threshold(self) -> float:
        return self.limit - ROUNDING * abs(self.limit)

    def _offer(self, chosen: IntArray, value: float) -> None:
        if value < self._threshold:
            self.best, self.limit = chosen, value


def relaxed(value: FloatArray, most: int, start: IntArray) -> tuple[float, FloatArray]:
    """The best bound of linear programs over ever more designs: base and reduced costs (n,).

    The base and the reduced costs of a fleet's designs add up to no more than its weighted loss: of any prices u of the cases,
    ∑u + ∑ −∑ max(0, u − value) is such a bound. `start` holds a fleet that serves all cases.
    """
    inside = np.unique(start)
    base, reduced = _bound(value, value.min(axis=0))
    for _ in range(ROUNDS):
        prices = _prices(value[inside], most)
        if prices is None:
            break
        now, costs = _bound(value, prices)
        if _least(now, costs, most) > _least(base, reduced, most):
            base, reduced = now, costs
        outside = np.setdiff1d(np.argsort(costs, kind="stable")[: ADDED + len(inside)], inside)
        if not (costs[outside] < min(0.0, float(costs[inside].min())) - ROUNDING).any():
            break
        inside = np.union1d(inside, outside)
    return base, reduced


def _bound(value: FloatArray, prices: FloatArray) -> tuple[float, FloatArray]:
    return float(prices.sum()), -np.maximum(prices - value, 0.0).sum(axis=1)


def _least(base: float, reduced: FloatArray, most: int) -> float:
    return base + float(np.minimum(np.sort(reduced)[:most], 0.0).sum())


def _prices(value: FloatArray, most: int) -> FloatArray | None:
    """Prices of cases from the linear program over some designs; None where it has no solution.

    It is solved in shares of the largest difference of a case, so that its tolerances are small beside what differs.
    """
    least = value.min(axis=0)
    design, case = np.nonzero(np.isfinite(value))
    above = value[design, case] - least[case]
    scale = float(above.max(initial=0.0)) or 1.0
    n, served, ones = len(value), np.arange(len(design)), np.ones(len(design))
    rows = np.concatenate([served, served, np.full(n, len(design))])
    places = np.concatenate([n + served, design, np.arange(n)])
    limits: Any = coo_array((np.concatenate([ones, -ones, np.ones(n)]), (rows, places))).tocsr()
    each: Any = coo_array((ones, (case, n + served)), shape=(value.shape[1], n + len(design))).tocsr()
    most_of = np.append(np.zeros(len(design)), most)
    weights = np.append(np.zeros(n), above / scale)
    found = linprog(weights, limits, most_of, each, np.ones(value.shape[1]), method="highs")
    return least + scale * np.asarray(found.eqlin.marginals) if found.status == 0 else None
