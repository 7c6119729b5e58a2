"""A search space by parts: partners (depth, width, KV heads) and a lattice of FFNs (E, K, m) per width."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray
from search_spaces.columns import SHAPE
from search_spaces.space import SearchSpace


@dataclass(frozen=True, eq=False)
class Grid:
    """Every `stride`-th value of the axes (1: the whole space), the last ones always among them.

    A group holds the experts that one top_k allows, ascending, dense layers apart. A position counts
    values of a group (E) or of a width (m) in steps of the stride.
    """

    space: SearchSpace
    stride: int = 1

    @cached_property
    def depths(self) -> IntArray:
        """Depth genes."""
        return _every(np.arange(len(self.space.depths)), self.stride)

    @cached_property
    def widths(self) -> IntArray:
        """Width genes."""
        return _every(np.arange(len(self.space.widths)), self.stride)

    @cached_property
    def _members(self) -> list[tuple[int, IntArray]]:
        """Groups as (top_k gene, n_experts genes)."""
        groups = []
        for top_k, valid in enumerate(self.space.top_k_gene.valid.T):
            experts = np.flatnonzero(valid)
            dense = self.space.experts[experts] == 1
            groups += [(top_k, _every(part, self.stride)) for part in (experts[dense], experts[~dense]) if len(part)]
        return groups

    @cached_property
    def group_top_k(self) -> IntArray:
        """top_k gene per group."""
        return np.array([top_k for top_k, _ in self._members])

    @cached_property
    def group_counts(self) -> IntArray:
        """Positions per group."""
        return np.array([len(experts) for _, experts in self._members])

    @cached_property
    def group_experts(self) -> IntArray:
        """n_experts gene per group and position, (groups, positions)."""
        table = np.zeros((len(self._members), self.group_counts.max()), dtype=np.int64)
        for row, (_, experts) in zip(table, self._members, strict=True):
            row[: len(experts)] = experts
        return table

    @cached_property
    def size_counts(self) -> IntArray:
        """Positions of expert sizes per width gene."""
        return (self.space.ffn_gene.counts + self.stride - 2) // self.stride + 1

    def ffn_genes(self, width: IntArray, position: IntArray) -> IntArray:
        """FFN gene of a position."""
        rank = np.minimum(position * self.stride, self.space.ffn_gene.counts[width] - 1)
        return self.space.ffn_gene.nth[width, rank]

    def ffns(self, width: IntArray, group: IntArray, expert: IntArray, size: IntArray) -> Architectures:
        """One-layer architectures with these FFNs, (n,); their attention is the width's first."""
        genes = self.ffn_genes(width, size)
        experts, top_k = self.group_experts[group, expert], self.group_top_k[group]
        kv = self.space.kv_gene.nth[width, 0]
        return one_layer(self.space.architectures(np.stack([0 * width, width, experts, top_k, genes, kv], axis=1)))


@dataclass(frozen=True, eq=False)
class Partners:
    """What an FFN is combined with: genes of depth, width and KV heads, (p,), the widths in order."""

    depth: IntArray
    width: IntArray
    kv: IntArray

    @classmethod
    def of(cls, grid: Grid) -> "Partners":
        """Every combination of a grid."""
        counts = grid.space.kv_gene.counts[grid.widths]
        pair_width = np.repeat(grid.widths, counts)
        rank = np.arange(len(pair_width)) - np.repeat(np.cumsum(counts) - counts, counts)
        kv = grid.space.kv_gene.nth[pair_width, rank]
        n = len(grid.depths)
        pairs = np.repeat(np.arange(len(pair_width)), n)
        return cls(np.tile(grid.depths, len(pair_width)), pair_width[pairs], kv[pairs])

    def __len__(self) -> int:
        return len(self.depth)

    def architectures(self, space: SearchSpace) -> Architectures:
        """Whole architectures with these depths, widths and KV heads, and the smallest dense or sparse FFN."""
        experts = np.zeros(len(self), dtype=np.int64)
        top_k = space.top_k_gene.nth[experts, 0]
        ffn = space.ffn_gene.nth[self.width, 0]
        return space.architectures(np.stack([self.depth, self.width, experts, top_k, ffn, self.kv], axis=1))


def one_layer(architectures: Architectures) -> Architectures:
    """The same layers, one of each."""
    shape = {name: getattr(architectures, name) for name in SHAPE}
    return Architectures.from_shape({**shape, "depth": np.ones(len(architectures), dtype=np.int64)})


def _every(values: IntArray, stride: int) -> IntArray:
    """Every stride-th value and the last."""
    return np.unique(np.append(values[::stride], values[-1:]))
