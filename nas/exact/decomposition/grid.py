"""A search space by parts: backbones (depth, layers, width, heads, KV heads) and a lattice of FFNs (E, K, m) per width."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, IntArray
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
    def layer_plans(self) -> IntArray:
        """Genes of depth and layers, (s, 2): of each chosen depth every stride-th of its mixes, the first and the last."""
        valid = self.space.layers_gene.valid
        mixes = [_every(np.flatnonzero(valid[depth]), self.stride) for depth in self.depths]
        depths = np.repeat(self.depths, [len(each) for each in mixes])
        return np.stack([depths, np.concatenate(mixes)], axis=1)

    @cached_property
    def widths(self) -> IntArray:
        """Width genes."""
        return _every(np.arange(len(self.space.widths)), self.stride)

    @cached_property
    def frames(self) -> IntArray:
        """Frames (rows of the space's) of the chosen widths, ascending; of each every stride-th, the first and the last."""
        of_width = self.space.frames[:, 0]
        starts = np.searchsorted(of_width, self.widths)
        ends = np.searchsorted(of_width, self.widths, side="right")
        chosen = [_every(np.arange(a, b), self.stride) for a, b in zip(starts, ends, strict=True)]
        return np.concatenate(chosen)

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
        space, frame = self.space, np.searchsorted(self.space.frames[:, 0], width)
        kv = space.kv_gene.nth[space.frame_heads[frame], 0]
        whole = space.composed(frame, depth=0 * width, n_experts=experts, top_k=top_k, ffn=genes, n_kv_heads=kv)
        return one_layer(space.architectures(whole))


@dataclass(frozen=True, eq=False)
class Backbones:
    """The backbones of an FFN: genes of depth, layers, width and KV heads, and the frame, (p,), the widths in order."""

    depth: IntArray
    layers: IntArray
    width: IntArray
    frame: IntArray
    kv: IntArray

    @classmethod
    def from_grid(cls, grid: Grid) -> "Backbones":
        """Every combination of a grid."""
        space, heads = grid.space, grid.space.frame_heads[grid.frames]
        counts = space.kv_gene.counts[heads]
        pair = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        frame, kv = grid.frames[pair], space.kv_gene.nth[heads[pair], rank]
        rows = np.repeat(np.arange(len(pair)), len(grid.layer_plans))
        depth, layers = np.tile(grid.layer_plans.T, len(pair))
        return cls(depth, layers, space.frames[frame[rows], 0], frame[rows], kv[rows])

    def __len__(self) -> int:
        return len(self.depth)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> "Backbones":
        columns = (self.depth, self.layers, self.width, self.frame, self.kv)
        return Backbones(*(column[rows] for column in columns))

    def architectures(self, space: SearchSpace) -> Architectures:
        """Whole architectures with these layers, widths and heads, and the smallest dense or sparse FFN."""
        experts = np.zeros(len(self), dtype=np.int64)
        top_k, ffn = space.top_k_gene.nth[experts, 0], space.ffn_gene.nth[self.width, 0]
        return space.architectures(self.genotypes(space, np.arange(len(self)), experts, top_k, ffn))

    def genotypes(
        self, space: SearchSpace, rows: IntArray, experts: IntArray, top_k: IntArray, ffn: IntArray
    ) -> IntArray:
        """Genotypes (n, g) of some of the backbones, each with an FFN."""
        mixer = {"depth": self.depth[rows], "layers": self.layers[rows], "n_kv_heads": self.kv[rows]}
        return space.composed(self.frame[rows], n_experts=experts, top_k=top_k, ffn=ffn, **mixer)


def one_layer(architectures: Architectures) -> Architectures:
    """The same layers, one of each."""
    shape = {name: getattr(architectures, name) for name in SHAPE}
    return Architectures.from_shape({**shape, "depth": np.ones(len(architectures), dtype=np.int64)})


def _every(values: IntArray, stride: int) -> IntArray:
    """Every stride-th value and the last."""
    return np.unique(np.append(values[::stride], values[-1:]))
