"""The frontier that a local strategy works from, kept up to date row by row."""

from collections.abc import Callable

import numpy as np

from nas.problem.evaluations import Evaluations, Scale, non_dominated
from nas.problem.objective import Objective
from nas.search.archive import KeyIndex, draw_unseen
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.space import SearchSpace

LEAST_VIOLATING = 20


class Front:
    """Feasible non-dominated architectures; while nothing is feasible, the least violating ones."""

    def __init__(self, objectives: tuple[Objective, ...], genes: int, known: Evaluations | None = None) -> None:
        self.objectives = objectives
        self.genotypes: IntArray = np.zeros((0, genes), dtype=np.int64)
        self.keys: IntArray = np.zeros(0, dtype=np.int64)
        self.values: FloatArray = np.zeros((0, len(objectives)))
        self.excess: FloatArray = np.zeros(0)
        if known is not None:
            self.update(known)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def feasible(self) -> bool:
        """Whether anything feasible was found."""
        return len(self) > 0 and bool((self.excess == 0).all())

    def update(self, told: Evaluations) -> bool:
        """Take in evaluated rows, each key once; whether the frontier gained a member."""
        rows = np.flatnonzero(told.ok)
        before = set(self.keys.tolist())
        self.genotypes = np.concatenate([self.genotypes, told.genotypes[rows]])
        self.keys = np.concatenate([self.keys, told.keys[rows]])
        self.values = np.concatenate([self.values, told.values[rows]])
        self.excess = np.concatenate([self.excess, np.maximum(told.violations[rows], 0).sum(axis=1)])
        first = np.zeros(len(self.keys), dtype=bool)
        first[np.unique(self.keys, return_index=True)[1]] = True
        self._keep(first & self._best(first))
        return not set(self.keys.tolist()) <= before

    def _best(self, candidates: BoolArray) -> BoolArray:
        feasible = candidates & (self.excess == 0)
        best = np.zeros(len(self.keys), dtype=bool)
        if feasible.any():
            rows = np.flatnonzero(feasible)
            best[rows[non_dominated(self.values[rows])]] = True
        else:
            rows = np.flatnonzero(candidates)
            best[rows[np.argsort(self.excess[rows], kind="stable")[:LEAST_VIOLATING]]] = True
        return best

    def _keep(self, rows: BoolArray) -> None:
        self.genotypes, self.keys = self.genotypes[rows], self.keys[rows]
        self.values, self.excess = self.values[rows], self.excess[rows]

    def normalised(self) -> FloatArray:
        """Objective values on their own scales, each from 0 to 1 along the front, (n, m)."""
        return Scale.from_frontier(self.objectives, self.values).normalise(self.values)

    def crowding(self) -> FloatArray:
        """Distance of each member's two neighbours along an objective, summed over objectives, (n,); inf at their ends.

        The crowding distance of Deb et al. (2002).
        """
        crowding: FloatArray = np.zeros(len(self))
        for column in self.normalised().T if len(self) else ():
            order = np.argsort(column, kind="stable")
            gaps = np.concatenate([[np.inf], np.diff(column[order]), [np.inf]])
            crowding[order] += gaps[:-1] + gaps[1:]
        return crowding


ROUNDS = 8


def latin_hypercube(space: SearchSpace, seen: KeyIndex, n: int, generator: np.random.Generator) -> IntArray:
    """Up to n new genotypes from Latin hypercubes over the axes; they are added to `seen`."""

    return filled(space, seen, n, generator, lambda count: hypercube(count, len(space.genes), generator))


def hypercube(n: int, axes: int, generator: np.random.Generator) -> FloatArray:
    """Points of a Latin hypercube in [0, 1)^axes, (n, axes), to the last bit scipy's, whose import takes a second."""
    (own,) = generator.spawn(1)
    below, ranks = own.uniform(size=(n, axes)), np.tile(np.arange(1, n + 1), (axes, 1))
    for rank in ranks:
        own.shuffle(rank)
    points: FloatArray = (ranks.T - below) / n
    return points


def filled(
    space: SearchSpace, seen: KeyIndex, n: int, generator: np.random.Generator, points: Callable[[int], FloatArray]
) -> IntArray:
    """New genotypes from a stream of points in [0, 1)^g, topped up from what is left of the space."""
    chosen: list[IntArray] = []
    short = min(n, space.size - len(seen))
    for _ in range(ROUNDS):
        if short == 0:
            break
        genotypes = space.spread(points(short))
        genotypes = genotypes[seen.add(space.keys(genotypes))]
        chosen.append(genotypes)
        short -= len(genotypes)
    if short:
        chosen.append(space.genotypes(draw_unseen(space.size, seen, short, generator)))
    return np.concatenate(chosen) if chosen else space.genotypes(np.zeros(0, dtype=np.int64))
