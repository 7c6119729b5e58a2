"""The axes of a space: the values of each gene, and which of them other genes allow."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.arrays import IntArray, frozen
from search_spaces.dependent_gene import DependentGene
from search_spaces.heads import Heads
from search_spaces.specification import GENES, OF_HEADS, SpaceSpecification, largest_top_k

DEPTH, WIDTH = range(2)


@dataclass(frozen=True, eq=False)
class Axes:
    """Values of each gene in ascending order, and tables of what depends on n_experts (top_k), width (FFN) or heads (KV heads)."""

    specification: SpaceSpecification

    @cached_property
    def genes(self) -> tuple[str, ...]:
        """Names of the genes, in order."""
        return self.specification.genes

    @cached_property
    def place(self) -> dict[str, int]:
        """Column of each gene in a genotype."""
        return {name: column for column, name in enumerate(self.genes)}

    @property
    def free_heads(self) -> bool:
        """Whether n_heads is an axis, so that d_q may differ from the width."""
        return "n_heads" in self.place

    @cached_property
    def gene_sizes(self) -> IntArray:
        """Number of values per gene, (g,)."""
        sizes = {
            "depth": len(self.depths),
            "width": len(self.widths),
            "head_dim": len(self.head_dims),
            "n_heads": self._heads.values.shape[2],
            "n_experts": len(self.experts),
            "top_k": len(self.top_ks),
            "ffn": self.expert_sizes.shape[1],
            "n_kv_heads": self.kv_values.shape[1],
        }
        return frozen(np.array([sizes[name] for name in self.genes]))

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
    def head_dims(self) -> IntArray:
        """Axis of head_dim, features; its one value where it is no axis."""
        return _axis(self.specification.head_dims)

    @cached_property
    def _heads(self) -> Heads:
        return self.specification.heads()

    @cached_property
    def heads(self) -> IntArray:
        """Every n_heads of the space, ascending, (h,); without axes of heads the one of each width."""
        return frozen(self._heads.used)

    @cached_property
    def frames(self) -> IntArray:
        """Valid genes of width, head_dim and n_heads in order, (f, 3); a gene that is no axis is 0."""
        return frozen(np.argwhere(self._heads.valid))

    @cached_property
    def frame_at(self) -> IntArray:
        """Row of `frames` of each (width, head_dim, n_heads) gene, (W, H, N); −1 where it is not valid."""
        valid = self._heads.valid
        return frozen(np.where(valid, np.cumsum(valid).reshape(valid.shape) - 1, -1))

    @cached_property
    def frame_heads(self) -> IntArray:
        """Place among `heads` of each frame's n_heads, (f,)."""
        return frozen(np.searchsorted(self.heads, self._heads.values[self._heads.valid]))

    @cached_property
    def kv_values(self) -> IntArray:
        """n_kv for each (number of `heads`, KV gene), valid or not; the symbol n_heads is that number itself."""
        columns = [self.heads if kv == "n_heads" else np.full(len(self.heads), kv) for kv in self._kv_axis]
        return frozen(np.stack(columns, axis=1).astype(np.int64))

    @cached_property
    def _kv_axis(self) -> list[int | str]:
        return self.specification.kv_axis()

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
    def head_dim_gene(self) -> DependentGene:
        """Which head sizes each width allows."""
        return DependentGene.from_mask(np.logical_or.reduce(self._heads.valid, axis=2))

    @cached_property
    def n_heads_gene(self) -> DependentGene:
        """Which n_heads each (width, head_dim) allows, a row per pair."""
        valid = self._heads.valid
        return DependentGene.from_mask(valid.reshape(-1, valid.shape[2]))

    @cached_property
    def kv_gene(self) -> DependentGene:
        """Which KV heads each number of `heads` allows."""
        values, heads = self.kv_values, self.heads[:, None]
        symbol = np.array([kv == "n_heads" for kv in self._kv_axis])
        listed = values[:, ~symbol]
        mask = (heads % values == 0) & (values <= heads)
        mask &= ~(symbol[None, :] & (listed == heads).any(axis=1)[:, None])
        return DependentGene.from_mask(mask)

    @cached_property
    def repaired_kv(self) -> IntArray:
        """The valid KV gene for each (number of `heads`, KV gene): the largest value not above it, else the smallest.

        By value, since the symbol n_heads stands last whatever it is worth.
        """
        repaired = self.kv_gene.repaired.copy()
        for heads, gene in np.argwhere(~self.kv_gene.valid):
            valid = np.flatnonzero(self.kv_gene.valid[heads])
            values = self.kv_values[heads, valid]
            below = values <= self.kv_values[heads, gene]
            repaired[heads, gene] = (
                valid[np.argmax(np.where(below, values, -1))] if below.any() else valid[np.argmin(values)]
            )
        return frozen(repaired)

    def frame_of(self, genotypes: IntArray) -> IntArray:
        """Row of `frames` of each genotype, (n,); −1 where its heads are not valid."""
        width, place = genotypes[:, WIDTH], self.place
        if len(place) == len(GENES):
            return width
        sizes, heads = (genotypes[:, place[name]] if name in place else 0 for name in OF_HEADS)
        found: IntArray = self.frame_at[width, sizes, heads]
        return found

    def composed(self, frame: IntArray, **genes: IntArray) -> IntArray:
        """Genotypes (n, g) of frames and of the genes that are no part of one, by name, each (n,)."""
        width, size, heads = self.frames[frame].T
        columns = {"width": width, "head_dim": size, "n_heads": heads, **genes}
        return np.stack([columns[name] for name in self.genes], axis=1)


def _axis(values: list[int]) -> IntArray:
    return frozen(np.array(values, dtype=np.int64))
