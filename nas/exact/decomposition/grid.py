"""A search space by parts: backbones (depth, layers, width, heads, KV heads) and a lattice of FFNs (E, K, m) per width."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray
from search_spaces.columns import SHAPE, constant
from search_spaces.space import SearchSpace

FAN = 3  # children of a group of backbones
SHORT = 0.7  # of the longer of two ranges, in logarithms: a shorter one is cut later


@dataclass(frozen=True, eq=False)
class Grid:
    """Every `stride`-th value of the axes (1: the whole space), always with the last ones.

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
        """Genes of depth and layers, (s, 2), by layers, then depth: for each chosen depth every stride-th of its mixes, with the first and the last."""
        valid = self.space.layers_gene.valid
        mixes = [_every(np.flatnonzero(valid[depth]), self.stride) for depth in self.depths]
        depths = np.repeat(self.depths, [len(each) for each in mixes])
        plans = np.stack([depths, np.concatenate(mixes)], axis=1)
        return plans[np.argsort(plans[:, 1], kind="stable")]

    @cached_property
    def widths(self) -> IntArray:
        """Width genes."""
        return _every(np.arange(len(self.space.widths)), self.stride)

    @cached_property
    def frames(self) -> IntArray:
        """Frames (rows of the space's) of the chosen widths, ascending: every stride-th of each, with the first and the last."""
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
        """Number of positions per group."""
        return np.array([len(experts) for _, experts in self._members])

    @cached_property
    def group_experts(self) -> IntArray:
        """n_experts gene per group and position, (groups, positions)."""
        table = np.zeros((len(self._members), self.group_counts.max()), dtype=np.int64)
        for row, (_, experts) in zip(table, self._members, strict=True):
            row[: len(experts)] = experts
        return table

    @cached_property
    def dense(self) -> BoolArray:
        """Whether a group has no experts to choose from, (groups,)."""
        dense: BoolArray = self.space.experts[self.group_experts[:, 0]] == 1
        return dense

    @cached_property
    def size_counts(self) -> IntArray:
        """Number of positions of expert sizes per width gene."""
        return (self.space.ffn_gene.counts + self.stride - 2) // self.stride + 1

    def ffn_genes(self, width: IntArray, position: IntArray) -> IntArray:
        """Return the FFN genes of positions."""
        rank = np.minimum(position * self.stride, self.space.ffn_gene.counts[width] - 1)
        return self.space.ffn_gene.nth[width, rank]

    def corners(self, boxes: "Boxes") -> tuple[Architectures, list[IntArray]]:
        """Return one-layer architectures with the FFNs at the corners of boxes, once each, and the boxes of the first, second, third and fourth corners.

        Their attention is the first of their width.
        """
        long, wide = boxes.size_high > boxes.size_low, boxes.expert_high > boxes.expert_low
        rows = [np.arange(len(boxes)), *(np.flatnonzero(several) for several in (long, wide, long & wide))]
        experts, sizes = (boxes.expert_low, boxes.expert_high), (boxes.size_low, boxes.size_high)
        expert = np.concatenate([experts[corner // 2][row] for corner, row in enumerate(rows)])
        size = np.concatenate([sizes[corner % 2][row] for corner, row in enumerate(rows)])
        space, every = self.space, np.concatenate(rows)
        width, group = boxes.width[every], boxes.group[every]
        frame = np.searchsorted(space.frames[:, 0], np.arange(len(space.widths)))[width]
        heads = space.frame_heads[frame]
        shape = {
            "depth": constant(1, len(width), np.int64),
            "width": space.widths[width],
            "head_dim": space.head_dims[space.frames[frame, 1]],
            "n_heads": space.heads[heads],
            "n_kv_heads": space.kv_values[heads, space.kv_gene.nth[heads, 0]],
            "n_experts": space.experts[self.group_experts[group, expert]],
            "top_k": space.top_ks[self.group_top_k[group]],
            "expert_size": space.expert_sizes[width, self.ffn_genes(width, size)],
        }
        return Architectures.from_shape(shape), rows


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
        """Return every combination of a grid."""
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
        """Return whole architectures with these layers, widths and heads, and the smallest dense or sparse FFN."""
        experts = np.zeros(len(self), dtype=np.int64)
        top_k, ffn = space.top_k_gene.nth[experts, 0], space.ffn_gene.nth[self.width, 0]
        return space.architectures(self.genotypes(space, np.arange(len(self)), experts, top_k, ffn))

    def genotypes(
        self, space: SearchSpace, rows: IntArray, experts: IntArray, top_k: IntArray, ffn: IntArray
    ) -> IntArray:
        """Return genotypes (n, g) of some backbones, each with an FFN."""
        mixer = {"depth": self.depth[rows], "layers": self.layers[rows], "n_kv_heads": self.kv[rows]}
        return space.composed(self.frame[rows], n_experts=experts, top_k=top_k, ffn=ffn, **mixer)


@dataclass(frozen=True, eq=False)
class DepthTree:
    """Nodes: the backbones, then level by level groups of FAN neighbours, or fewer, that differ in depth alone.

    starts: per level the first child of each group, among the nodes of the level below; first (nodes,): first child; count
    (nodes,): children, none of a backbone; size (nodes,): backbones; roots: the last level.
    """

    starts: tuple[IntArray, ...]
    first: IntArray
    count: IntArray
    size: IntArray
    roots: IntArray

    @classmethod
    def over(cls, backbones: Backbones) -> Self:
        """Return the tree of backbones that lie by width, frame, KV heads, layers and depth."""
        alike = np.stack([backbones.frame, backbones.kv, backbones.layers])
        run = np.flatnonzero((np.diff(alike, prepend=-1) != 0).any(axis=0))
        length, below = np.diff(np.append(run, len(backbones))), 0
        none = np.zeros_like(backbones.depth)
        starts, first, count, size = list[IntArray](), [none], [none], [none + 1]
        while (length > 1).any():
            run, within = _ranges(-(-length // FAN))
            starts.append((np.cumsum(length) - length)[run] + FAN * within)
            first.append(below + starts[-1])
            count.append(np.diff(np.append(starts[-1], length.sum())))
            size.append(np.add.reduceat(size[-1], starts[-1]))
            below, length = below + length.sum(), np.bincount(run)
        joined, roots = np.concatenate, below + np.arange(len(length))
        return cls(tuple(starts), joined(first), joined(count), joined(size), roots)

    def reduced(self, values: FloatArray, best: np.ufunc) -> FloatArray:
        """Return the best value of each node's backbones, (nodes,)."""
        levels = [values]
        for starts in self.starts:
            levels.append(best.reduceat(levels[-1], starts))
        return np.concatenate(levels)


def one_layer(architectures: Architectures) -> Architectures:
    """Return the same architectures with one layer."""
    shape = {name: getattr(architectures, name) for name in SHAPE}
    return Architectures.from_shape({**shape, "depth": np.ones(len(architectures), dtype=np.int64)})


def _every(values: IntArray, stride: int) -> IntArray:
    """Every stride-th value and the last."""
    return np.unique(np.append(values[::stride], values[-1:]))


@dataclass(frozen=True, eq=False)
class Boxes:
    """Columns (n,): width gene, group, first and last position of experts and of sizes."""

    width: IntArray
    group: IntArray
    expert_low: IntArray
    expert_high: IntArray
    size_low: IntArray
    size_high: IntArray

    @classmethod
    def whole(cls, grid: Grid) -> Self:
        """Return one box per width and group that covers everything."""
        groups = len(grid.group_counts)
        width, group = np.repeat(grid.widths, groups), np.tile(np.arange(groups), len(grid.widths))
        zero = np.zeros(len(width), dtype=np.int64)
        return cls(width, group, zero, grid.group_counts[group] - 1, zero, grid.size_counts[width] - 1)

    def __len__(self) -> int:
        return len(self.width)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> Self:
        return type(self)(*(column[rows] for column in self._columns))

    @property
    def _columns(self) -> tuple[IntArray, ...]:
        return self.width, self.group, self.expert_low, self.expert_high, self.size_low, self.size_high

    @property
    def single(self) -> BoolArray:
        """True for boxes that hold one FFN."""
        single: BoolArray = (self.expert_low == self.expert_high) & (self.size_low == self.size_high)
        return single

    @property
    def volumes(self) -> IntArray:
        """Number of FFNs in each box."""
        return (self.expert_high - self.expert_low + 1) * (self.size_high - self.size_low + 1)

    @property
    def spreads(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of last by first position of experts and of sizes, each (n,)."""
        experts = np.log((self.expert_high + 1.0) / (self.expert_low + 1.0))
        return experts, np.log((self.size_high + 1.0) / (self.size_low + 1.0))

    def halves(self) -> tuple[Self, IntArray]:
        """Return every box cut in two along each range that is long enough, and the index of the original box."""
        experts, sizes = self.spreads
        boxes, source = self._cut(2, 3, experts >= SHORT * sizes)
        boxes, again = boxes._cut(4, 5, (sizes >= SHORT * experts)[source])
        return boxes, source[again]

    def _cut(self, low: int, high: int, rows: BoolArray) -> tuple[Self, IntArray]:
        columns = [column.copy() for column in self._columns]
        wide = np.flatnonzero((columns[high] > columns[low]) & rows)
        middle = _middle(columns[low][wide], columns[high][wide])
        upper = [column[wide] for column in columns]
        columns[high][wide], upper[low] = middle, middle + 1
        both = type(self)(*(np.concatenate(pair) for pair in zip(columns, upper, strict=True)))
        return both, np.concatenate([np.arange(len(self)), wide])


def _middle(low: IntArray, high: IntArray) -> IntArray:
    """Geometric middle: costs grow with the product of what is counted."""
    middle = np.sqrt((low + 1.0) * (high + 2.0)).astype(np.int64) - 1
    return np.clip(middle, low, high - 1)


@dataclass(frozen=True, eq=False)
class Items:
    """Pairs of a box (row of `boxes`, ascending) and a backbone, or a node of their tree, columns (n,).

    `around` holds the best shares (bounds, 2, boxes) of what each box was cut from, if from anything:
    those of the box can only be worse.
    """

    boxes: Boxes
    box: IntArray
    backbone: IntArray
    around: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.box)

    @classmethod
    def everything(cls, grid: Grid, backbones: Backbones, size: int, tree: DepthTree | None = None) -> Iterator[Self]:
        """Yield every FFN of the grid with every backbone of its width, or their tree's roots, in runs of about `size` backbones."""
        boxes, nodes = Boxes.whole(grid), np.arange(len(backbones)) if tree is None else tree.roots
        ends = np.append(0, np.cumsum(np.ones_like(nodes) if tree is None else tree.size[nodes]))
        width = backbones.width[ends[:-1]]
        start, stop = (np.searchsorted(width, boxes.width, side=side) for side in ("left", "right"))
        for first, last in _runs(np.cumsum(ends[stop] - ends[start]), size):
            box, within = _ranges((stop - start)[first:last])
            yield cls(boxes[first:last], box, nodes[start[first:last][box] + within])

    def opened(self, tree: DepthTree, rows: BoolArray) -> tuple[Self, BoolArray]:
        """Return the items with the children of the chosen ones' nodes in their place, and which those are."""
        item, within = _ranges(np.where(rows, tree.count[self.backbone], 1))
        node, fresh = self.backbone[item], rows[item]
        return replace(self, box=self.box[item], backbone=np.where(fresh, tree.first[node] + within, node)), fresh

    def kept(self, rows: BoolArray | IntArray | slice) -> Self:
        """Return the chosen items."""
        return replace(self, box=self.box[rows], backbone=self.backbone[rows])

    @property
    def _ends(self) -> IntArray:
        return np.searchsorted(self.box, np.arange(len(self.boxes)), side="right")

    def split(self, shares: FloatArray, *, twice: bool = False) -> Self:
        """Return the same items with every box cut in halves, or these cut again; `shares` are the boxes' own."""
        start = np.flatnonzero(np.diff(self.box, prepend=-1))
        used, counts = self.box[start], np.diff(start, append=len(self))
        halves, source = self.boxes[used].halves()
        if twice:
            halves, again = halves.halves()
            source = source[again]
        order = np.argsort(source, kind="stable")
        source = source[order]
        child, within = _ranges(counts[source])
        row = start[source][child] + within
        return type(self)(halves[order], child, self.backbone[row], shares[..., used[source]])

    def pieces(self, size: int) -> list[Self]:
        """Return the items in runs of about `size` items, cut between boxes."""
        ends = self._ends
        before = np.append(0, ends)
        return [self._run(a, b, int(before[a]), int(before[b])) for a, b in _runs(ends, size)]

    def _run(self, first_box: int, last_box: int, first: int, last: int) -> Self:
        boxes = slice(first_box, last_box)
        around = None if self.around is None else self.around[..., boxes]
        return type(self)(self.boxes[boxes], self.box[first:last] - first_box, self.backbone[first:last], around)

    def genotypes(self, grid: Grid, backbones: Backbones) -> IntArray:
        """Return genotypes (n, g) of items whose boxes hold one FFN each."""
        width, group = self.boxes.width[self.box], self.boxes.group[self.box]
        experts = grid.group_experts[group, self.boxes.expert_low[self.box]]
        ffn = grid.ffn_genes(width, self.boxes.size_low[self.box])
        return backbones.genotypes(grid.space, self.backbone, experts, grid.group_top_k[group], ffn)


def _runs(ends: IntArray, size: int) -> list[tuple[int, int]]:
    """First and last (exclusive) box of runs of about `size` items; `ends`: items up to the end of each box."""
    last = np.append(np.flatnonzero(np.diff((ends - 1) // size)), len(ends) - 1) + 1
    return list(zip([0, *last[:-1].tolist()], last.tolist(), strict=True))


def _ranges(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Row i repeated counts[i] times, and the position within each repetition."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
