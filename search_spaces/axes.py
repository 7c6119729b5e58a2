"""The axes of a space: the values of each gene, and which of them another gene allows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.arrays import IntArray, frozen
from search_spaces.dependent_gene import DependentGene
from search_spaces.specification import SpaceSpecification, largest_top_k


@dataclass(frozen=True, eq=False)
class Axes:
    """Values of each gene in ascending order, and tables of what depends on n_experts (top_k) or width (FFN, KV heads)."""

    specification: SpaceSpecification

    @cached_property
    def depths(self) -> IntArray:
        """Axis of depth, layers."""
        return _axis(self.specification.axes.depth)

    @cached_property
    def widths(self) -> IntArray:
        """Axis of width, features."""
        return _axis(self.specification.axes.width)

    @cached_property
    def experts(self) -> IntArray:
        """Axis of n_experts."""
        return _axis(self.specification.axes.n_experts)

    @cached_property
    def top_ks(self) -> IntArray:
        """Axis of top_k."""
        return _axis(self.specification.axes.top_k)

    @cached_property
    def expert_sizes(self) -> IntArray:
        """m for each (width, FFN gene), integers, valid or not."""
        axes = self.specification.axes
        if axes.expert_size is not None:
            return frozen(np.tile(_axis(axes.expert_size), (len(self.widths), 1)))
        return frozen(np.rint(np.outer(self.widths, axes.expert_ffn_ratio or [])).astype(np.int64))

    @cached_property
    def n_heads(self) -> IntArray:
        """n_h = d / d_h for each width."""
        return frozen(self.widths // self.specification.head_dim)

    @cached_property
    def kv_values(self) -> IntArray:
        """n_kv for each (width, KV gene), valid or not; the symbol n_heads is the width's own."""
        columns = [
            self.n_heads if kv == "n_heads" else np.full(len(self.widths), kv) for kv in self.specification.kv_axis()
        ]
        return frozen(np.stack(columns, axis=1).astype(np.int64))

    @cached_property
    def top_k_gene(self) -> DependentGene:
        """Which top_k each n_experts allows."""
        conditions = self.specification.conditions
        largest = np.array([largest_top_k(int(experts), conditions) for experts in self.experts])
        return DependentGene.from_mask(self.top_ks <= largest[:, None])

    @cached_property
    def ffn_gene(self) -> DependentGene:
        """Which FFN values each width allows."""
        limit = self.specification.conditions.max_expert_ffn_ratio
        largest = np.inf if limit is None else limit * (1 + 1e-12)
        return DependentGene.from_mask(self.expert_sizes <= largest * self.widths[:, None])

    @cached_property
    def kv_gene(self) -> DependentGene:
        """Which KV heads each width allows."""
        values, heads = self.kv_values, self.n_heads[:, None]
        symbol = np.array([kv == "n_heads" for kv in self.specification.kv_axis()])
        listed = values[:, ~symbol]
        mask = (heads % values == 0) & (values <= heads)
        mask &= ~(symbol[None, :] & (listed == heads).any(axis=1)[:, None])
        return DependentGene.from_mask(mask)

    @cached_property
    def gene_sizes(self) -> IntArray:
        """Number of values per gene, (6,)."""
        sizes = [len(self.depths), len(self.widths), len(self.experts), len(self.top_ks)]
        return frozen(np.array([*sizes, self.expert_sizes.shape[1], self.kv_values.shape[1]]))

    @cached_property
    def repaired_kv(self) -> IntArray:
        """The valid KV gene for each (width, KV gene): the largest value not above it, else the smallest.

        By value, since the symbol n_heads stands last whatever it is worth.
        """
        repaired = self.kv_gene.repaired.copy()
        for width, gene in np.argwhere(~self.kv_gene.valid):
            valid = np.flatnonzero(self.kv_gene.valid[width])
            values = self.kv_values[width, valid]
            below = values <= self.kv_values[width, gene]
            repaired[width, gene] = (
                valid[np.argmax(np.where(below, values, -1))] if below.any() else valid[np.argmin(values)]
            )
        return frozen(repaired)


def _axis(values: list[int]) -> IntArray:
    return frozen(np.array(values, dtype=np.int64))
