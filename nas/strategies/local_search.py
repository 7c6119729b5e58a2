"""Pareto local search (Paquete, Chiarandini and Stützle 2004) over one-step neighbours."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.evaluations import Evaluations
from nas.key_index import KeyIndex
from nas.strategies._designs import latin_hypercube
from nas.strategies._front import Front
from nas.strategy import Brief, Traits
from nas.unseen import draw_unseen
from search_spaces.arrays import IntArray

TRAITS = Traits(seedable=True)


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        100, strict=True, ge=1, le=1_000_000, description="Latin hypercube to start from, besides given designs"
    )
    explored: int = Field(
        10, strict=True, ge=1, le=100_000, description="Frontier members whose neighbours are asked at once"
    )
    restart: int = Field(
        50, strict=True, ge=1, le=1_000_000, description="New random architectures when all neighbours are known"
    )


class LocalSearch:
    """Explores the neighbours of every frontier member once; restarts at random when all are known."""

    def __init__(self, brief: Brief, parameters: Parameters) -> None:
        self.space, self.parameters, self.start = brief.problem.space, parameters, brief.start
        self.generator, self.seen, self.explored = brief.generator, KeyIndex(), KeyIndex()
        self.front = Front(brief.problem.objectives, len(self.space.gene_sizes))
        self.asked = False

    def ask(self, at_most: int) -> IntArray:
        """Unknown neighbours of the next unexplored frontier members; the first design at first."""
        if not self.asked:
            self.asked = True
            self.seen.add(self.space.keys(self.start))
            cube = latin_hypercube(self.space, self.seen, self.parameters.initial, self.generator)
            return np.concatenate([self.start, cube])
        while len(chosen := self._unexplored()):
            self.explored.add(self.front.keys[chosen])
            near = self.space.neighbours(self.front.genotypes[chosen])
            if len(near := near[self.seen.add(self.space.keys(near))]):
                return near
        return self.space.genotypes(draw_unseen(self.space.size, self.seen, self.parameters.restart, self.generator))

    def _unexplored(self) -> IntArray:
        """Some frontier members not yet explored, in random order."""
        rows = np.flatnonzero(self.explored.rows(self.front.keys) < 0)
        return self.generator.permutation(rows)[: self.parameters.explored]

    def tell(self, evaluations: Evaluations) -> None:
        """Update the frontier."""
        self.front.update(evaluations)


def build(brief: Brief, parameters: Parameters) -> LocalSearch:
    """The strategy from its brief and parameters."""
    return LocalSearch(brief, parameters)
