"""The axes of a space: the values of each gene, their places, and the values that other genes allow."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, IntArray, frozen
from search_spaces.columns import dtype_of
from search_spaces.mixes import Mixes
from search_spaces.specification import OF_HEADS, OF_LAYERS, Heads, SpaceSpecification, largest_top_k, smallest_top_k


@dataclass(frozen=True, eq=False)
class DependentGene:
    """Tables over (owner value, gene value) of the values that each owner allows.

    valid: allowed or not; counts: allowed values per owner; nth: gene value of the i-th allowed;
    rank: position among the allowed of a valid value; repaired: the next smaller allowed value.
    """

    valid: BoolArray
    counts: IntArray
    nth: IntArray
    rank: IntArray
    repaired: IntArray

    @classmethod
    def from_mask(cls, valid: BoolArray) -> Self:
        """Return tables from the mask of allowed values, (owners, values); each owner allows at least one."""
        rank = np.cumsum(valid, axis=1) - 1
        counts = rank[:, -1] + 1
        nth = np.argsort(~valid, axis=1, kind="stable")
        repaired = np.take_along_axis(nth, np.maximum(rank, 0), axis=1)
        return cls(frozen(valid), frozen(counts), frozen(nth), frozen(rank), frozen(repaired))

    @cached_property
    def number(self) -> IntArray:
        """Number of each valid (owner, value) among all valid ones in order, (owners, values)."""
        return frozen((np.cumsum(self.counts) - self.counts)[:, None] + self.rank)


DEPTH = 0


def _listed(name: str) -> cached_property[IntArray]:
    """The values of an axis as the space lists them, made when first used."""

    def axis(axes: "Axes") -> IntArray:
        return _axis(getattr(axes.specification.axes, name))

    return cached_property(axis)


@dataclass(frozen=True, eq=False)
class Axes:
    """Values of each gene in order, and tables of genes that depend on depth (layers), n_experts (top_k), width (FFN) or heads (KV heads)."""

    specification: SpaceSpecification
    depths = _listed("depth")  # layers
    widths = _listed("width")  # features
    experts = _listed("n_experts")
    top_ks = _listed("top_k")

    @cached_property
    def genes(self) -> tuple[str, ...]:
        """Names of the genes, in order."""
        return self.specification.genes

    @cached_property
    def place(self) -> dict[str, int]:
        """Column of each gene in a genotype."""
        return {name: column for column, name in enumerate(self.genes)}

    @property
    def formats(self) -> list[str]:
        """Every precision that designs may have, in gene order; "" (the study's own) if precision is no axis."""
        return self.specification.axes.precision or [""]

    @property
    def free_heads(self) -> bool:
        """True if n_heads is an axis, so that d_q may differ from the width."""
        return "n_heads" in self.place

    @property
    def mixed(self) -> bool:
        """True if layers are an axis, so that they may be of several kinds."""
        return OF_LAYERS in self.place

    @property
    def own_heads(self) -> bool:
        """True if vocabulary is a gene, so that each design has its own embedding and LM head."""
        return "vocabulary" in self.place

    def headed(self, architectures: Architectures, vocabulary: int, *, tied: bool) -> Architectures:
        """Return architectures with the study's vocabulary; designs whose vocabulary is a gene keep their own.

        Without such a gene a study has one vocabulary (0: the layers alone), and all have it: its designs, published models
        beside them, rows of files.
        """
        return architectures if self.own_heads else architectures.with_vocabulary(vocabulary, tied=tied)

    @cached_property
    def gene_sizes(self) -> IntArray:
        """Number of values per gene, (g,)."""
        sizes = {
            "depth": len(self.depths),
            OF_LAYERS: len(self.specification.rules),
            "width": len(self.widths),
            "head_dim": len(self.head_dims),
            "n_heads": self._heads.values.shape[2],
            "n_experts": len(self.experts),
            "top_k": len(self.top_ks),
            "ffn": self.expert_sizes.shape[1],
            "n_kv_heads": self.kv_values.shape[1],
            **{name: len(values) for name, values in self.settings.items()},
        }
        return frozen(np.array([sizes[name] for name in self.genes]))

    @cached_property
    def settings(self) -> dict[str, IntArray]:
        """The values of further axes (precision, tokens, …) by column name, behind the genes of every space; often empty."""
        return {name: _axis(values, dtype_of(name)) for name, values in self.specification.settings.items()}

    @cached_property
    def n_settings(self) -> int:
        """Number of combinations of settings, each with every architecture; 1 without such axes."""
        return math.prod(len(values) for values in self.settings.values())

    @cached_property
    def mixes(self) -> Mixes:
        """The mix of each layer rule at each depth; full attention without that axis."""
        return self.specification.mixes()

    @cached_property
    def further(self) -> tuple[str, ...]:
        """Columns beyond the shape in which architectures may differ: layer kinds and settings."""
        return (*self.mixes.names, *self.settings)

    @cached_property
    def layers_gene(self) -> DependentGene:
        """The layer rules that each depth allows."""
        return DependentGene.from_mask(self.mixes.valid)

    @cached_property
    def layer_plans(self) -> IntArray:
        """Valid genes of depth and layers in order, (s, 2); layers are 0 if they are no axis."""
        return frozen(np.argwhere(self.mixes.valid))

    @cached_property
    def expert_sizes(self) -> IntArray:
        """m for each (width, FFN gene), integers, valid or not."""
        axes = self.specification.axes
        if axes.expert_size is not None:
            return frozen(np.tile(_axis(axes.expert_size), (len(self.widths), 1)))
        return frozen(np.rint(np.outer(self.widths, axes.expert_ffn_ratio or [])).astype(np.int64))

    @cached_property
    def head_dims(self) -> IntArray:
        """Axis of head_dim, features; one value if it is no axis."""
        return _axis(self.specification.head_dims)

    @cached_property
    def _heads(self) -> Heads:
        return self.specification.heads()

    @cached_property
    def heads(self) -> IntArray:
        """Every n_heads of the space, ascending, (h,); without axes of heads, the one of each width."""
        return frozen(self._heads.used)

    @cached_property
    def frames(self) -> IntArray:
        """Valid genes of width, head_dim and n_heads in order, (f, 3); 0 for a gene that is no axis."""
        return frozen(np.argwhere(self._heads.valid))

    @cached_property
    def frame_at(self) -> IntArray:
        """Row of `frames` for each (width, head_dim, n_heads) gene, (W, H, N); −1 if invalid."""
        valid = self._heads.valid
        return frozen(np.where(valid, np.cumsum(valid).reshape(valid.shape) - 1, -1))

    @cached_property
    def frame_heads(self) -> IntArray:
        """Place of each frame's n_heads among `heads`, (f,)."""
        return frozen(np.searchsorted(self.heads, self._heads.values[self._heads.valid]))

    @cached_property
    def kv_values(self) -> IntArray:
        """n_kv for each (number of `heads`, KV gene), valid or not; the symbol n_heads stands for that number."""
        columns = [
            self.heads if kv == "n_heads" else np.full(len(self.heads), kv) for kv in self.specification.kv_axis()
        ]
        return frozen(np.stack(columns, axis=1).astype(np.int64))

    @cached_property
    def top_k_gene(self) -> DependentGene:
        """The top_k that each n_experts allows."""
        conditions = self.specification.conditions
        largest = np.array([largest_top_k(int(experts), conditions) for experts in self.experts])
        smallest = np.array([smallest_top_k(int(experts), conditions) for experts in self.experts])
        return DependentGene.from_mask((self.top_ks >= smallest[:, None]) & (self.top_ks <= largest[:, None]))

    @cached_property
    def ffn_gene(self) -> DependentGene:
        """The FFN values that each width allows."""
        limit = self.specification.conditions.max_expert_ffn_ratio
        largest = np.inf if limit is None else limit * (1 + 1e-12)
        return DependentGene.from_mask(self.expert_sizes <= largest * self.widths[:, None])

    @cached_property
    def kv_gene(self) -> DependentGene:
        """The KV heads that each number of `heads` allows."""
        values, heads = self.kv_values, self.heads[:, None]
        symbol = np.array([kv == "n_heads" for kv in self.specification.kv_axis()])
        listed = values[:, ~symbol]
        mask = (heads % values == 0) & (values <= heads)
        mask &= ~(symbol[None, :] & (listed == heads).any(axis=1)[:, None])
        return DependentGene.from_mask(mask)

    @cached_property
    def repaired_kv(self) -> IntArray:
        """The valid KV gene for each (number of `heads`, KV gene): the largest value not above it, else the smallest.

        By value, since the symbol n_heads stands last whatever it is worth.
        """
        repaired = np.empty_like(self.kv_values)
        for row, values, valid in zip(repaired, self.kv_values, self.kv_gene.valid, strict=True):
            genes = np.flatnonzero(valid)
            ascending = genes[np.argsort(values[genes])]
            below = np.searchsorted(values[ascending], values, side="right") - 1
            row[:] = ascending[np.maximum(below, 0)]
        return frozen(repaired)

    def frame_of(self, genotypes: IntArray) -> IntArray:
        """Return the row of `frames` of each genotype, (n,); −1 if its heads are invalid."""
        place = self.place
        width = genotypes[:, place["width"]]
        if not any(name in place for name in OF_HEADS):
            return width
        sizes, heads = (genotypes[:, place[name]] if name in place else 0 for name in OF_HEADS)
        found: IntArray = self.frame_at[width, sizes, heads]
        return found

    def composed(self, frame: IntArray, **genes: IntArray) -> IntArray:
        """Return genotypes (n, g) from frames and the other genes by name, each (n,).

        Layers and settings may be left out: the first.
        """
        width, size, heads = self.frames[frame].T
        first = dict.fromkeys((OF_LAYERS, *self.settings), np.zeros(len(frame), dtype=np.int64))
        columns = {"width": width, "head_dim": size, "n_heads": heads, **first, **genes}
        return np.stack([columns[name] for name in self.genes], axis=1)

    def found_frame(self, a: Architectures, width: IntArray) -> tuple[BoolArray, IntArray]:
        """Return whether the heads of architectures fit their width (gene, −1: none), (n,), and the frame of those that do."""
        size, listed = position(self.head_dims, a.head_dim), self.specification.axes.n_heads
        heads = np.zeros(len(width), dtype=np.int64) if listed is None else position(np.array(listed), a.n_heads)
        frame = self.frame_at[np.maximum(width, 0), np.maximum(size, 0), np.maximum(heads, 0)]
        found = (width >= 0) & (size >= 0) & (heads >= 0) & (frame >= 0)
        frame = np.maximum(frame, 0)
        return found & (self.heads[self.frame_heads[frame]] == a.n_heads), frame


def _axis(values: list[int], dtype: Any = np.int64) -> IntArray:
    return frozen(np.array(values, dtype=dtype))


def position(axis: IntArray, values: IntArray) -> IntArray:
    """Return the index of each value (n,) on an axis of distinct values in any order; −1 if it is not there."""
    order = np.argsort(axis)
    place = order[np.minimum(np.searchsorted(axis, values, sorter=order), len(axis) - 1)]
    return np.where(axis[place] == values, place, -1)


def position_in_rows(rows: IntArray, valid: BoolArray, values: IntArray) -> IntArray:
    """Return the index of each value (n,) among the valid ones of its own row (n, k); −1 if it is not there."""
    hit = (rows == values[:, None]) & valid
    return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
