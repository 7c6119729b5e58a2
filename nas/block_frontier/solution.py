"""The answer: every vector of objectives on the frontier, the mixture that stands for it, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.block_frontier.labels import Tree
from nas.block_frontier.problem import Problem, non_dominated_exactly
from nas.errors import InfeasibleError
from search_spaces.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Frontier:
    """Mixtures sorted by the objectives: `chosen` (n, layers) library rows, `sums` (n, objectives) in whole numbers.

    `tied`: how many mixtures have the same objectives within the limits; NaN where they were not counted.
    `tolerance`: 0 where every optimum is there; else no mixture within the limits is better in every objective at once by
    more than this share of the frontier's range. `labels` and `method` say what it took.
    """

    problem: Problem
    chosen: IntArray
    sums: FloatArray
    tied: FloatArray
    tolerance: float
    method: str

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def exact(self) -> bool:
        """Whether every optimum is there, proved in this run."""
        return self.tolerance == 0.0

    def metric(self, name: str) -> FloatArray:
        """Totals of a metric of the library, (n,)."""
        problem = self.problem
        for number, dimension in enumerate(problem.dimensions[: problem.objectives]):
            if dimension.name == name:
                return dimension.value(self.sums[:, number])
        library = problem.library
        own, column = library.baselines.get(name, 0.0), library.metrics[name]
        first = np.ones_like(self.chosen, dtype=bool)
        first[:, 1:] = (library.first[self.chosen] == np.arange(problem.layers))[:, 1:]
        added: FloatArray = np.where(first, column[self.chosen] - own, 0.0).sum(axis=1)
        return added + own + library.rest.get(name, 0.0)

    @property
    def changed(self) -> IntArray:
        """How many layers are no longer the parent's, (n,)."""
        result: IntArray = (~self.problem.library.parent[self.chosen]).sum(axis=1)
        return result

    @property
    def kinds(self) -> IntArray:
        """How many distinct kinds of block each mixture has, (n,)."""
        _, kind = np.unique(self.problem.library.kinds, return_inverse=True)
        ordered = np.sort(kind[self.chosen], axis=1)
        result: IntArray = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        return result

    def replacements(self, row: int) -> list[int]:
        """The library's rows of one mixture, each once, first layer first."""
        library, found, layer = self.problem.library, list[int](), 0
        while layer < self.problem.layers:
            found.append(int(self.chosen[row, layer]))
            layer += int(library.length[found[-1]])
        return found

    def __getitem__(self, rows: IntArray) -> "Frontier":
        return Frontier(self.problem, self.chosen[rows], self.sums[rows], self.tied[rows], self.tolerance, self.method)


def exact_frontier(problem: Problem, found: Tree) -> Frontier:
    """The frontier of a tree of labels: of equal objectives the mixture with the fewest layers changed, then the first.

    Raises:
        InfeasibleError: no mixture is within all limits at once.
    """
    final, n = found.final, problem.objectives
    if not len(final):
        raise InfeasibleError(nothing_within(problem))
    sums = final.sums[:, :n]
    _, group = np.unique(sums, axis=0, return_inverse=True)
    group = group.ravel()
    tied: FloatArray = np.bincount(group, weights=final.counts).astype(np.float64)
    candidates = np.flatnonzero(_fewest(group, final.changed))
    chosen = found.chosen(candidates)
    alone = len(candidates) == len(tied)
    order = np.lexsort((*(() if alone else chosen.T[::-1]), group[candidates]))
    first = order[np.r_[True, np.diff(group[candidates][order]) > 0]]
    kept = candidates[first]
    return Frontier(problem, chosen[first], sums[kept], tied[group[kept]], 0.0, f"{len(final):,} labels")


def nothing_within(problem: Problem) -> str:
    """That each limit can be met, and all together cannot."""
    asked = [d for d in problem.dimensions if np.isfinite(d.limit)]
    said = " and ".join(f"{d.name} {'>=' if d.sign < 0 else '<='} {d.value(np.array(d.limit)):g}" for d in asked)
    return f"blocks: expected a mixture within {said}, but none is within all at once; move one of the budgets"


def _fewest(group: IntArray, changed: IntArray) -> IntArray:
    """Which labels change as few layers as any of their group."""
    least = np.full(group.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, group, changed)
    result: IntArray = changed == least[group]
    return result


def staircase(sums: FloatArray) -> IntArray:
    """Rows of (n, 2) that are not dominated, one of equal ones, ascending in the first."""
    order = np.lexsort((np.arange(len(sums)), sums[:, 1], sums[:, 0]))
    lowest = np.minimum.accumulate(sums[order, 1])
    return order[np.r_[True, sums[order[1:], 1] < lowest[:-1]]]


def united(problem: Problem, parts: Sequence[Frontier], tolerance: float, method: str) -> Frontier:
    """What is on the frontier of several frontiers together; ties between them are not counted."""
    sums, chosen = np.concatenate([p.sums for p in parts]), np.concatenate([p.chosen for p in parts])
    changed = np.concatenate([p.changed for p in parts])
    order = np.lexsort((*chosen.T[::-1], changed, *sums.T[::-1]))
    order = order[np.r_[True, (sums[order[1:]] != sums[order[:-1]]).any(axis=1)]]
    kept = order[non_dominated_exactly(sums[order])]
    return Frontier(problem, chosen[kept], sums[kept], np.full(len(kept), np.nan), tolerance, method)
