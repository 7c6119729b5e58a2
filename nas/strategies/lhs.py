"""Latin hypercube sampling (McKay, Beckman and Conover 1979) without replacement."""

from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._front import latin_hypercube
from search_spaces.arrays import IntArray

TRAITS = Traits(asynchronous=True, learns=False)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    batch: int = Field(100, strict=True, ge=1, le=100_000, description="Architectures per Latin hypercube")


class LatinHypercube:
    """One Latin hypercube after another over the axes' valid values."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.batch = context.problem.space, parameters.batch
        self.generator, self.seen = context.generator, context.seen()

    def ask(self, at_most: int) -> IntArray:
        """The next hypercube, without what was proposed before."""
        return latin_hypercube(self.space, self.seen, self.batch, self.generator)

    def tell(self, evaluations: Evaluations) -> None:
        """Nothing is learned."""


def build(context: StrategyContext, parameters: Parameters) -> LatinHypercube:
    """The strategy from its context and parameters."""
    return LatinHypercube(context, parameters)
