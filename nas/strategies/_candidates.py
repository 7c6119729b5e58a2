"""Candidates of a model: the whole space where it is small, else a pool grown towards its best."""

from collections.abc import Callable

import numpy as np

from nas.exact.solution import SMALL
from nas.problem.problem import Problem
from nas.search.distinct_sampling import draw_unseen
from nas.search.key_index import KeyIndex
from nas.strategies._corrected import Guess
from nas.strategies._prior_columns import Designs, Wanted, described
from nas.strategies._proposals import front
from search_spaces.arrays import IntArray

DRAWN = 20_000  # designs of a large space that a pool begins with
STEPS = (1 / 8, 1 / 16, 1 / 32, 0.0, 0.0, 0.0)  # of an axis, round by round; 0 is one value
PARENTS = 200  # of which the neighbours join the pool in a round


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
        """Designs that some keys are of, in ascending order: the whole space, of a large one these alone."""
        return self.reference if self.whole else described(self.problem, np.unique(keys), self.wanted)

    def grown(
        self, keys: IntArray, guess: Callable[[Designs], Guess], confidence: float = 0.5
    ) -> tuple[Designs, Guess]:
        """The whole space and what is guessed of it; of a large one what was drawn of it, the designs of some keys, and their neighbours.

        The neighbours are those of what is on the guessed frontier, in ever smaller steps; every design is guessed once.
        """
        pool, known = self.reference, guess(self.reference)
        if self.whole:
            return pool, known
        pool, known = self._joined(pool, known, np.setdiff1d(keys, pool.keys), guess)
        for step in STEPS:
            best = pool.genotypes[front(known, confidence)[:PARENTS]]
            near = self.problem.space.keys(self.problem.space.neighbours(best, step))
            pool, known = self._joined(pool, known, np.setdiff1d(near, pool.keys), guess)
        order = np.argsort(pool.keys)
        return pool[order], Guess(known.values[order], known.holds[order])

    def _joined(
        self, pool: Designs, known: Guess, keys: IntArray, guess: Callable[[Designs], Guess]
    ) -> tuple[Designs, Guess]:
        """A pool followed by the designs of some keys, and what is guessed of both."""
        more = described(self.problem, keys, self.wanted)
        of = guess(more)
        values, holds = np.concatenate([known.values, of.values]), np.concatenate([known.holds, of.holds])
        return pool.followed_by(more), Guess(values, holds)
