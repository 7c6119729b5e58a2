"""NSGA-III (Deb and Jain 2014) on integer genes, new architectures only (pymoo)."""

from pydantic import Field
from pymoo.algorithms.moo.nsga3 import NSGA3

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._directions import directions
from nas.strategies._pymoo import DIVISIONS, PymooStrategy, tournament
from nas.strategies._variation import Variation

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(100, strict=True, ge=4, le=5000, description="Individuals kept and bred per generation")
    divisions: int | None = DIVISIONS


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters."""
    towards = directions(len(context.problem.objectives), parameters.population, parameters.divisions)
    return PymooStrategy(context, parameters, lambda **operators: NSGA3(towards, selection=tournament(), **operators))
