"""Filters sums of two objectives that can be on a frontier, by a table, before they are made.

A frontier of n points shifted by k replacements has n·k candidates, of which hardly more than n survive. The table holds, on
an even grid of the first objective, the lowest second one that some candidate has by then: one shifted copy a replacement.
A candidate above the table's entry before its own is dominated; the few others are compared exactly.
"""

import numpy as np

from search_spaces.arrays import FloatArray, IntArray

FEW = 20_000  # candidates that are simply all made
FINENESS = 4  # grid points a label


def surviving(begins: list[tuple[FloatArray, FloatArray]]) -> list[list[IntArray]]:
    """Of each pair of replacements (k, 2) and staircase (n, 2): a replacement, the rows whose sums may survive.

    Staircases ascend in the first and descend in the second objective.
    """
    if sum(len(values) * len(stairs) for values, stairs in begins) < FEW:
        return [[np.arange(len(stairs))] * len(values) for values, stairs in begins]
    low = min(values[:, 0].min() + stairs[0, 0] for values, stairs in begins)
    high = max(values[:, 0].max() + stairs[-1, 0] for values, stairs in begins)
    cells = FINENESS * max(len(stairs) for _, stairs in begins)
    step = max((high - low) / cells, 1.0)
    table = np.full(cells + 3, np.inf)
    for values, stairs in begins:
        _lower(table, values, stairs, low, step)
    before = np.concatenate([[np.inf], table[:-1]])  # a cell of room, so that no rounding of places matters
    return [[_below(before, value, stairs, low, step) for value in values] for values, stairs in begins]


def _lower(table: FloatArray, values: FloatArray, stairs: FloatArray, low: float, step: float) -> None:
    """Enter every shifted copy of a staircase."""
    lowest = np.full(len(table), np.inf)
    lowest[np.ceil((stairs[:, 0] - stairs[0, 0]) / step).astype(np.int64)] = stairs[
        :, 1
    ]  # the last of a cell is lowest
    np.minimum.accumulate(lowest, out=lowest)
    for value in values:
        shift = int(np.ceil((value[0] + stairs[0, 0] - low) / step))
        shifted = lowest[: len(table) - shift] + value[1]
        np.minimum(table[shift:], shifted, out=table[shift:])


def _below(before: FloatArray, value: FloatArray, stairs: FloatArray, low: float, step: float) -> IntArray:
    cells = ((stairs[:, 0] + (value[0] - low)) / step).astype(np.int64)
    return np.flatnonzero(stairs[:, 1] + value[1] <= before[cells])
