"""NSGA-II (Deb et al. 2002) with uniform crossover on integer genes, new architectures only (Optuna)."""

from typing import Literal

from optuna.samplers import NSGAIISampler
from optuna.samplers.nsgaii import BaseMutation, PolynomialMutation
from pydantic import Field

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._optuna import REPEATS, ByGeneration, Lineage, Repeats, quiet
from nas.strategies._variation import Bred

TRAITS = Traits(seedable=True)


class Parameters(Bred):
    """Parameters of the strategy."""

    population: int = Field(100, strict=True, ge=2, le=100_000, description="Individuals kept and bred per generation")
    crossover_probability: float = Field(0.9, ge=0, le=1, description="Probability of crossing two parents")
    swapping_probability: float = Field(
        0.5, ge=0, le=1, description="Probability of taking a gene from the other parent"
    )
    mutation_probability: float | None = Field(
        None, ge=0, le=1, description="Probability of mutating a gene; none is one gene of an offspring on average"
    )
    mutation: Literal["resample", "polynomial"] = Field(
        "resample", description="What mutation does to a gene: any value, or one that is likely near"
    )
    mutation_eta: float = Field(20.0, ge=0, le=1000, description="Polynomial mutation's index; larger stays nearer")
    repeats: Repeats = Field("neighbour", description=REPEATS)


class Nsga2(Lineage, NSGAIISampler):
    """Optuna's NSGA-II, handed its parents."""


def mutation_of(parameters: Parameters) -> BaseMutation | None:
    """Optuna's mutation object; none resamples a gene."""
    if parameters.mutation == "resample":
        return None
    with quiet():
        return PolynomialMutation(parameters.mutation_eta)


def build(context: StrategyContext, parameters: Parameters) -> ByGeneration:
    """The strategy from its context and parameters."""
    mutation = mutation_of(parameters)

    def make(seed: int) -> Lineage:
        return Nsga2(
            population_size=parameters.population,
            mutation=mutation,
            mutation_prob=parameters.mutation_probability,
            crossover_prob=parameters.crossover_probability,
            swapping_prob=parameters.swapping_probability,
            seed=seed,
        )

    return ByGeneration(context, parameters.repeats, parameters.population, make)
