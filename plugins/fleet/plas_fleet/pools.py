"""Designs of which a fleet may be made: all of them together, or, of a family, those that agree in all genes but its own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plas_fleet.designs import Designs
from plas_fleet.patterns import Patterns, joined
from plas_fleet.question import GENES, FleetConfig
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace


@dataclass(frozen=True, eq=False)
class Pools:
    """Designs in pools, rows from `starts` on, and what may be besides, of which one pool at most is known.

    budget: what the costs of a fleet may add up to; ∞ for families, which cost as much as their largest member: larger ones are left out.
    """

    designs: Patterns
    unsettled: Patterns
    starts: IntArray
    cases: int
    budget: float

    @classmethod
    def of(cls, designs: Designs, cases: int, space: SearchSpace, asked: FleetConfig) -> "Pools":
        """The pools of a question."""
        known, left = (each[each.cost <= asked.most_cost] for each in (designs.known, designs.unsettled))
        if asked.family is None:
            return cls(known, left, np.zeros(1, dtype=np.int64), cases, asked.most_cost)
        groups = _groups(space, known.keys, asked.family)
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        return cls(known[order], left, starts, cases, np.inf)

    def __len__(self) -> int:
        return len(self.starts)

    def pool(self, number: int) -> Patterns:
        """The designs of a pool that none of it beats."""
        ends = np.append(self.starts[1:], len(self.designs))
        found = self.designs[slice(int(self.starts[number]), int(ends[number]))].reduced()
        if np.isinf(self.budget):
            return Patterns(found.keys, found.masks, found.loss, np.zeros(len(found))).reduced()
        return found

    def with_unsettled(self) -> Patterns:
        """Everything that may be, where a search was not ended."""
        return joined([self.designs, self.unsettled]).reduced()

    def least(self) -> FloatArray:
        """The least loss of each pool in each case, (pools, cases); ∞ where no design of it fits."""
        if len(self.designs) == 0:
            return np.full((len(self), self.cases), np.inf)
        fits = self.designs.fits(self.cases)
        columns = [np.where(fits[:, case], self.designs.loss, np.inf) for case in range(self.cases)]
        return np.stack([np.minimum.reduceat(column, self.starts) for column in columns], axis=1)


def _groups(space: SearchSpace, keys: IntArray, family: str) -> IntArray:
    """A number per design: equal where two agree in all genes but those of the family, (n,)."""
    found = np.zeros(len(keys), dtype=np.int64)
    for rows in _in_parts(len(keys)):
        genotypes = space.genotypes(keys[rows])
        for place, (gene, size) in enumerate(zip(space.genes, space.gene_sizes.tolist(), strict=True)):
            if gene not in GENES[family]:
                found[rows] = found[rows] * size + genotypes[:, place]
    return found


def _in_parts(n: int) -> Iterator[slice]:
    for start in range(0, n, 131_072):
        yield slice(start, start + 131_072)
