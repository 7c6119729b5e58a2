"""NSGA-II (Deb et al. 2002) on integer genes, new architectures only (pymoo)."""

from functools import partial
from typing import Any

import numpy as np
from pydantic import Field
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

from nas.search.strategy import Brief, Traits
from nas.strategies._breeding import Steady
from nas.strategies._pymoo import PymooStrategy, Variation
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy; the defaults suit axes of few values, where small real steps round to nothing."""

    population: int = Field(100, strict=True, ge=4, le=100_000, description="Individuals kept and bred from")
    offspring: int = Field(20, strict=True, ge=1, le=100_000, description="Individuals bred before the next selection")
    crossover_probability: float = Field(0.5, ge=0, le=1, description="Probability of crossing two parents")
    mutation_eta: float = Field(5.0, gt=0, le=1000, description="Polynomial-mutation distribution index")


class Survival(RankAndCrowding):  # type: ignore[misc]
    """pymoo's, which reads each attribute of each individual once."""

    def do(self, problem: Any, pop: Any, *arguments: Any, **options: Any) -> Any:
        """The survivors of a population."""
        return super().do(problem, pop.view(Steady), *arguments, **options)


def winners(pop: Any, pairs: IntArray, *, random_state: np.random.Generator, **_: Any) -> IntArray:
    """Rows that win their pairs (n, 2): the less violating, the dominating, the less crowded; ties by a coin, in order, (n, 1).

    pymoo's own rule and coins, for all pairs at once.
    """
    violation = pop.get("CV")[pairs, 0]
    values = pop.get("F")[pairs]
    crowding = pop.get("crowding")[pairs].astype(np.float64)
    better, worse = (values[:, 0] < values[:, 1]).any(axis=1), (values[:, 0] > values[:, 1]).any(axis=1)
    lead = np.where(better != worse, better.astype(np.int64) - worse, -compared(crowding))
    lead = np.where((violation > 0).any(axis=1), compared(violation), lead)
    winner = np.where(lead > 0, pairs[:, 0], pairs[:, 1])
    for tie in np.flatnonzero(lead == 0):
        winner[tie] = random_state.choice(pairs[tie])
    return winner[:, None]


def compared(values: FloatArray) -> IntArray:
    """1 where the first of two values (n, 2) is lower, −1 where the second is, 0 where neither, (n,); infinities too."""
    return (values[:, 0] < values[:, 1]).astype(np.int64) - (values[:, 0] > values[:, 1])


def build(brief: Brief, parameters: Parameters) -> PymooStrategy:
    """The strategy from its brief and parameters."""
    selection = TournamentSelection(func_comp=winners)
    make = partial(NSGA2, selection=selection, survival=Survival(), n_offsprings=parameters.offspring)
    return PymooStrategy(brief, parameters, make)
