"""Boxes of FFNs: ranges of expert counts and expert sizes of one width and one top_k."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nas.exact.decomposition.grid import Grid
from search_spaces.arrays import BoolArray, IntArray

SHORT = 0.7  # of the longer of two ranges, in logarithms: a shorter one is cut later


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
        """One box per width and group: everything."""
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
        """Which boxes hold one FFN."""
        single: BoolArray = (self.expert_low == self.expert_high) & (self.size_low == self.size_high)
        return single

    @property
    def volumes(self) -> IntArray:
        """Number of FFNs in each box."""
        return (self.expert_high - self.expert_low + 1) * (self.size_high - self.size_low + 1)

    def corners(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Width, group, expert and size position of the four corners, each (4 n,), corner by corner."""
        expert = (self.expert_low, self.expert_low, self.expert_high, self.expert_high)
        size = (self.size_low, self.size_high, self.size_low, self.size_high)
        return np.tile(self.width, 4), np.tile(self.group, 4), np.concatenate(expert), np.concatenate(size)

    def halves(self) -> tuple[Self, IntArray]:
        """Every box cut in two along each range that has more than one value and is not far the shorter; and from which box each came."""
        experts = np.log((self.expert_high + 1.0) / (self.expert_low + 1.0))
        sizes = np.log((self.size_high + 1.0) / (self.size_low + 1.0))
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
