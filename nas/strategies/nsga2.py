"""NSGA-II (Deb et al. 2002) on integer genes, new architectures only (pymoo)."""

from functools import partial

from pydantic import Field
from pymoo.algorithms.moo.nsga2 import NSGA2

from nas.search.strategy import Brief, Traits
from nas.strategies._pymoo import PymooStrategy, Variation

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy; the defaults suit axes of few values, where small real steps round to nothing."""

    population: int = Field(100, strict=True, ge=4, le=100_000, description="Individuals kept and bred from")
    offspring: int = Field(20, strict=True, ge=1, le=100_000, description="Individuals bred before the next selection")
    crossover_probability: float = Field(0.5, ge=0, le=1, description="Probability of crossing two parents")
    mutation_eta: float = Field(5.0, gt=0, le=1000, description="Polynomial-mutation distribution index")


def build(brief: Brief, parameters: Parameters) -> PymooStrategy:
    """The strategy from its brief and parameters."""
    return PymooStrategy(brief, parameters, partial(NSGA2, n_offsprings=parameters.offspring))
