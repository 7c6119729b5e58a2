"""The answer: every vector of objectives on the frontier, the mixture that stands for it, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.errors import InfeasibleError
from plas_blocks.labels import Tree
from plas_blocks.problem import Problem, non_dominated_exactly
from search_spaces.arrays import FloatArray, IntArray

AT_ONCE = 10_000  # mixtures whose kinds are sorted


@dataclass(frozen=True, eq=False)
class Frontier:
    """Mixtures sorted by the objectives: `chosen` (n, layers) library rows, `sums` (n, objectives) in whole numbers.

    `tied`: how many mixtures have the same objectives within the limits; NaN where they were not counted.
    `room` (objectives,): 0 where every optimum is there; else, beside every mixture within the limits one of these is at most so
    much worse in each objective. `method` says what it took.
    """

    problem: Problem
    chosen: IntArray
    sums: FloatArray
    tied: FloatArray
    room: FloatArray
    method: str

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def exact(self) -> bool:
        """Whether every optimum is there, proved in this run."""
        return not self.room.any()

    @property
    def tolerance(self) -> float:
        """The room as a share of the frontier's ranges, of the objective that needs most."""
        return float((self.room / ranges(self.problem, self.sums)).max())

    def metric(self, name: str) -> FloatArray:
        """Totals of a metric of the library, (n,)."""
        problem = self.problem
        for number, dimension in enumerate(problem.dimensions[: problem.objectives]):
            if dimension.name == name:
                return dimension.value(self.sums[:, number])
        library = problem.library
        own, column = library.baselines.get(name, 0.0), library.metrics[name]
        added = np.zeros(len(self))
        for layer in range(problem.layers):  # layer by layer: a table of all of them would be many times the frontier
            rows = self.chosen[:, layer]
            added += np.where(library.first[rows] == layer, column[rows] - own, 0.0)
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
        found = np.ones(len(self), dtype=np.int64)
        for start in range(0, len(self), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            ordered = np.sort(kind[self.chosen[part]], axis=1)
            found[part] += (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        return found

    def replacements(self, row: int) -> list[int]:
        """The library's rows of one mixture, each once, first layer first."""
        library, found, layer = self.problem.library, list[int](), 0
        while layer < self.problem.layers:
            found.append(int(self.chosen[row, layer]))
            layer += int(library.length[found[-1]])
        return found

    def __getitem__(self, rows: IntArray) -> "Frontier":
        return Frontier(self.problem, self.chosen[rows], self.sums[rows], self.tied[rows], self.room, self.method)


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
    alone = len(candidates) == len(tied)
    order = np.lexsort((*(() if alone else found.chosen(candidates).T[::-1]), group[candidates]))
    kept = candidates[order[np.r_[True, np.diff(group[candidates][order]) > 0]]]
    return Frontier(problem, found.chosen(kept), sums[kept], tied[group[kept]], np.zeros(n), f"{len(final):,} labels")


def nothing_within(problem: Problem) -> str:
    """That each limit can be met, and all together cannot."""
    asked = [d for d in problem.dimensions if np.isfinite(d.limit)]
    text = " and ".join(f"{d.name} {'>=' if d.sign < 0 else '<='} {d.value(np.array(d.limit)):g}" for d in asked)
    return f"blocks: expected a mixture within {text}, but none is within all at once; move one of the budgets"


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


def ranges(problem: Problem, sums: FloatArray) -> FloatArray:
    """The range of each objective in a frontier; where it is the same throughout, in all mixtures of the library."""
    n = problem.objectives
    everywhere = np.maximum(problem.most[-1] - problem.least[-1], 1.0)[:n]
    here = np.ptp(sums, axis=0) if len(sums) else np.zeros(n)
    result: FloatArray = np.where(here > 0, here, everywhere)
    return result


def united(problem: Problem, parts: Sequence[Frontier], method: str) -> Frontier:
    """Members of the frontier of several frontiers together; ties between them are not counted."""
    sums, chosen = np.concatenate([p.sums for p in parts]), np.concatenate([p.chosen for p in parts])
    changed = np.concatenate([p.changed for p in parts])
    order = np.lexsort((*chosen.T[::-1], changed, *sums.T[::-1]))
    order = order[np.r_[True, (sums[order[1:]] != sums[order[:-1]]).any(axis=1)]]
    kept = order[non_dominated_exactly(sums[order])]
    room = np.max([part.room for part in parts], axis=0)
    return Frontier(problem, chosen[kept], sums[kept], np.full(len(kept), np.nan), room, method)
