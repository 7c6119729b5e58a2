"""NSGA-III (Deb and Jain 2014) with uniform crossover on integer genes, new architectures only (Optuna)."""

from itertools import count
from math import comb

from optuna.samplers import NSGAIIISampler
from pydantic import Field

from nas.strategies import optuna_nsga2
from nas.strategies._optuna import ByGeneration, Lineage
from nas.strategy import Brief, Traits

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


def divisions_of(objectives: int, population: int) -> int:
    """The most divisions whose reference points, C(divisions + m − 1, m − 1), do not outnumber the population."""
    if objectives == 1:
        return 1
    return next(d for d in count(1) if comb(d + objectives, objectives - 1) > population)


def build(brief: Brief, parameters: Parameters) -> ByGeneration:
    """The strategy from its brief and parameters."""
    mutation = optuna_nsga2.mutation_of(parameters)
    divisions = parameters.divisions or divisions_of(len(brief.problem.objectives), parameters.population)

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

    return ByGeneration(brief, parameters.repeats, parameters.population, make)
