"""Backbones of one width in a tree of groups that are alike, so that one bound settles many of them beside a box of FFNs."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nas.exact.decomposition.additive_bounds import AdditiveBounds, Backboned
from nas.exact.decomposition.boxes import Boxes
from search_spaces.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BackboneTree:
    """Nodes, (nodes,): the first are the backbones themselves, the others groups of them that are halved on the way down.

    halves (nodes, 2): a group's two, a backbone itself twice; size: backbones in a node; spread: how far its members lie
    apart, as the largest difference of a quantity's logarithm; best: the best of every bound's quantity; roots: the node of all
    backbones of each width gene, -1 of one without.
    """

    halves: IntArray
    size: IntArray
    spread: FloatArray
    best: Backboned
    roots: IntArray

    @classmethod
    def of(cls, sums: AdditiveBounds) -> Self:
        """Every width's backbones; each group is halved where its members lie farthest apart."""
        place, order = _coordinates(sums), np.arange(len(sums.backbones))
        width = sums.backbones.width
        starts = np.flatnonzero(np.diff(width, prepend=-1))
        roots = np.full(len(sums.grid.space.widths), -1)
        count = len(order)
        made = [_Level.leaves(sums)]
        # the groups of a level, as ranges of `order`; each becomes a node, one of a single backbone is that backbone
        ends, parents = np.append(starts[1:], count), None
        halves, number = [np.stack([order, order], axis=1)], count
        while True:
            length = ends - starts
            group = length > 1
            node = np.where(group, number + np.cumsum(group) - 1, order[starts])
            if parents is None:
                roots[width[starts]] = node
            else:
                halves[-1][parents[0], parents[1]] = node
            if not group.any():
                break
            number += int(group.sum())
            order, level = _sorted(sums, place, order, starts[group], ends[group])
            made.append(level)
            halves.append(np.zeros((int(group.sum()), 2), dtype=np.int64))
            middle = (starts[group] + ends[group]) // 2
            inside = np.arange(len(middle))
            parents = np.concatenate([inside, inside]), np.repeat([0, 1], len(middle))
            starts, ends = np.concatenate([starts[group], middle]), np.concatenate([middle, ends[group]])
        return cls(
            np.concatenate(halves),
            np.concatenate([level.size for level in made]),
            np.concatenate([level.spread for level in made]),
            Backboned.joined([level.best for level in made]),
            roots,
        )


@dataclass(frozen=True, eq=False)
class _Level:
    """Some nodes."""

    size: IntArray
    spread: FloatArray
    best: Backboned

    @classmethod
    def leaves(cls, sums: AdditiveBounds) -> Self:
        count = len(sums.backbones)
        return cls(np.ones(count, dtype=np.int64), np.zeros(count), sums.backboned)


def _sorted(
    sums: AdditiveBounds, place: FloatArray, order: IntArray, starts: IntArray, ends: IntArray
) -> tuple[IntArray, _Level]:
    """The order of the backbones with each group sorted along its longest side, and the groups as nodes."""
    length = ends - starts
    group = np.repeat(np.arange(len(starts)), length)
    rows = np.repeat(starts - (np.cumsum(length) - length), length) + np.arange(len(group))
    members, first = order[rows], np.cumsum(length) - length
    sides = np.stack(
        [np.maximum.reduceat(each, first) - np.minimum.reduceat(each, first) for each in place[:, members]]
    )
    longest = sides.argmax(axis=0)
    sorted_ = order.copy()
    sorted_[rows] = members[np.lexsort((place[longest[group], members], group))]
    return sorted_, _Level(length, sides.max(axis=0), sums.backboned.best(members, first, sums.signs))


def _coordinates(sums: AdditiveBounds) -> FloatArray:
    """Where backbones lie, (bounds, backbones): every bound's quantity beside a middling FFN of their width, its logarithm where it has one."""
    grid = sums.grid
    size = grid.size_counts[grid.widths] // 2
    group = np.full(len(grid.widths), len(grid.group_counts) - 1)
    expert = grid.group_counts[group] // 2
    per_layer, once = np.moveaxis(sums.ffn(Boxes(grid.widths, group, expert, expert, size, size)), 1, 0)
    of_width = np.searchsorted(grid.widths, sums.backbones.width)
    values = sums.backboned.beside + sums.depth * per_layer[:, of_width] + once[:, of_width]
    counted = np.array([isinstance(quantity, str) for quantity, _ in sums.bounds]) & (values > 0.0).all(axis=1)
    with np.errstate(all="ignore"):
        return np.where(counted[:, None], np.log(values), values)
