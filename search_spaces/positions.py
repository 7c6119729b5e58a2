"""Where values stand on an axis."""

import numpy as np

from search_spaces.arrays import BoolArray, IntArray


def position(axis: IntArray, values: IntArray) -> IntArray:
    """Index of each value (n,) on an axis of distinct values in any order; −1 where it is not on it."""
    order = np.argsort(axis)
    place = order[np.minimum(np.searchsorted(axis, values, sorter=order), len(axis) - 1)]
    return np.where(axis[place] == values, place, -1)


def position_in_rows(rows: IntArray, valid: BoolArray, values: IntArray) -> IntArray:
    """Index of each value (n,) among the valid ones of its own row (n, k); −1 where it is not there."""
    hit = (rows == values[:, None]) & valid
    return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
