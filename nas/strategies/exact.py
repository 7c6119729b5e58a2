"""The exact frontier: every architecture up to 100,000, above that the frontier of all, by enumeration."""

from collections.abc import Iterator

import numpy as np
from pydantic import BaseModel, ConfigDict

from nas.evaluations import Evaluations
from nas.exact_solution import solve
from nas.picks import PickRule
from nas.problem import Problem
from nas.strategy import Brief, Traits
from search_spaces.arrays import IntArray

TRAITS = Traits(evaluations=None, takes_evaluations=False)
STORED_WHOLE = 100_000


class Parameters(BaseModel):
    """The strategy has no parameters."""

    model_config = ConfigDict(extra="forbid")


class Exact:
    """Asks once: for everything, or for the solved frontier and picks of a larger space."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.asked = False

    def ask(self, at_most: int) -> IntArray:
        """Everything worth storing, then nothing."""
        if self.asked:
            return np.zeros((0, 6), dtype=np.int64)
        self.asked = True
        space = self.problem.space
        if space.size <= STORED_WHOLE:
            return space.genotypes(np.arange(space.size))
        found = [solution.keys for solution in self._solved()]
        return space.genotypes(np.unique(np.concatenate(found)))

    def _solved(self) -> Iterator[Evaluations]:
        """The frontier, and the pick of every question, each over the whole space."""
        asked = self.problem.questions
        for vocabulary in {None: None, **{question.vocabulary: None for question in asked}}:
            rules = tuple(PickRule(q.budget) for q in asked if q.vocabulary == vocabulary)
            solution = solve(self.problem.with_vocabulary(vocabulary), (PickRule(None), *rules))
            if vocabulary is None:
                yield solution.frontier
            yield from (pick for pick in solution.picks if pick is not None)

    def tell(self, evaluations: Evaluations) -> None:
        """Nothing is learned."""


def build(brief: Brief, parameters: Parameters) -> Exact:
    """The strategy; it has no randomness."""
    return Exact(brief.problem)
