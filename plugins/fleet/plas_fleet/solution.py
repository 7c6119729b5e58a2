"""The best fleet of each number of models over cases, with what proves it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.problem.problem import Problem
from plas_fleet.designs import Designs, designs_of
from plas_fleet.patterns import Patterns, joined
from plas_fleet.pools import Pools
from plas_fleet.question import FleetConfig
from plas_fleet.setting import Fleet, Setting
from plas_range.cases import Case
from search_spaces.arrays import FloatArray

SEARCHED = 0.7  # of the time that a limit leaves for finding designs


@dataclass(frozen=True, eq=False)
class Fleets:
    """Fleets by their number of models over the cases that some design serves, each case with its share of all weights, (cases,).

    unserved: cases that no design serves; undecided: those for which none was found in time. best: the least loss of each
    served case by itself, (cases,), and `least`, a bound on it, the same where everything is settled.
    """

    cases: tuple[Case, ...]
    unserved: tuple[Case, ...]
    undecided: tuple[Case, ...]
    weights: FloatArray
    asked: FleetConfig
    designs: Designs
    best: FloatArray
    least: FloatArray
    fleets: tuple[Fleet, ...]

    @property
    def problem(self) -> Problem:
        """The first case's problem, whose space and law are those of all."""
        return (*self.cases, *self.unserved, *self.undecided)[0].problem

    @property
    def found(self) -> tuple[Fleet, ...]:
        """Fleets that serve every case."""
        return tuple(fleet for fleet in self.fleets if fleet.found)


def solved(cases: Sequence[Case], asked: FleetConfig, report: Callable[[int], None]) -> Fleets:
    """The best fleets; `report` receives how many more architectures are settled.

    Raises:
        UsageError: cases that no fleet can be asked of.
    """
    limit, begin = np.inf if asked.time_limit is None else asked.time_limit, time.monotonic()
    designs = designs_of(cases, asked, begin + SEARCHED * limit, report)
    known, possible = _union(designs.known), _union(joined([designs.known, designs.unsettled]))
    served = [number for number in range(len(cases)) if known >> number & 1]
    unserved = tuple(case for number, case in enumerate(cases) if not possible >> number & 1)
    undecided = tuple(c for number, c in enumerate(cases) if possible >> number & 1 and not known >> number & 1)
    designs = replace(designs, known=_over(designs.known, served), unsettled=_over(designs.unsettled, served))
    weights = np.array([cases[number].weight for number in served])
    best = least_of_each(designs.known, len(served))
    least = np.minimum(best, least_of_each(designs.unsettled, len(served)))
    chosen, share = tuple(cases[number] for number in served), weights / weights.sum()
    fleets: tuple[Fleet, ...] = ()
    if served:
        pools = Pools.of(designs, len(served), chosen[0].problem.space, asked)
        deadline = max(begin + limit, time.monotonic() + (1.0 - SEARCHED) * limit)
        fleets = tuple(Setting(pools, share, best, least, asked, deadline).fleets())
    return Fleets(chosen, unserved, undecided, share, asked, designs, best, least, fleets)


def least_of_each(patterns: Patterns, cases: int) -> FloatArray:
    """The least loss of a design that fits each case, (cases,); ∞ where none does."""
    fits = patterns.fits(cases)
    return np.array([np.min(patterns.loss, where=fits[:, case], initial=np.inf) for case in range(cases)])


def _union(patterns: Patterns) -> int:
    return int(np.bitwise_or.reduce(patterns.masks, initial=np.uint64(0)))


def _over(patterns: Patterns, cases: Sequence[int]) -> Patterns:
    """The same over some of the cases alone, renumbered."""
    masks = np.zeros(len(patterns), dtype=np.uint64)
    for bit, case in enumerate(cases):
        masks |= (patterns.masks >> np.uint64(case) & np.uint64(1)) << np.uint64(bit)
    found = replace(patterns, masks=masks)
    return found[masks != 0]
