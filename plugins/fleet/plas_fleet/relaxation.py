"""Lower bounds on the weighted loss of a fleet: the linear relaxation's duals, held against every design."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from search_spaces.arrays import FloatArray, IntArray

ROUNDS = 60
ADDED = 40  # designs that a round adds
CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Columns:
    """Designs as columns: weighted loss per case, (n, cases), ∞ where a case's limits are not met; cost, (n,), and what it may add up to."""

    value: FloatArray
    cost: FloatArray
    budget: float = np.inf

    def __len__(self) -> int:
        return len(self.cost)

    def total(self, chosen: Sequence[int] | IntArray) -> float:
        """The weighted loss of a fleet; ∞ of none, where a case is not served, or beyond the budget."""
        rows = np.asarray(chosen, dtype=np.int64)
        if len(rows) == 0 or self.cost[rows].sum() > self.budget:
            return float("inf")
        return float(self.value[rows].min(axis=0).sum())


@dataclass(frozen=True, eq=False)
class Bound:
    """A Lagrangian bound: `base` + the sum of the chosen columns' `reduced` costs, (n,), is no more than any fleet's weighted loss.

    It follows from prices of the cases, (cases,), and a price of cost.
    """

    base: float
    reduced: FloatArray
    most: int
    prices: FloatArray
    price: float

    @property
    def least(self) -> float:
        """The bound of all fleets of `most` designs."""
        return self.base + float(np.minimum(np.sort(self.reduced)[: self.most], 0.0).sum())


def bound_of(columns: Columns, prices: FloatArray, price: float, most: int) -> Bound:
    """The bound that prices of cases (cases,) and of cost give; of any prices a bound, ∑u − λB + min ∑(λT − ∑ max(0, u − v))."""
    gain = np.maximum(prices - columns.value, 0.0).sum(axis=1)
    spent = price * columns.budget if price > 0.0 else 0.0
    return Bound(float(prices.sum()) - spent, price * columns.cost - gain, most, prices, price)


def relaxed(columns: Columns, most: int, start: IntArray) -> Bound:
    """The best bound of linear programs over ever more columns; `start` holds a fleet that serves all cases within the budget."""
    inside = np.unique(start)
    best = bound_of(columns, columns.value.min(axis=0), 0.0, most)
    for _ in range(ROUNDS):
        found = _prices(columns, inside, most)
        if found is None:
            break
        bound = bound_of(columns, *found, most)
        best = bound if bound.least > best.least else best
        order = np.argsort(bound.reduced, kind="stable")
        least = min(0.0, float(bound.reduced[inside].min()))
        outside = order[~np.isin(order, inside)][:ADDED]
        if not (bound.reduced[outside] < least - CLOSE).any():
            break
        inside = np.union1d(inside, outside)
    return best


def _prices(columns: Columns, inside: IntArray, most: int) -> tuple[FloatArray, float] | None:
    """Prices of cases and of cost from the linear program over some columns; None where it has no solution.

    It is solved in shares of the largest difference of a case, so that its tolerances are small beside what differs.
    """
    value, cost = columns.value[inside], columns.cost[inside]
    least = value.min(axis=0)
    design, case = np.nonzero(np.isfinite(value))
    above = value[design, case] - least[case]
    scale = float(above.max(initial=0.0)) or 1.0
    n, served = len(inside), np.arange(len(design))
    budgeted = bool(np.isfinite(columns.budget))
    spent = cost / columns.budget if budgeted else np.zeros(n)
    data = np.concatenate([np.ones(len(design)), -np.ones(len(design)), np.ones(n), spent])
    rows = np.concatenate([served, served, np.full(n, len(design)), np.full(n, len(design) + 1)])
    places = np.concatenate([n + served, design, np.arange(n), np.arange(n)])
    limits: Any = coo_array((data, (rows, places)), shape=(len(design) + 2, n + len(design))).tocsr()
    each: Any = coo_array((np.ones(len(design)), (case, n + served)), shape=(value.shape[1], n + len(design))).tocsr()
    most_of = np.concatenate([np.zeros(len(design)), [most, 1.0]])
    weights = np.concatenate([np.zeros(n), above / scale])
    found = linprog(weights, limits, most_of, each, np.ones(value.shape[1]), method="highs")
    if found.status != 0:
        return None
    price = max(0.0, -float(found.ineqlin.marginals[-1])) * scale / columns.budget if budgeted else 0.0
    return least + scale * np.asarray(found.eqlin.marginals), price
