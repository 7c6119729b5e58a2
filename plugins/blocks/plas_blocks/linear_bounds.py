"""Mixtures near a line: of each line the few partial mixtures whose weighted sum is least, layer by layer."""

from dataclasses import dataclass

import numpy as np

from plas_blocks.lines import Lines
from plas_blocks.problem import Problem
from search_spaces.arrays import FloatArray, IntArray

NEAREST = 24  # replacements of a layer that one line tries
AT_ONCE = 48  # lines


@dataclass(frozen=True, eq=False)
class Partial:
    """Per line the partial mixtures of the layers from one on: how far above the line (J, W), sums (J, W, D), and the way."""

    above: FloatArray
    sums: FloatArray
    rows: IntArray
    next: IntArray


def near(problem: Problem, found: Lines, width: int) -> tuple[FloatArray, IntArray]:
    """Sums (m, D) and rows (m, layers) of mixtures within the limits near the lines, at most `width` of each."""
    parts = [_near(problem, found, slice(at, at + AT_ONCE), width) for at in range(0, len(found.weights), AT_ONCE)]
    return np.concatenate([sums for sums, _ in parts]), np.concatenate([chosen for _, chosen in parts])


def _near(problem: Problem, found: Lines, which: slice, width: int) -> tuple[FloatArray, IntArray]:
    weights, prefixes = found.weights[which], found.prefixes[:, which]
    j, dimensions = weights.shape
    start = np.zeros((j, 1), dtype=np.int64)
    partial = {problem.layers: Partial(np.zeros((j, 1)), np.zeros((j, 1, dimensions)), start, start)}
    for layer in reversed(range(problem.layers)):
        partial[layer] = _begun(problem, layer, partial, weights, prefixes, width)
    finite = np.isfinite(partial[0].above)
    return partial[0].sums[finite], _traced(problem, partial)[finite]


def _begun(
    problem: Problem, layer: int, partial: dict[int, Partial], weights: FloatArray, prefixes: FloatArray, width: int
) -> Partial:
    """The best partial mixtures that begin at a layer."""
    if not problem.reached[layer] or not problem.groups[layer]:
        nothing = np.zeros((len(weights), 1), dtype=np.int64)
        return Partial(
            np.full((len(weights), 1), np.inf), np.zeros((len(weights), 1, weights.shape[1])), nothing, nothing
        )
    above, sums, rows, following = [], [], [], []
    for group in problem.groups[layer]:
        after, weighted = partial[layer + group.length], group.values @ weights.T
        reduced = (weighted + prefixes[layer] - prefixes[layer + group.length]).T
        count = min(NEAREST, reduced.shape[1])
        nearest = np.argpartition(reduced, count - 1, axis=1)[:, :count]
        cost = after.above[:, :, None] + np.take_along_axis(reduced, nearest, axis=1)[:, None, :]
        reached = after.sums[:, :, None, :] + group.values[nearest][:, None, :, :]
        cost[~(reached <= problem.limits - problem.least[layer]).all(axis=3)] = np.inf
        shape = (len(weights), -1)
        above.append(cost.reshape(shape))
        sums.append(reached.reshape(*shape, weights.shape[1]))
        rows.append(np.broadcast_to(group.rows[nearest][:, None, :], cost.shape).reshape(shape))
        labels = np.arange(after.above.shape[1])[None, :, None]
        following.append(np.broadcast_to(labels, cost.shape).reshape(shape))
    found = Partial(*(np.concatenate(each, axis=1) for each in (above, sums, rows, following)))
    return _best(found, width)


def _best(found: Partial, width: int) -> Partial:
    """The partial mixtures of each line that are nearest to it."""
    count = min(width, found.above.shape[1])
    kept = np.sort(np.argpartition(found.above, count - 1, axis=1)[:, :count], axis=1)
    return Partial(
        np.take_along_axis(found.above, kept, axis=1),
        np.take_along_axis(found.sums, kept[:, :, None], axis=1),
        np.take_along_axis(found.rows, kept, axis=1),
        np.take_along_axis(found.next, kept, axis=1),
    )


def _traced(problem: Problem, partial: dict[int, Partial]) -> IntArray:
    """The row that covers each layer, (J, W, layers)."""
    shape = partial[0].above.shape
    chosen = np.zeros((*shape, problem.layers), dtype=np.int32)
    label, begin = np.broadcast_to(np.arange(shape[1]), shape).copy(), np.zeros(shape, dtype=np.int64)
    line = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    for layer in range(problem.layers):
        here = begin == layer
        at = (line[here], label[here])
        if layer:
            chosen[~here, layer] = chosen[~here, layer - 1]
        chosen[here, layer] = partial[layer].rows[at]
        label[here] = partial[layer].next[at]
        begin[here] += problem.library.length[chosen[here, layer]]
    return chosen
