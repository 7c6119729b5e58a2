"""The fleet of least weighted loss within a total cost: branch and bound over the costs of its models, from the cheapest to the dearest.

Each model has a range of designs in the order of cost. A Lagrangian bound, of prices for the cases and for cost, rules out designs
of a range, and ranges; what few combinations are left are tried.
"""

import heapq
import time
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from plas_fleet.relaxation import Bound, Columns
from search_spaces.arrays import FloatArray, IntArray

STEPS = 80  # of the prices, per node
MOST_PAIRS = 500_000  # combinations that are held against the bound at once
MOST_TRIED = 200_000  # combinations whose loss is computed at once
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Node:
    """Per model the first design of its range and the one after its last; prices; the bound that they give."""

    low: IntArray
    high: IntArray
    prices: FloatArray
    price: float
    bound: float


@dataclass(eq=False)
class SlotSearch:
    """The search: columns by cost, after one that stands for no model; `best` and `limit` are the best fleet known and its value."""

    columns: Columns
    root: Bound
    best: IntArray
    limit: float
    deadline: float

    def __post_init__(self) -> None:
        order = np.argsort(self.columns.cost, kind="stable")
        nobody = np.full((1, self.columns.value.shape[1]), np.inf)
        self.rows = np.concatenate([[-1], order])
        self.value = np.concatenate([nobody, self.columns.value[order]])
        self.cost = np.concatenate([[0.0], self.columns.cost[order]])
        self.budget = self.columns.budget

    def run(self) -> float:
        """A bound that no fleet is below: the value of the best, or less where the deadline passed."""
        most, number = self.root.most, count()
        low, high = np.zeros(most, dtype=np.int64), np.full(most, len(self.cost))
        heap = [(self.root.least, next(number), Node(low, high, self.root.prices, self.root.price, self.root.least))]
        while heap and heap[0][0] < self._threshold:
            if time.monotonic() > self.deadline:
                return heap[0][0]
            node = self._bounded(heapq.heappop(heap)[2])
            if node is None or self._tried(node):
                continue
            for child in _halves(node):
                heapq.heappush(heap, (node.bound, next(number), child))
        return self.limit

    @property
    def _threshold(self) -> float:
        return self.limit - ROUNDING * abs(self.limit)

    def _bounded(self, node: Node) -> Node | None:
        """The node with better prices and narrower ranges; None where it holds nothing better than what is known."""
        now = best = self._affordable(node)
        if (now.low >= now.high).any():
            return None
        best = replace(best, bound=-np.inf)
        for _ in range(STEPS):
            reduced = self._reduced(now)
            chosen = self._cheapest(now, reduced)
            bound = self._base(now) + float(reduced[chosen - now.low[0]].sum())
            best = replace(now, bound=bound) if bound > best.bound else best
            self._offer(chosen)
            if best.bound >= self._threshold:
                return None
            now = self._priced(now, chosen, self.limit - bound)
        return self._narrowed(best)

    def _affordable(self, node: Node) -> Node:
        """Without designs that the cheapest others leave no room for; ranges in the order of cost."""
        low, high = np.maximum.accumulate(node.low), np.minimum.accumulate(node.high[::-1])[::-1]
        least = self.cost[np.minimum(low, len(self.cost) - 1)]
        room = np.searchsorted(self.cost, self.budget - (least.sum() - least), side="right")
        return replace(node, low=low, high=np.minimum(high, room))

    def _reduced(self, node: Node) -> FloatArray:
        """Reduced costs of designs from the first range's first to the last range's last."""
        rows = slice(int(node.low[0]), int(node.high[-1]))
        gain = np.maximum(node.prices - self.value[rows], 0.0).sum(axis=1)
        reduced: FloatArray = node.price * self.cost[rows] - gain
        return reduced

    def _base(self, node: Node) -> float:
        return float(node.prices.sum()) - node.price * self.budget

    def _cheapest(self, node: Node, reduced: FloatArray) -> IntArray:
        """Per model the design of least reduced cost in its range, (models,)."""
        first = int(node.low[0])
        places = [
            low + int(np.argmin(reduced[low - first : high - first]))
            for low, high in zip(node.low.tolist(), node.high.tolist(), strict=True)
        ]
        return np.array(places)

    def _priced(self, node: Node, chosen: IntArray, short: float) -> Node:
        """Prices after a step along the subgradient, as far as would close the gap."""
        uncovered = 1.0 - (self.value[chosen] < node.prices).sum(axis=0)
        over = float(self.cost[chosen].sum()) / self.budget - 1.0
        length = float((uncovered**2).sum()) + over**2
        if length == 0.0:
            return node
        step = max(short, 0.0) / length
        return replace(
            node,
            prices=node.prices + step * uncovered,
            price=max(0.0, node.price + step * over / self.budget),
        )

    def _offer(self, chosen: IntArray) -> None:
        """Take a fleet as the best known where it is."""
        if float(self.cost[chosen].sum()) > self.budget:
            return
        value = float(self.value[chosen].min(axis=0).sum())
        if value < self._threshold:
            self.best, self.limit = self.rows[np.unique(chosen[chosen > 0])], value

    def _survivors(self, node: Node, reduced: FloatArray) -> list[IntArray]:
        """Per model the designs that the bound does not rule out, ascending."""
        first, room = int(node.low[0]), self._threshold - node.bound
        parts = [reduced[a - first : b - first] for a, b in zip(node.low.tolist(), node.high.tolist(), strict=True)]
        return [
            low + np.flatnonzero(part - part.min() < room) for low, part in zip(node.low.tolist(), parts, strict=True)
        ]

    def _narrowed(self, node: Node) -> Node | None:
        """Ranges from the first to the last design that the bound does not rule out."""
        left = self._survivors(node, self._reduced(node))
        if any(len(rows) == 0 for rows in left):
            return None
        narrow = replace(node, low=np.array([r[0] for r in left]), high=np.array([r[-1] + 1 for r in left]))
        narrow = self._affordable(narrow)
        return None if (narrow.low >= narrow.high).any() else narrow

    def _tried(self, node: Node) -> bool:
        """Try every combination that the bound does not rule out; False where they are too many."""
        reduced = self._reduced(node)
        left, first = self._survivors(node, reduced), int(node.low[0])
        rest = np.array([float(reduced[rows - first].min()) if len(rows) else np.inf for rows in left])
        fleets = np.zeros((1, 0), dtype=np.int64)
        spent, cost = np.full(1, self._base(node)), np.zeros(1)
        for place, rows in enumerate(left):
            if len(spent) * len(rows) > MOST_PAIRS:
                return False
            total, dear = spent[:, None] + reduced[rows - first], cost[:, None] + self.cost[rows]
            able = (total + rest[place + 1 :].sum() < self._threshold) & (dear <= self.budget)
            if place:  # each fleet once: in the order of cost, none twice but that which stands for no model
                able &= (rows > fleets[:, -1:]) | (rows == 0)
            before, added = np.nonzero(able)
            fleets = np.concatenate([fleets[before], rows[added, None]], axis=1)
            spent, cost = total[before, added], dear[before, added]
        for start in range(0, len(fleets), MOST_TRIED):
            part = fleets[start : start + MOST_TRIED]
            values = self.value[part].min(axis=1).sum(axis=1)
            self._offer(part[np.argmin(values)])
        return True


def _halves(node: Node) -> list[Node]:
    """The node with the widest range cut in two; cheaper models stay before, dearer ones behind it."""
    place = int(np.argmax(node.high - node.low))
    middle = int(node.low[place] + node.high[place]) // 2
    below, above = node.high.copy(), node.low.copy()
    below[: place + 1] = np.minimum(below[: place + 1], middle)
    above[place:] = np.maximum(above[place:], middle)
    return [replace(node, high=below), replace(node, low=above)]
