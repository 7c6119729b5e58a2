"""Candidates of a model: the whole space where it is small, else a pool grown towards its best."""

from collections.abc import Callable

import numpy as np

from nas.exact.solution import SMALL
from nas.problem.problem import Problem
from nas.search.distinct_sampling import draw_unseen
from nas.search.key_index import KeyIndex
from nas.strategies._prior_columns import Designs, Wanted, described
from search_spaces.arrays import IntArray

DRAWN = 20_000  # designs of a large space that a pool begins with
STEPS = (1 / 8, 1 / 16, 1 / 32, 0.0, 0.0, 0.0)  # of an axis, round by round; 0 is one value
PARENTS = 200  # of which the neighbours join the pool in a round

Liked = Callable[[Designs], IntArray]


class Candidates:
    """Designs of a space with their shipped metrics; the same for the same seed and the same model."""

    def __init__(self, problem: Problem, seed: int, wanted: Wanted) -> None:
        self.problem, self.wanted = problem, wanted
        self.whole = problem.space.size <= SMALL
        keys = np.arange(problem.space.size) if self.whole else self._drawn(seed)
        self.reference = described(problem, keys, wanted)

    def _drawn(self, seed: int) -> IntArray:
        generator = np.random.default_rng([seed, self.problem.space.size])
        return np.sort(draw_unseen(self.problem.space.size, KeyIndex(), DRAWN, generator))

    def holding(self, keys: IntArray) -> Designs:
        """The whole space; of a large one what was drawn of it, and the designs of some keys."""
        if self.whole:
            return self.reference
        return described(self.problem, np.union1d(self.reference.keys, keys), self.wanted)

    def grown(self, pool: Designs, liked: Liked) -> Designs:
        """The whole space; of a large one a pool with the neighbours of what `liked` picks of it, in ever smaller steps.

        `liked` gives rows of the designs that it is shown.
        """
        for step in () if self.whole else STEPS:
            best = pool.genotypes[liked(pool)[:PARENTS]]
            near = self.problem.space.keys(self.problem.space.neighbours(best, step))
            pool = pool.joined(described(self.problem, np.setdiff1d(near, pool.keys), self.wanted))
        return pool
