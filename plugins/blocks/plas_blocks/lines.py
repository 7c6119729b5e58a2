"""Lower bounds on every mixture: lines of weighted objectives that none lies below, from Lagrange multipliers.

For weights w >= 0 on the objectives and multipliers u >= 0 on the limited sums, every mixture within the limits has
w·objectives >= min over all mixtures of (w·objectives + u·sums) - u·limits, and the minimum is taken layer by layer
(Everett 1963). The multipliers are those that raise the bound most.
"""

from dataclasses import dataclass

import numpy as np

from plas_blocks.problem import Problem
from search_spaces.arrays import FloatArray

HALVINGS, CYCLES = 44, 4


@dataclass(frozen=True, eq=False)
class Lines:
    """Weights (J, D), the least weighted sum of the first i layers (layers + 1, J), and what the limits take off (J,)."""

    weights: FloatArray
    prefixes: FloatArray
    taken_off: FloatArray

    @property
    def bounds(self) -> FloatArray:
        """Lower bounds of the weighted objectives of every mixture within the limits, (J,)."""
        result: FloatArray = self.prefixes[-1] - self.taken_off
        return result


def lines(problem: Problem, directions: FloatArray) -> Lines:
    """The best lines of some directions, weights of the objectives (J, objectives)."""
    n, further = problem.objectives, len(problem.dimensions) - problem.objectives
    weights = np.concatenate([directions, np.zeros((len(directions), further))], axis=1)
    for number in range(n, n + further) if further == 1 else [*range(n, n + further)] * CYCLES:
        weights[:, number] = _multiplier(problem, weights, number)
    prefixes = problem.prefixes(lambda group: (group.values @ weights.T).min(axis=0))
    return Lines(weights, prefixes, weights[:, n:] @ problem.limits[n:])


def _multiplier(problem: Problem, weights: FloatArray, number: int) -> FloatArray:
    """The multiplier of one limited sum that raises the bound most, by halving: the least under which the limit is kept."""
    spread = problem.most[-1] - problem.least[-1]
    scale = (weights[:, : problem.objectives] @ spread[: problem.objectives]) / max(spread[number], 1.0)
    low, high = np.zeros(len(weights)), scale * 2.0**20
    trial = weights.copy()
    trial[:, number] = 0.0
    free = minimisers(problem, trial)[:, number] <= problem.limits[number]
    for _ in range(HALVINGS):
        trial[:, number] = np.sqrt(np.maximum(low, scale * 2.0**-24) * high)
        kept = minimisers(problem, trial)[:, number] <= problem.limits[number]
        low, high = np.where(kept, low, trial[:, number]), np.where(kept, trial[:, number], high)
    result: FloatArray = np.where(free, 0.0, high)
    return result


def minimisers(problem: Problem, weights: FloatArray) -> FloatArray:
    """The sums of the mixture with the least weighted sum, whatever the limits, (J, D)."""
    j, width = weights.shape
    best = np.full((problem.layers + 1, j), np.inf)
    sums = np.zeros((problem.layers + 1, j, width))
    best[0] = 0.0
    for layer, groups in enumerate(problem.groups):
        for group in groups:
            weighted = group.values @ weights.T
            which = weighted.argmin(axis=0)
            cost, end = best[layer] + weighted[which, np.arange(j)], layer + group.length
            better = cost < best[end]
            sums[end] = np.where(better[:, None], sums[layer] + group.values[which], sums[end])
            best[end] = np.where(better, cost, best[end])
    result: FloatArray = sums[-1]
    return result
