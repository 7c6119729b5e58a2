"""NSGA-II (Deb et al. 2002) on integer genes, new architectures only (pymoo)."""

from pydantic import BaseModel, ConfigDict, Field
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.mutation.pm import PM

from nas.strategies._pymoo import PymooStrategy
from nas.strategy import Brief, Traits

TRAITS = Traits(seedable=True)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    population: int = Field(100, strict=True, ge=4, le=100_000, description="Individuals kept and bred per generation")
    crossover_probability: float = Field(0.9, ge=0, le=1, description="Probability of crossing two parents")
    crossover_eta: float = Field(
        15.0, gt=0, le=1000, description="SBX distribution index; larger stays nearer the parents"
    )
    mutation_probability: float = Field(0.9, ge=0, le=1, description="Probability of mutating an offspring")
    mutation_eta: float = Field(20.0, gt=0, le=1000, description="Polynomial-mutation distribution index")


def build(brief: Brief, parameters: Parameters) -> PymooStrategy:
    """The strategy from its brief and parameters."""
    return PymooStrategy(
        brief,
        lambda operators: NSGA2(pop_size=parameters.population, **operators),
        parameters.population,
        SBX(prob=parameters.crossover_probability, eta=parameters.crossover_eta),
        PM(prob=parameters.mutation_probability, eta=parameters.mutation_eta),
    )
