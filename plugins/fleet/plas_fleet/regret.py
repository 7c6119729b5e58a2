"""The fleet of least worst regret among given designs: exact, by the least level at which so many designs cover all cases."""

from dataclasses import dataclass

import numpy as np

from plas_fleet.cover import Cover, OutOfTime
from plas_fleet.patterns import Masks
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Level:
    """A fleet (columns; none where nothing serves all), its worst regret, and a bound that no fleet's is below."""

    chosen: IntArray
    value: float
    bound: float


NOTHING = np.zeros(0, dtype=np.int64)


def masks_of(allowed: BoolArray) -> Masks:
    """Bits of the cases, (n,), that each row of (n, cases) may serve."""
    bits = np.uint64(1) << np.arange(allowed.shape[1], dtype=np.uint64)
    masks: Masks = np.where(allowed, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return masks


def least_regret(
    regret: FloatArray, cost: FloatArray, most: int, budget: float, deadline: float, cutoff: float = np.inf
) -> Level:
    """The least worst regret of at most so many designs within a budget; `regret` (n, cases), ∞ where a design does not fit.

    Fleets of a worst regret of `cutoff` or more are of no use.
    """
    levels = np.unique(regret[regret < cutoff])
    everything = (1 << regret.shape[1]) - 1

    def fleet_at(level: float) -> IntArray | None:
        return Cover.of(masks_of(regret <= level), cost, deadline).within(everything, most, budget)

    if len(levels) == 0 or np.isinf(regret.min(axis=0)).any():
        return Level(NOTHING, float("inf"), cutoff)
    low, high = int(np.searchsorted(levels, regret.min(axis=0).max())) - 1, len(levels)
    best, middle = NOTHING, len(levels) - 1
    try:
        while high - low > 1:
            found = fleet_at(float(levels[middle]))
            low, high, best = (middle, high, best) if found is None else (low, middle, found)
            middle = (low + high) // 2
    except OutOfTime:
        pass
    value = float(levels[high]) if len(best) else float("inf")
    bound = float(levels[low + 1]) if low + 1 < len(levels) else cutoff
    return Level(best, value, min(value, bound))
