"""Uniform random sampling without replacement."""

from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations
from nas.search.archive import draw_unseen
from nas.search.strategy import StrategyContext, Traits
from search_spaces.arrays import IntArray

TRAITS = Traits(asynchronous=True, learns=False)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    batch: int = Field(100, strict=True, ge=1, le=1_000_000, description="Architectures proposed at once")


class RandomSampling:
    """Every architecture once, in an order drawn from the generator."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.batch = context.problem.space, parameters.batch
        self.generator = context.generator
        self.seen = context.seen()

    def ask(self, at_most: int) -> IntArray:
        """The next `batch` architectures, fewer when the space ends."""
        return self.space.genotypes(draw_unseen(self.space.size, self.seen, self.batch, self.generator))

    def tell(self, evaluations: Evaluations) -> None:
        """Nothing is learned."""


def build(context: StrategyContext, parameters: Parameters) -> RandomSampling:
    """The strategy from its context and parameters."""
    return RandomSampling(context, parameters)
