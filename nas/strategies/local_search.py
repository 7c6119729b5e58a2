"""Pareto local search (Paquete, Chiarandini and Stützle 2004) in halving steps, the frontier's widest gaps first."""

from collections import Counter

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations
from nas.search.key_index import KeyIndex
from nas.search.strategy import Brief, Traits
from nas.search.unseen import draw_unseen
from nas.strategies._front import Front
from nas.strategies._space_filling import latin_hypercube
from search_spaces.arrays import IntArray

TRAITS = Traits(seedable=True, asynchronous=True)
COARSEST = 1 / 8  # of an axis; one value where it has fewer than 16, as every axis of the paper's space
SHARE = 1 / 50  # of a large frontier, explored at once: its upkeep per ask grows with its members


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        40, strict=True, ge=1, le=1_000_000, description="Latin hypercube to start from, besides given designs"
    )
    explored: int = Field(
        5, strict=True, ge=1, le=100_000, description="Frontier members whose neighbours are asked at once, at least"
    )
    restart: int = Field(
        50, strict=True, ge=1, le=1_000_000, description="New random architectures when all neighbours are known"
    )


class LocalSearch:
    """Explores frontier members, those at its widest gaps first; restarts at random when all neighbours are known.

    A member's neighbours are at first an eighth of an axis away: one value along an axis of hundreds
    leads nowhere. When it is explored again, still on the frontier, the step is half as long, as in
    a direct multisearch (Custódio et al. 2011), until it is one value on every axis.
    """

    def __init__(self, brief: Brief, parameters: Parameters) -> None:
        self.space, self.parameters, self.start = brief.problem.space, parameters, brief.start
        self.generator, self.seen = brief.generator, KeyIndex()
        self.front = Front(brief.problem.objectives, len(self.space.gene_sizes))
        self.steps = max(1, int(COARSEST * self.space.gene_sizes.max()).bit_length())
        self.explored: Counter[int] = Counter()
        self.asked, self.asynchronous = False, brief.asynchronous

    def ask(self, at_most: int) -> IntArray:
        """Unknown neighbours of the next frontier members to explore; the first design at first."""
        if not self.asked:
            self.asked = True
            self.seen.add(self.space.keys(self.start))
            cube = latin_hypercube(self.space, self.seen, self.parameters.initial, self.generator)
            return np.concatenate([self.start, cube])
        while (times := self._times_explored()).min(initial=self.steps) < self.steps:
            near = self._neighbours(times)
            if len(near := near[self.seen.add(self.space.keys(near))]):
                return near
        restart = min(self.parameters.restart, at_most) if self.asynchronous else self.parameters.restart
        return self.space.genotypes(draw_unseen(self.space.size, self.seen, restart, self.generator))

    def _times_explored(self) -> IntArray:
        """How often each frontier member was explored, (n,): the times that its step was halved."""
        return np.array([self.explored[key] for key in self.front.keys.tolist()], dtype=np.int64)

    def _neighbours(self, times: IntArray) -> IntArray:
        """Neighbours of some members with steps left, known ones too; of equally crowded members, some at random."""
        rows = self.generator.permutation(np.flatnonzero(times < self.steps))
        widest = np.argsort(-self.front.crowding()[rows], kind="stable")
        many = 1 if self.asynchronous else max(self.parameters.explored, int(SHARE * len(times)))
        chosen = rows[widest[:many]]
        self.explored.update(self.front.keys[chosen].tolist())
        return self.space.neighbours(self.front.genotypes[chosen], COARSEST * 0.5 ** times[chosen])

    def tell(self, evaluations: Evaluations) -> None:
        """Update the frontier."""
        self.front.update(evaluations)


def build(brief: Brief, parameters: Parameters) -> LocalSearch:
    """The strategy from its brief and parameters."""
    return LocalSearch(brief, parameters)
