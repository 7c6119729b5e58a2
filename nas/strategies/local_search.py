"""Pareto local search (Paquete, Chiarandini and Stützle 2004) in halving steps, widest gaps first; restarts where steps fail."""

from collections import Counter

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nas.problem.evaluations import Evaluations
from nas.search.archive import draw_unseen
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._front import Front, latin_hypercube
from search_spaces.arrays import IntArray

TRAITS = Traits(seedable=True, asynchronous=True)
COARSEST = 1 / 8  # of an axis; one value where it has fewer than 16, as every axis of the paper's space
SHARE = 1 / 50  # of a large frontier, explored at once: its upkeep per ask grows with its members
NEIGHBOUR, KICK, DRAW = range(3)  # ways to ask
PAYS = 0.15  # new frontier values per neighbour, from which on nothing but neighbours is asked
SELDOM = 0.1  # probability of neighbours where they bring nothing
HALF_LIFE = 50  # designs after which a success counts half
LEAST_PART = 0.25  # of a restart, for kicks and for draws


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(
        40, strict=True, ge=1, le=1_000_000, description="Latin hypercube to start from, besides given designs"
    )
    explored: int = Field(
        5, strict=True, ge=1, le=100_000, description="Frontier members whose neighbours are proposed at once, at least"
    )
    restart: int = Field(
        50, strict=True, ge=1, le=1_000_000, description="Kicked and random architectures where neighbours do not pay"
    )


class LocalSearch:
    """Explores frontier members, those at its widest gaps first; restarts the more often the less that brings.

    A member's neighbours are at first an eighth of an axis away: one value along an axis of hundreds
    leads nowhere. When it is explored again, still on the frontier, the step is half as long, as in
    a direct multisearch (Custódio et al. 2011), until it is one value on every axis.

    Where hardly a single step leads to anything, or all of them are known, a restart asks for kicks (frontier members with two
    genes or more changed) and for random architectures, more of what has paid of late.
    """

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.parameters, self.start = context.problem.space, parameters, context.start
        self.generator, self.seen = context.generator, context.seen()
        self.front = Front(context.problem.objectives, len(self.space.gene_sizes), context.known)
        self.initial = max(parameters.initial - context.known_rows, 0)
        self.steps = max(1, int(COARSEST * self.space.gene_sizes.max()).bit_length())
        self.explored: Counter[int] = Counter()
        self.ways: dict[int, int] = {}  # how each key was asked for
        self.paid = np.ones(3)  # new frontier values per design of each way, of late
        self.asked, self.asynchronous = False, context.asynchronous

    def ask(self, at_most: int) -> IntArray:
        """Unknown neighbours of the next frontier members to explore, or a restart; the first design at first."""
        if not self.asked and len(self.start) + self.initial:
            self.asked = True
            self.seen.add(self.space.keys(self.start))
            return np.concatenate([self.start, latin_hypercube(self.space, self.seen, self.initial, self.generator)])
        probability = max(self.paid[NEIGHBOUR] / PAYS, SELDOM)
        if probability >= 1.0 or self.generator.random() < probability:
            while (times := self._times_explored()).min(initial=self.steps) < self.steps:
                if len(near := self._new(self._neighbours(times), NEIGHBOUR)):
                    return near
        return self._restart(min(self.parameters.restart, at_most) if self.asynchronous else self.parameters.restart)

    def _new(self, genotypes: IntArray, way: int) -> IntArray:
        """Designs that were never proposed, recorded with the way in which they are."""
        keys = self.space.keys(genotypes)
        new = self.seen.add(keys)
        self.ways.update(dict.fromkeys(keys[new].tolist(), way))
        return genotypes[new]

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

    def _restart(self, n: int) -> IntArray:
        """Kicks and random architectures, each in proportion to what it brought of late, but a quarter at least, (n, g)."""
        part = self.paid[KICK] / max(self.paid[KICK] + self.paid[DRAW], 1e-9)
        wanted = int(n * min(max(part, LEAST_PART), 1.0 - LEAST_PART) + self.generator.random())
        kicked = self._new(self._kicks(wanted), KICK) if len(self.front) else self.front.genotypes
        drawn = draw_unseen(self.space.size, self.seen, n - len(kicked), self.generator)
        self.ways.update(dict.fromkeys(drawn.tolist(), DRAW))
        return np.concatenate([kicked, self.space.genotypes(drawn)])

    def _kicks(self, n: int) -> IntArray:
        """Frontier members with k ≥ 2 genes moved, P(k) ∝ k^−1.5, each by l ≥ 1 values, P(length ≥ l) = 1/l, (n, g)."""
        members = self.front.genotypes[self.generator.integers(len(self.front), size=n)]
        genes = members.shape[1]
        sizes = np.arange(min(2, genes), genes + 1)
        weights = sizes**-1.5
        count = self.generator.choice(sizes, size=n, p=weights / weights.sum())
        chosen = np.argsort(self.generator.random((n, genes)), axis=1) < count[:, None]
        lengths = np.minimum(1.0 / (1.0 - self.generator.random((n, genes))), self.space.gene_sizes).astype(np.int64)
        signs = self.generator.choice([-1, 1], size=(n, genes))
        return self.space.repair(members + chosen * signs * lengths)

    def tell(self, evaluations: Evaluations) -> None:
        """Update the frontier, and what each way of asking brings."""
        before = set(map(tuple, self.front.values.tolist()))
        self.front.update(evaluations)
        on_front = np.isin(evaluations.keys, self.front.keys).tolist()
        told, gained = np.zeros(3), np.zeros(3)
        for key, values, member in zip(evaluations.keys.tolist(), evaluations.values.tolist(), on_front, strict=True):
            if (way := self.ways.pop(key, None)) is None:
                continue
            told[way] += 1
            if member and (new := tuple(values)) not in before:  # a plateau's equals are no gain
                gained[way] += 1
                before.add(new)
        kept = 0.5 ** (told / HALF_LIFE)
        self.paid = kept * self.paid + (1.0 - kept) * gained / np.maximum(told, 1.0)


def build(context: StrategyContext, parameters: Parameters) -> LocalSearch:
    """The strategy from its context and parameters."""
    return LocalSearch(context, parameters)
