"""Boxes of FFNs, each with the backbones that it may still be best with."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nas.exact.decomposition.boxes import Boxes
from nas.exact.decomposition.grid import Backbones, Grid
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Items:
    """Pairs of a box (row of `boxes`, ascending) and a backbone, columns (n,).

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
    def everything(cls, grid: Grid, backbones: Backbones, size: int) -> Iterator[Self]:
        """Every FFN of the grid with every backbone of its width, in runs of about `size` items, each made on demand."""
        boxes = Boxes.whole(grid)
        start = np.searchsorted(backbones.width, boxes.width)
        count = np.searchsorted(backbones.width, boxes.width, side="right") - start
        for first, last in _runs(np.cumsum(count), size):
            box, within = _ranges(count[first:last])
            yield cls(boxes[first:last], box, start[first:last][box] + within)

    def kept(self, rows: BoolArray | IntArray | slice) -> Self:
        """The chosen items."""
        return replace(self, box=self.box[rows], backbone=self.backbone[rows])

    @property
    def _ends(self) -> IntArray:
        return np.searchsorted(self.box, np.arange(len(self.boxes)), side="right")

    def split(self, shares: FloatArray) -> Self:
        """The same items with every box cut in halves; `shares` are the boxes' own."""
        start = np.flatnonzero(np.diff(self.box, prepend=-1))
        used, counts = self.box[start], np.diff(start, append=len(self))
        halves, source = self.boxes[used].halves()
        order = np.argsort(source, kind="stable")
        source = source[order]
        child, within = _ranges(counts[source])
        row = start[source][child] + within
        return type(self)(halves[order], child, self.backbone[row], shares[..., used[source]])

    def pieces(self, size: int) -> list[Self]:
        """The items cut between boxes into runs of about `size` items."""
        ends = self._ends
        before = np.append(0, ends)
        return [self._run(a, b, int(before[a]), int(before[b])) for a, b in _runs(ends, size)]

    def _run(self, first_box: int, last_box: int, first: int, last: int) -> Self:
        boxes = slice(first_box, last_box)
        around = None if self.around is None else self.around[..., boxes]
        return type(self)(self.boxes[boxes], self.box[first:last] - first_box, self.backbone[first:last], around)

    def genotypes(self, grid: Grid, backbones: Backbones) -> IntArray:
        """Genotypes (n, g) of items whose boxes hold one FFN each."""
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
