"""The best fleet of each number of models over cases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.problem.problem import Problem
from plas_fleet.choice import least_loss, total
from plas_fleet.cover import covering, least_regret
from plas_fleet.designs import Designs, designs_of
from plas_fleet.patterns import Patterns
from plas_fleet.question import FleetConfig
from plas_range.cases import Case
from search_spaces.arrays import FloatArray, IntArray

TOLERANCE = 1e-12
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fleet:
    """At most `most` models: keys, the place among them of the one that serves each case, (cases,), the loss there, (cases,).

    value: what was minimised, nats, the least of all fleets. Without keys no fleet of so many serves all cases.
    """

    most: int
    keys: IntArray
    serves: IntArray
    loss: FloatArray
    value: float

    @property
    def found(self) -> bool:
        """Whether there is such a fleet."""
        return len(self.keys) > 0


@dataclass(frozen=True, eq=False)
class Fleets:
    """Fleets by their number of models over the cases that some design serves, each case with its share of all weights, (cases,).

    unserved: cases that no design serves. best: the least loss of each served case by itself, (cases,).
    """

    cases: tuple[Case, ...]
    unserved: tuple[Case, ...]
    weights: FloatArray
    asked: FleetConfig
    designs: Designs
    best: FloatArray
    fleets: tuple[Fleet, ...]

    @property
    def problem(self) -> Problem:
        """The first case's problem, whose space and law are those of all."""
        return (*self.cases, *self.unserved)[0].problem

    @property
    def found(self) -> tuple[Fleet, ...]:
        """Fleets that serve every case."""
        return tuple(fleet for fleet in self.fleets if fleet.found)


def solved(cases: Sequence[Case], asked: FleetConfig, report: Callable[[int], None]) -> Fleets:
    """The best fleets; `report` receives how many more architectures are settled.

    Raises:
        UsageError: cases that no fleet can be asked of.
    """
    designs = designs_of(cases, report)
    union = int(np.bitwise_or.reduce(designs.known.masks, initial=np.uint64(0)))
    served = [number for number in range(len(cases)) if union >> number & 1]
    unserved = tuple(case for number, case in enumerate(cases) if not union >> number & 1)
    designs = replace(designs, known=_over(designs.known, served))
    weights = np.array([cases[number].weight for number in served])
    share = weights / weights.sum()
    fleets = tuple(best_fleets(designs.known, share, asked)) if served else ()
    chosen, best = tuple(cases[number] for number in served), least_of_each(designs.known, len(served))
    return Fleets(chosen, unserved, share, asked, designs, best, fleets)


def best_fleets(known: Patterns, weights: FloatArray, asked: FleetConfig) -> Iterator[Fleet]:
    """From the least number of models to the largest, or to where every case has its own best, or a model."""
    cases = len(weights)
    fits, best = known.fits(cases), least_of_each(known, cases)
    losses = np.where(fits, known.loss[:, None], np.inf)
    rows = NOTHING
    for most in range(asked.models[0], asked.models[1] + 1):
        if asked.minimise == "regret":
            level = least_regret(np.maximum(losses - best, 0.0), most)
            if level is not None:
                within = np.where(losses - best <= level[1], losses * weights, np.inf)
                rows = least_loss(within, most, level[0])
        else:
            rows = _least_mean(losses * weights, most, rows)
        fleet = _fleet(most, known, losses, rows)
        if fleet.found:
            worst = float((fleet.loss - best).max())
            fleet = replace(fleet, value=worst if asked.minimise == "regret" else float(fleet.loss @ weights))
        yield fleet
        if (fleet.found and (fleet.loss <= best + TOLERANCE).all()) or most >= cases:
            break


def _least_mean(value: FloatArray, most: int, before: IntArray) -> IntArray:
    """The rows of least weighted loss; those of fewer models, `before`, where more gain nothing."""
    start = before if len(before) else covering(np.isfinite(value), most)
    if start is None:
        return NOTHING
    rows = least_loss(value, most, start)
    return before if len(before) and not total(value, rows) < total(value, before) - TOLERANCE else rows


def _fleet(most: int, known: Patterns, losses: FloatArray, rows: IntArray) -> Fleet:
    """The fleet with each case given to its model of lowest loss; models that serve none are left out."""
    if len(rows) == 0:
        return Fleet(most, NOTHING, NOTHING, np.zeros(0), np.inf)
    rows = rows[np.lexsort((known.keys[rows], known.loss[rows]))]
    loss = losses[rows]
    used, serves = np.unique(loss.argmin(axis=0), return_inverse=True)
    return Fleet(most, known.keys[rows[used]], serves, loss.min(axis=0), np.inf)


def least_of_each(patterns: Patterns, cases: int) -> FloatArray:
    """The least loss of a design that fits each case, (cases,); ∞ where none does."""
    fits = patterns.fits(cases)
    return np.array([np.min(patterns.loss, where=fits[:, case], initial=np.inf) for case in range(cases)])


def _over(patterns: Patterns, cases: Sequence[int]) -> Patterns:
    """The same over some of the cases alone, renumbered."""
    masks = np.zeros(len(patterns), dtype=np.uint64)
    for bit, case in enumerate(cases):
        masks |= (patterns.masks >> np.uint64(case) & np.uint64(1)) << np.uint64(bit)
    found = replace(patterns, masks=masks)
    return found[masks != 0]
