"""Distances between neighbouring members of a front."""

import numpy as np

from search_spaces.arrays import FloatArray


def crowding_distance(values: FloatArray) -> FloatArray:
    """Mean over objectives of the distance between both neighbours, as a share of the range, (n,); inf at the ends.

    An objective that is the same for all adds nothing. Source: Deb et al. 2002, III.B; to the last bit pymoo's.
    """
    n, m = values.shape
    if n <= 2:
        return np.full(n, np.inf)
    order, column = values.argsort(axis=0, kind="stable"), np.arange(m)
    ordered = values[order, column]
    span = ordered[-1] - ordered[0]
    gaps = np.full((n + 1, m), np.inf)
    gaps[1:-1] = ordered[1:] - ordered[:-1]
    gaps = np.where(span > 0, gaps / np.where(span > 0, span, 1.0), 0.0)
    around = np.empty((n, m))
    around[order, column] = gaps[:-1] + gaps[1:]
    found: FloatArray = around.sum(axis=1) / m
    return found
