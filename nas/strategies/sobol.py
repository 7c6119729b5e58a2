"""Scrambled Sobol sequence (Sobol 1967, Owen 1998) over the axes, without replacement."""

import warnings

from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import qmc

from nas.problem.evaluations import Evaluations
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._front import filled
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(asynchronous=True, learns=False)
LENGTH = 2**30


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    block: int = Field(
        128, strict=True, ge=1, le=2**16, description="Architectures proposed at once; powers of two balance best"
    )


class Sobol:
    """The sequence's points as architectures; points on known architectures are passed over."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.block = context.problem.space, parameters.block
        self.generator, self.seen = context.generator, context.seen()
        self.sequence = qmc.Sobol(d=len(self.space.genes), scramble=True, rng=self.generator)

    def ask(self, at_most: int) -> IntArray:
        """The next block of new architectures."""
        return filled(self.space, self.seen, self.block, self.generator, self._points)

    def _points(self, n: int) -> FloatArray:
        """The next n points; the sequence is fast-forwarded nowhere and never repeats."""
        if self.sequence.num_generated + n > LENGTH:
            self.sequence = qmc.Sobol(d=len(self.space.genes), scramble=True, rng=self.generator)
        with warnings.catch_warnings():  # unbalanced lengths are ours: points on known architectures are passed over
            warnings.simplefilter("ignore", UserWarning)
            points: FloatArray = self.sequence.random(n)
        return points

    def tell(self, evaluations: Evaluations) -> None:
        """Nothing is learned."""


def build(context: StrategyContext, parameters: Parameters) -> Sobol:
    """The strategy from its context and parameters."""
    return Sobol(context, parameters)
