"""The exact frontier by labels: sums over the last layers that may still be part of an optimum, layer by layer, last first.

A label is dropped when another of the same layers is as good in every dimension and better in an objective: whatever is
chosen before them, the other mixture stays within the limits and is better (Nemhauser and Ullmann 1969, with limits as
further dimensions). Labels of equal sums become one, which counts them and keeps the choice with the fewest layers changed,
then the lexicographically first in the library's order: made layer by layer from the last to the first, by the replacement of
the first of these layers and then by the order of the labels after it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plas_blocks.filtering import surviving
from plas_blocks.problem import Group, Problem, undominated
from search_spaces.arrays import AnyArray, FloatArray, IntArray

MOST_LABELS = 40_000  # of one layer, where sums are of three dimensions or more
MOST_CANDIDATES = 60_000_000  # compared in all, likewise
BLOCK = 250_000  # candidates that are held at once, or twice those that were left of the ones before


FIELDS = ("sums", "counts", "changed", "rows", "next", "order")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of the layers from one on: sums (n, D), how many choices each stands for, layers changed, and the way on."""

    sums: FloatArray
    counts: FloatArray
    changed: IntArray
    rows: IntArray  # of the library: the replacement of the first of these layers
    next: IntArray  # which label of the layers after it
    order: IntArray  # place among the labels of the same layers, lexicographically; of candidates that of `next`

    def __len__(self) -> int:
        return len(self.sums)

    def __getitem__(self, kept: IntArray) -> "Labels":
        return Labels(*(getattr(self, name)[kept] for name in FIELDS))


@dataclass(frozen=True, eq=False)
class Tree:
    """The labels of all layers, and the ways through them from every layer on."""

    final: Labels
    ways: tuple[tuple[IntArray, IntArray], ...]  # rows and next of the labels from layer i on
    length: IntArray  # of the library's replacements

    def chosen(self, which: IntArray) -> IntArray:
        """The library's row that covers each layer, (n, layers), of some final labels."""
        found: AnyArray = np.zeros((len(which), len(self.ways)), dtype=np.int32)  # half of the memory of int64
        label, begin = which.copy(), np.zeros(len(which), dtype=np.int64)
        for layer, (rows, following) in enumerate(self.ways):
            here = begin == layer
            found[here, layer] = rows[label[here]]
            found[~here, layer] = found[~here, layer - 1]
            begin[here] += self.length[found[here, layer]]
            label[here] = following[label[here]]
        return found


class Exceeded(Exception):
    """More labels than an exact answer may take."""


Pruner = Callable[[int, FloatArray], IntArray]


def tree(problem: Problem, prune: Pruner | None = None, sieve: Pruner | None = None) -> Tree:
    """The labels of a problem; `prune` and `sieve` decide which sums of the layers from i on may be part of an answer.

    `prune` is asked of every candidate, `sieve`, which may take longer, of those that no other dominates.

    Raises:
        Exceeded: three dimensions or more, and more labels or candidates than an exact answer may take.
    """
    free = len(problem.dimensions) == 2 and problem.objectives == 2
    none = np.zeros(1, dtype=np.int64)
    labels = {problem.layers: Labels(np.zeros((1, len(problem.dimensions))), np.ones(1), none, none, none, none)}
    longest = max(group.length for groups in problem.groups for group in groups)
    ways, compared = list[tuple[IntArray, IntArray]](), 0
    for layer in reversed(range(problem.layers)):
        if not problem.reached[layer]:
            found = _joined([], len(problem.dimensions))
        elif free:
            found = _staircase(problem, layer, labels)
        else:
            compared += sum(len(labels[layer + g.length]) * len(g.rows) for g in problem.groups[layer])
            if compared > MOST_CANDIDATES:
                raise Exceeded
            found = _general(problem, layer, labels, prune)
            found = found if sieve is None else _ordered(found[sieve(layer, found.sums)])
            if len(found) > MOST_LABELS:
                raise Exceeded
        labels[layer] = found
        ways.append((found.rows.astype(np.int32), found.next.astype(np.int32)))
        labels.pop(layer + longest, None)
    return Tree(labels[0], tuple(reversed(ways)), problem.library.length)


def _staircase(problem: Problem, layer: int, labels: dict[int, Labels]) -> Labels:
    """Two objectives: most candidates are seen to be dominated in a table, before they are made."""
    within = problem.limits - problem.least[layer]
    begins = [
        (group, labels[layer + group.length]) for group in problem.groups[layer] if len(labels[layer + group.length])
    ]
    kept = surviving([(group.values, after.sums) for group, after in begins])
    parts = [
        _extended(group, after, place, rows)
        for (group, after), places in zip(begins, kept, strict=True)
        for place, rows in enumerate(places)
    ]
    everything = _joined(parts, len(problem.dimensions))
    return _ordered(_merged(everything[np.flatnonzero((everything.sums <= within).all(axis=1))], 2))


def _general(problem: Problem, layer: int, labels: dict[int, Labels], prune: Pruner | None) -> Labels:
    """Any number of dimensions: in blocks, each reduced before the next one."""
    within, held, room = problem.limits - problem.least[layer], list[Labels](), BLOCK
    n = problem.objectives
    settled = (problem.limits - problem.most[layer])[n:]  # below it no choice of the layers before can break the limit
    for group in problem.groups[layer]:
        after = labels[layer + group.length]
        for place in range(len(group.rows)):
            sums = after.sums + group.values[place]
            rows = np.flatnonzero((sums <= within).all(axis=1))
            rows = rows if prune is None else rows[prune(layer, sums[rows])]
            part = _extended(group, after, place, rows)
            np.maximum(part.sums[:, n:], settled, out=part.sums[:, n:])
            held.append(part)
            if sum(map(len, held)) > room:
                held = [_merged(_joined(held, len(within)), n)]
                room = max(BLOCK, 2 * len(held[0]))
    return _ordered(_merged(_joined(held, len(within)), n))


def _extended(group: Group, after: Labels, place: int, rows: IntArray) -> Labels:
    """Labels with a replacement before them."""
    with np.errstate(over="ignore"):  # more ties than a float holds
        counts = after.counts[rows] * group.copies[place]
    return Labels(
        after.sums[rows] + group.values[place],
        counts,
        after.changed[rows] + group.changed[place],
        np.full(len(rows), group.rows[place]),
        rows,
        after.order[rows],
    )


def _joined(parts: list[Labels], width: int) -> Labels:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Labels(np.zeros((0, width)), np.zeros(0), none, none, none, none)
    return Labels(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))


def _merged(labels: Labels, objectives: int) -> Labels:
    """One label for equal sums, none that is dominated, ascending in the first objective."""
    if not len(labels):
        return labels
    labels = labels[np.lexsort((labels.order, labels.rows, labels.changed, *labels.sums.T[::-1]))]
    first = np.flatnonzero(np.r_[True, (labels.sums[1:] != labels.sums[:-1]).any(axis=1)])
    with np.errstate(over="ignore"):
        distinct = replace(labels[first], counts=np.add.reduceat(labels.counts, first))
    return distinct[_undominated(distinct.sums, objectives)]


def _ordered(labels: Labels) -> Labels:
    """Labels with their own places instead of those of the labels after them."""
    place = np.empty(len(labels), dtype=np.int64)
    place[np.lexsort((labels.order, labels.rows))] = np.arange(len(labels))
    return replace(labels, order=place)


def _undominated(sums: FloatArray, objectives: int) -> IntArray:
    """As `undominated`, of sums in ascending order; a staircase of two objectives is read off."""
    if sums.shape[1] == 2 and objectives == 2:
        lowest = np.minimum.accumulate(sums[:, 1])
        return np.flatnonzero(np.r_[True, sums[1:, 1] < lowest[:-1]])
    return undominated(sums, objectives)
