"""MOEA/D (Zhang and Li 2007) in generations on integer genes, new architectures only (pymoo)."""

from typing import Any, Literal

import numpy as np
from pydantic import Field
from pymoo.algorithms.base.genetic import GeneticAlgorithm
from pymoo.algorithms.moo.moead import NeighborhoodSelection
from pymoo.core.population import Population
from pymoo.decomposition.pbi import PBI
from pymoo.decomposition.tchebicheff import Tchebicheff
from scipy.spatial.distance import cdist

from nas.search.strategy import StrategyContext, Traits
from nas.strategies._directions import directions
from nas.strategies._pymoo import DIVISIONS, PymooStrategy
from nas.strategies._variation import Variation
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(seedable=True)


class Parameters(Variation):
    """Parameters of the strategy."""

    population: int = Field(
        100, strict=True, ge=4, le=5000, description="First generation, and at most so many subproblems"
    )
    divisions: int | None = DIVISIONS
    neighbours: int = Field(20, strict=True, ge=2, le=5000, description="Subproblems that share parents and children")
    neighbour_mating: float = Field(0.9, ge=0, le=1, description="Probability that both parents are neighbours")
    decomposition: Literal["tchebycheff", "pbi"] = Field(
        "tchebycheff", description="How a subproblem weighs the objectives: the worst of them, or boundary intersection"
    )


class Subproblems(GeneticAlgorithm):  # type: ignore[misc]
    """One current solution per weight vector (n, m); each generation breeds one new child for each of them.

    Objectives are normalised by the best of all and the worst current values. A failed child
    replaces nothing.
    """

    def __init__(self, weights: FloatArray, parameters: Parameters, **operators: Any) -> None:
        selection = NeighborhoodSelection(parameters.neighbour_mating)
        super().__init__(selection=selection, n_offsprings=len(weights), **operators)
        self.weights = np.maximum(weights, 1e-6)  # no objective is without any say
        # equally near ones, which all are with one objective, are neighbours by number
        place = np.column_stack([weights, 1e-9 * np.arange(len(weights))])
        self.neighbours = np.argsort(cdist(place, place), axis=1, kind="stable")[:, : parameters.neighbours]
        self.decomposition = PBI() if parameters.decomposition == "pbi" else Tchebicheff()
        self.served: IntArray = np.zeros(0, dtype=np.int64)
        self.ideal: FloatArray = np.full(weights.shape[1], np.inf)

    def _initialize_advance(self, infills: Any = None, **_: Any) -> None:
        """Every subproblem starts from one of the first generation; then each of them goes where it is best."""
        self.pop = infills[np.arange(len(self.weights)) % len(infills)]
        self.served = np.arange(len(infills)) % len(self.weights)
        self._advance(infills)

    def _infill(self) -> Any:
        """Children in the order of `served`; those that came out known are bred again, then left to be filled up."""
        waiting = self.random_state.permutation(len(self.weights))
        bred, served = Population.empty(), [waiting[:0]]
        for _ in range(self.mating.n_max_iterations):
            children = self._children(waiting)
            fresh = self.eliminate_duplicates.fresh(children.get("X"), len(children))
            bred, served = Population.merge(bred, children[fresh]), [*served, waiting[fresh]]
            waiting = np.delete(waiting, fresh)
            if len(waiting) == 0:
                break
        self.served = np.concatenate([*served, waiting])
        return bred

    def _children(self, subproblems: IntArray) -> Any:
        """The first child of a mating for each subproblem."""
        n, random_state = len(subproblems), self.random_state
        near = self.neighbours[subproblems]
        parents = self.mating.selection.do(self.problem, self.pop, n, 2, neighbors=near, random_state=random_state)
        both = self.mating._do(self.problem, self.pop, n, parents=parents, random_state=random_state)
        return self.repair.do(self.problem, both[:n])

    def _advance(self, infills: Any = None, **_: Any) -> None:
        known = Population.merge(self.pop, infills)
        sound = known[known.get("CV")[:, 0] <= 0].get("F")
        if len(sound):
            self.ideal = np.minimum(self.ideal, sound.min(axis=0))
        span = self.pop[self.pop.get("CV")[:, 0] <= 0].get("F").max(axis=0, initial=-np.inf) - self.ideal
        span = np.where((span > 0) & np.isfinite(span), span, 1.0)
        for subproblem, child in zip(self.served, infills, strict=False):
            self._replace(self.neighbours[subproblem], child, span)

    def _replace(self, near: IntArray, child: Any, span: FloatArray) -> None:
        """The child takes the place of neighbours that violate more, or as much and that it improves."""
        current = self.pop[near]
        excess = current.get("CV")[:, 0]
        old = self._scalar(current.get("F"), near, span)
        new = self._scalar(np.repeat(child.F[None], len(near), axis=0), near, span)
        self.pop[near[(child.CV[0] < excess) | (child.CV[0] == excess) & (new < old)]] = child

    def _scalar(self, values: FloatArray, near: IntArray, span: FloatArray) -> Any:
        """Values (k, m) as their subproblems (k,) see them, (k,)."""
        return self.decomposition.do(
            (values - self.ideal) / span,
            weights=self.weights[near],
            ideal_point=np.zeros(len(span)),
            _type="one_to_one",
        )


def build(context: StrategyContext, parameters: Parameters) -> PymooStrategy:
    """The strategy from its context and parameters; one objective has as many equal subproblems as individuals."""
    weights = directions(len(context.problem.objectives), parameters.population, parameters.divisions)
    if weights.shape[1] == 1:
        weights = np.ones((parameters.population, 1))
    return PymooStrategy(context, parameters, lambda **operators: Subproblems(weights, parameters, **operators))
