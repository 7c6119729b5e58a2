"""The exact frontier: every architecture up to 100,000; above, what sums of parts or enumeration find best of all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, ConfigDict

from nas.exact.solution import SMALL, ExactSolution, solve
from nas.problem.picks import PickRule
from nas.search.strategy import StrategyContext, Traits
from search_spaces.arrays import IntArray

TRAITS = Traits(evaluations=None, takes_evaluations=False)


class Parameters(BaseModel):
    """The strategy has no parameters."""

    model_config = ConfigDict(extra="forbid")


class Exact:
    """Asks once: for everything, or for the solved frontier and picks of a larger space.

    `explanation` says how the space was covered, once it was.
    """

    def __init__(self, context: StrategyContext) -> None:
        self.context, self.asked = context, False
        self.explanation, self.finished = "", "the exact frontier is complete"

    def ask(self, at_most: int) -> IntArray:
        """Everything worth storing, then nothing."""
        if self.asked:
            return np.zeros((0, len(self.context.problem.space.genes)), dtype=np.int64)
        self.asked = True
        space = self.context.problem.space
        if space.size <= SMALL:
            self.explanation = f"every one of {space.size:,} architectures was evaluated"
            return space.genotypes(np.arange(space.size))
        found: list[IntArray] = []
        for solution in self._solved():
            self.explanation = self.explanation or solution.explanation
            picks = [pick.keys for pick in solution.picks if pick is not None]
            found += [*picks] if found else [solution.frontier.keys, *picks]
        return space.genotypes(np.unique(np.concatenate(found)))

    def _solved(self) -> Iterator[ExactSolution]:
        """The frontier with the picks of the study's own vocabulary, then the picks of every other, without its frontier."""
        problem = self.context.problem
        rules: dict[int, list[PickRule]] = {problem.vocabulary: [PickRule(None, margin=False)]}
        for question in problem.queries:
            vocabulary = problem.with_vocabulary(question.vocabulary).vocabulary
            rules.setdefault(vocabulary, []).append(PickRule.for_query(question))
        own = rules.pop(problem.vocabulary)
        solution = solve(problem, tuple(dict.fromkeys(own)), self.context.report, self.context.checkpoint)
        yield solution
        for vocabulary, others in rules.items():
            alike = replace(problem.with_vocabulary(vocabulary), objectives=())
            yield solve(alike, tuple(others), checkpoint=self.context.checkpoint, good=solution.frontier.genotypes)

    def tell(self, evaluations: object) -> None:
        """Nothing is learned."""


def build(context: StrategyContext, parameters: Parameters) -> Exact:
    """The strategy; it has no randomness."""
    return Exact(context)
