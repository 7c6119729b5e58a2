"""One question about fleets: the best of each number of models, pool by pool."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plas_fleet.choice import least_loss
from plas_fleet.cover import Cover, OutOfTime
from plas_fleet.patterns import Patterns
from plas_fleet.pools import Pools
from plas_fleet.question import FleetConfig
from plas_fleet.regret import least_regret
from plas_fleet.relaxation import Columns
from search_spaces.arrays import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-12
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fleet:
    """At most `most` models: keys, the place among them of the one that serves each case, (cases,), the loss there, (cases,).

    value: what was minimised, nats; bound: no fleet of so many models is below it. Without keys no fleet serves all cases, where
    the bound is ∞ too, or none was found in time. pool: the designs that it was chosen from.
    """

    most: int
    keys: IntArray
    serves: IntArray
    loss: FloatArray
    value: float
    bound: float
    pool: Patterns

    @property
    def found(self) -> bool:
        """Whether there is such a fleet."""
        return len(self.keys) > 0

    @property
    def proved(self) -> bool:
        """Whether no fleet of so many models is better."""
        if np.isinf(self.value):
            return bool(np.isinf(self.bound))
        return self.bound >= self.value - TOLERANCE * max(1.0, abs(self.value))


@dataclass(frozen=True, eq=False)
class Found:
    """Rows of a pool that are a fleet, what was minimised, and a bound on it."""

    rows: IntArray
    value: float
    bound: float


NONE = Found(NOTHING, np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class Setting:
    """Pools of designs, shares of the cases, their own least losses as known and as bounded, when to stop."""

    pools: Pools
    weights: FloatArray
    best: FloatArray
    least: FloatArray
    asked: FleetConfig
    deadline: float

    def fleets(self) -> Iterator[Fleet]:
        """From the least number of models to the largest, or to where every case has its own best, or a model."""
        before: Fleet | None = None
        least = self.pools.least()
        for most in range(self.asked.models[0], self.asked.models[1] + 1):
            fleet = self._of(most, least, before)
            yield fleet
            before = fleet if fleet.found else before
            if (fleet.found and (fleet.loss <= self.least + TOLERANCE).all()) or most >= self.pools.cases:
                break

    def _of(self, most: int, least: FloatArray, before: Fleet | None) -> Fleet:
        """The best fleet of at most so many models over all pools, the most promising first."""
        ideal = self._ideal(least)
        found, chosen, bound = NONE, Patterns.none(), np.inf
        if before is not None:
            found, chosen = Found(rows_of(before.pool, before.keys), before.value, before.bound), before.pool
        for number in np.argsort(ideal, kind="stable").tolist():
            cutoff = self._cutoff(found.value)
            if ideal[number] >= cutoff:
                break
            if time.monotonic() > self.deadline and found.rows.size:
                bound = min(bound, float(ideal[number]))
                break
            pool = self.pools.pool(number)
            start = found.rows if len(self.pools) == 1 else NOTHING
            here = self._in(pool, most, start, cutoff)
            bound = min(bound, here.bound)
            if len(here.rows) and here.value < cutoff:
                found, chosen = here, pool
        bound = min(bound, found.value, self._unsettled(most) if len(self.pools.unsettled) else np.inf)
        return self._fleet(most, chosen, found, bound)

    def _cutoff(self, value: float) -> float:
        """From where on a fleet is of no use: it must be better, or of as much regret, where it may be of less weighted loss."""
        return value - TOLERANCE if self.asked.minimise == "loss" else float(np.nextafter(value, np.inf))

    def _ideal(self, least: FloatArray) -> FloatArray:
        """What a fleet of ever so many models of each pool has, (pools,)."""
        found = least @ self.weights if self.asked.minimise == "loss" else (least - self.least).max(axis=1)
        return np.where(np.isfinite(least).all(axis=1), found, np.inf)

    def _in(self, pool: Patterns, most: int, start: IntArray, cutoff: float, own: FloatArray | None = None) -> Found:
        """The best fleet of a pool; one of `cutoff` or more is of no use."""
        fits = pool.fits(self.pools.cases)
        if self.asked.minimise == "regret":
            return self._least_regret(pool, fits, most, cutoff, self.least if own is None else own)
        try:
            serving = start if len(start) else self._serving(pool, most)
        except OutOfTime:
            return Found(NOTHING, np.inf, self._cheapest(pool, fits))
        if serving is None:
            return NONE
        choice = least_loss(self._columns(pool, fits), most, serving, self.deadline, cutoff)
        return Found(choice.chosen, choice.value, choice.bound)

    def _serving(self, pool: Patterns, most: int) -> IntArray | None:
        """Some fleet that serves every case within the budget."""
        everything = (1 << self.pools.cases) - 1
        return Cover.of(pool.masks, pool.cost, self.deadline).within(everything, most, self.pools.budget)

    def _cheapest(self, pool: Patterns, fits: BoolArray) -> float:
        return float(np.where(fits, pool.loss[:, None] * self.weights, np.inf).min(axis=0).sum())

    def _columns(self, pool: Patterns, allowed: BoolArray) -> Columns:
        value = np.where(allowed, pool.loss[:, None] * self.weights, np.inf)
        return Columns(value, pool.cost, self.pools.budget)

    def _least_regret(self, pool: Patterns, fits: BoolArray, most: int, cutoff: float, own: FloatArray) -> Found:
        """The least worst regret; of all fleets that have it, the one of least weighted loss."""
        regret = np.where(fits, np.maximum(pool.loss[:, None] - own, 0.0), np.inf)
        level = least_regret(regret, pool.cost, most, self.pools.budget, self.deadline, cutoff)
        if len(level.chosen) == 0:
            return Found(NOTHING, np.inf, level.bound)
        allowed = fits & (regret <= level.value)
        choice = least_loss(self._columns(pool, allowed), most, level.chosen, self.deadline)
        return Found(choice.chosen, level.value, level.bound)

    def _unsettled(self, most: int) -> float:
        """A bound on fleets of designs that the search had not yet settled."""
        pool = self.pools.with_unsettled()
        return self._in(pool, most, NOTHING, np.inf, self.best).bound

    def _fleet(self, most: int, pool: Patterns, found: Found, bound: float) -> Fleet:
        """The fleet with each case given to its model of lowest loss; models that serve none are left out."""
        if len(found.rows) == 0:
            return Fleet(most, NOTHING, NOTHING, np.zeros(0), np.inf, bound, pool)
        rows = found.rows[np.lexsort((pool.keys[found.rows], pool.loss[found.rows]))]
        loss = np.where(pool.fits(self.pools.cases)[rows], pool.loss[rows][:, None], np.inf)
        used, serves = np.unique(loss.argmin(axis=0), return_inverse=True)
        value = found.value
        if self.asked.minimise == "loss":
            value = float(loss.min(axis=0) @ self.weights)
        return Fleet(most, pool.keys[rows[used]], serves, loss.min(axis=0), value, min(bound, value), pool)


def rows_of(pool: Patterns, keys: IntArray) -> IntArray:
    """Where designs stand in a pool, (n,)."""
    order = np.argsort(pool.keys, kind="stable")
    return order[np.searchsorted(pool.keys[order], keys)]
