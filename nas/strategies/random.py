"""Uniform random sampling without replacement."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.evaluations import Evaluations
from nas.key_index import KeyIndex
from nas.problem import Problem
from nas.strategy import Traits
from nas.unseen import draw_unseen
from search_spaces.arrays import IntArray

TRAITS = Traits()


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    batch: int = Field(100, strict=True, ge=1, le=1_000_000, description="Architectures proposed at once")


class RandomSampling:
    """Every architecture once, in an order drawn from the generator."""

    def __init__(self, problem: Problem, parameters: Parameters, seed: int) -> None:
        self.space, self.batch = problem.space, parameters.batch
        self.generator = np.random.default_rng(seed)
        self.seen = KeyIndex()

    def ask(self, at_most: int) -> IntArray:
        """The next `batch` architectures, fewer when the space ends."""
        return self.space.genotypes(draw_unseen(self.space.size, self.seen, self.batch, self.generator))

    def tell(self, evaluations: Evaluations) -> None:
        """Nothing is learned."""


def build(problem: Problem, parameters: Parameters, seed: int) -> RandomSampling:
    """The strategy from its parameters and seed."""
    return RandomSampling(problem, parameters, seed)
