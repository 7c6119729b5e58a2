"""Labels that can still be part of an optimum: those whose lower bounds leave a place beside the mixtures already found.

Between neighbours of a staircase of mixtures, and beyond its ends, lies a place below which every other optimum is. A line rules a
label out of the places that lie lower than all its mixtures can; a label that is ruled out of all of them is part of no optimum.
"""

import numpy as np

from plas_blocks.labels import Pruner
from plas_blocks.lines import lines
from plas_blocks.problem import Problem
from plas_blocks.solution import Frontier
from search_spaces.arrays import FloatArray, IntArray

LINES = 48
ROUNDING = 1e-9  # of a bound, relative; bounds are sums of floats


def corners(problem: Problem, sums: FloatArray) -> FloatArray:
    """The upper right of every place that a staircase (n, 2) leaves open, (n + 1, 2): no mixture has more than `most`."""
    most = problem.most[-1]
    return np.stack([np.append(sums[:, 0], most[0]), np.append(most[1], sums[:, 1])], axis=1)


def sieve(problem: Problem, found: Frontier) -> Pruner:
    """Which sums of the layers from one on may be part of an optimum that is not among some mixtures, or of one that is."""
    told = lines(problem, _directions(found.sums))
    heights = told.weights[:, :2] @ corners(problem, found.sums).T
    lowest = heights.argmin(axis=1)
    sides = [
        (j, lowest[j], *(np.maximum.accumulate(s) for s in (heights[j, lowest[j] :: -1], heights[j, lowest[j] :])))
        for j in np.argsort(lowest, kind="stable").tolist()
    ]
    places = heights.shape[1]

    def possible(layer: int, sums: FloatArray) -> IntArray:
        bounds = sums @ told.weights.T + told.prefixes[layer] - told.taken_off
        bounds -= ROUNDING * (np.abs(bounds) + np.abs(told.taken_off))
        ruled_out = np.zeros(len(sums), dtype=np.int64)  # places from the first one on
        for j, lowest_at, left, right in sides:
            before, after = (np.searchsorted(side, bounds[:, j]) for side in (left, right))
            joined = (before > 0) & (lowest_at - before < ruled_out)
            ruled_out = np.where(joined, np.maximum(ruled_out, lowest_at + after), ruled_out)
        return np.flatnonzero(ruled_out < places)

    return possible


def _directions(sums: FloatArray) -> FloatArray:
    """Weights across the staircase at even distances, and along its axes."""
    steps = np.diff(sums[np.unique(np.linspace(0, len(sums) - 1, LINES + 1).astype(np.int64))], axis=0)
    result: FloatArray = np.concatenate([np.eye(2), np.stack([-steps[:, 1], steps[:, 0]], axis=1)])
    return result
