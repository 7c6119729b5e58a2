"""NSGA-III (Deb and Jain 2014) with uniform crossover on integer genes, new architectures only (Optuna)."""

from optuna.samplers import NSGAIIISampler
from pydantic import Field

from nas.search.strategy import StrategyContext, Traits
from nas.strategies import optuna_nsga2
from nas.strategies._directions import divisions_of
from nas.strategies._optuna import ByGeneration, Lineage

TRAITS = Traits(seedable=True)


class Parameters(optuna_nsga2.Parameters):
    """Parameters of the strategy."""

    divisions: int | None = Field(
        None,
        strict=True,
        ge=1,
        le=1000,
        description="Divisions of an objective between reference points; none is as many as the population can hold",
    )


class Nsga3(Lineage, NSGAIIISampler):
    """Optuna's NSGA-III, handed its parents."""


def build(context: StrategyContext, parameters: Parameters) -> ByGeneration:
    """The strategy from its context and parameters."""
    mutation = optuna_nsga2.mutation_of(parameters)
    divisions = parameters.divisions or divisions_of(len(context.problem.objectives), parameters.population)

    def make(seed: int) -> Lineage:
        return Nsga3(
            population_size=parameters.population,
            mutation=mutation,
            mutation_prob=parameters.mutation_probability,
            crossover_prob=parameters.crossover_probability,
            swapping_prob=parameters.swapping_probability,
            dividing_parameter=divisions,
            seed=seed,
        )

    return ByGeneration(context, parameters.repeats, parameters.population, make)
