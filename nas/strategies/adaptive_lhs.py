"""Adaptive Latin hypercube refinement (Sun et al. 2026): fill the frontier's gaps, explore its neighbourhoods."""

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from nas.problem.evaluations import Evaluations, Scale, too_many
from nas.search.strategy import StrategyContext, Traits
from nas.strategies._front import Front, hypercube, latin_hypercube
from search_spaces.arrays import FloatArray, IntArray

TRAITS = Traits(seedable=True)
SPANNED = 1500


class Parameters(BaseModel):
    """Parameters of the strategy."""

    model_config = ConfigDict(extra="forbid")
    initial: int = Field(200, strict=True, ge=1, le=1_000_000, description="Latin hypercube to start from")
    batch: int = Field(50, strict=True, ge=1, le=100_000, description="Architectures per round")
    gap_share: float = Field(0.3, ge=0, le=1, description="Share of a round in gaps; the rest in neighbourhoods")
    gaps: int = Field(10, strict=True, ge=1, le=10_000, description="Largest gaps that share a round")
    margin: int = Field(1, strict=True, ge=0, le=100, description="Steps around a gap's ends that are sampled too")
    refine: Literal["both", "gaps", "neighbourhoods", "none"] = Field(
        "both", description="Ablations: none is LHS alone"
    )
    patience: int = Field(5, strict=True, ge=1, le=10_000, description="Rounds without progress before it stops")
    tolerance: float = Field(1e-6, ge=0, le=1, description="Relative hypervolume gain that counts as progress")


class AdaptiveLhs:
    """Latin hypercube first, then rounds until the frontier is stable.

    A gap is an edge of the minimum spanning tree over the frontier in normalised objective space
    (with two objectives: between consecutive points). Its box spans the genes of both ends plus a
    margin, and is sampled by a Latin hypercube.
    """

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.space, self.parameters, self.start = context.problem.space, parameters, context.start
        self.generator, self.seen = context.generator, context.seen()
        self.objectives, self.initial = context.problem.objectives, max(parameters.initial - context.known_rows, 0)
        self.front = Front(self.objectives, len(self.space.gene_sizes), context.known)
        self.round, self.calm, self.finished = 0, 0, ""

    def ask(self, at_most: int) -> IntArray:
        """The first hypercube with the given designs, then a round of gaps and neighbourhoods; nothing when stable."""
        p = self.parameters
        if self.round == 0 and len(self.start) + self.initial:
            self.seen.add(self.space.keys(self.start))
            return np.concatenate([self.start, self._cube(self.initial)])
        if self.finished or p.refine == "none":
            return self._cube(0 if self.finished else p.batch)
        if len(self.front) == 0:
            return self._cube(p.batch)
        share = {"gaps": 1.0, "neighbourhoods": 0.0}.get(p.refine, p.gap_share)
        near = self._neighbourhoods(p.batch - round(share * p.batch))
        across = self._gaps(p.batch - len(near)) if share > 0 else near[:0]
        more = self._neighbourhoods(p.batch - len(near) - len(across)) if share < 1 else near[:0]
        found = np.concatenate([across, near, more])
        return found if len(found) else self._cube(p.batch)

    def _cube(self, n: int) -> IntArray:
        return latin_hypercube(self.space, self.seen, n, self.generator)

    def _neighbourhoods(self, n: int) -> IntArray:
        """Up to n unknown one-step neighbours of frontier members, drawn at random."""
        if n == 0:
            return self.space.genotypes(np.zeros(0, dtype=np.int64))
        near = self.space.neighbours(self.front.genotypes)
        near = near[self.seen.rows(self.space.keys(near)) < 0]
        chosen = near[self.generator.permutation(len(near))[:n]]
        self.seen.add(self.space.keys(chosen))
        return chosen

    def _gaps(self, n: int) -> IntArray:
        """Up to n unknown architectures between and around the ends of the largest gaps, largest first."""
        ends = self._largest_gaps()
        chosen: list[IntArray] = [ends[:0, 0]]
        for i, (first, second) in enumerate(ends):
            wanted = -(-(n - sum(map(len, chosen))) // (len(ends) - i))
            chosen.append(self._in_box(first, second, wanted))
        return np.concatenate(chosen)

    def _largest_gaps(self) -> IntArray:
        """Genotypes of both ends of the longest edges, (gaps, 2, g); of a single point, the point twice."""
        members = self.generator.permutation(len(self.front))[:SPANNED]
        if len(members) < 2:
            return np.repeat(self.front.genotypes[:1, None], 2, axis=1)
        pairs, lengths = edges(self.front.normalised()[members], chain=self.front.feasible)
        longest = np.argsort(-lengths, kind="stable")[: self.parameters.gaps]
        ends: IntArray = self.front.genotypes[members[pairs[longest]]]
        return ends

    def _in_box(self, first: IntArray, second: IntArray, n: int) -> IntArray:
        """A Latin hypercube in the box of two genotypes and the margin around it: up to n unknown ones."""
        low, high = (
            np.minimum(first, second) - self.parameters.margin,
            np.maximum(first, second) + self.parameters.margin,
        )
        points = hypercube(max(2 * n, 1), len(low), self.generator)
        genotypes = self.space.repair(np.floor(low + points * (high - low + 1)).astype(np.int64))
        keys = self.space.keys(genotypes)
        fresh = np.sort(np.unique(keys, return_index=True)[1])
        fresh = fresh[self.seen.rows(keys[fresh]) < 0][:n]
        self.seen.add(keys[fresh])
        return genotypes[fresh]

    def tell(self, evaluations: Evaluations) -> None:
        """Update the frontier; stop when it has been stable for `patience` rounds."""
        before = self.front.values
        self.round += 1
        improved = self.front.update(evaluations)
        gained = improved and self._gain(before) > self.parameters.tolerance
        self.calm = 0 if gained or not self.front.feasible or self.round == 1 else self.calm + 1
        if self.calm >= self.parameters.patience and self.parameters.refine != "none":
            self.finished = f"frontier stable for {self.calm} rounds"

    def _gain(self, before: FloatArray) -> float:
        """Share of the new frontier's hypervolume that the old one lacked."""
        scale, now = Scale.from_frontier(self.objectives, self.front.values), self.front.values
        rough = too_many(before) or too_many(now)
        return 1.0 - scale.hypervolume(before, approximate=rough) / (scale.hypervolume(now, approximate=rough) or 1.0)


def edges(points: FloatArray, *, chain: bool) -> tuple[IntArray, FloatArray]:
    """Edges of the minimum spanning tree of points (n, m), (n − 1, 2), with their lengths.

    A frontier of two objectives is a chain, in which the tree's edges lead from one point to the next: no other two are nearer
    than all that lie between them.
    """
    if chain and points.shape[1] == 2:
        order = np.lexsort((-points[:, 1], points[:, 0]))
        return np.stack([order[:-1], order[1:]], axis=1), np.hypot(*np.diff(points[order], axis=0).T)
    tree = minimum_spanning_tree(cdist(points, points) + 1e-12 * (1 - np.eye(len(points)))).tocoo()
    return np.stack([tree.row, tree.col], axis=1), tree.data


def build(context: StrategyContext, parameters: Parameters) -> AdaptiveLhs:
    """The strategy from its context and parameters."""
    return AdaptiveLhs(context, parameters)
