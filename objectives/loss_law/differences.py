"""Differences of two designs' losses where a law carries draws: intervals and the probability of an order.

A draw gives a difference Δ_i; what designs are worth beside any law is a normal of sd σ each, the law's residual sd. So the difference is a
mixture of normals about the Δ_i with sd √2 σ.
"""

import math

import numpy as np

from search_spaces.arrays import FloatArray

HALVINGS = 24  # of the range: to 1e-7 of it
FEW = 4_000  # values of a distribution function that Python finds as soon as scipy is imported
AT_ONCE = 4_000_000  # draws of differences


def probability_below(gaps: FloatArray, sd: float, at: FloatArray | float = 0.0) -> FloatArray:
    """Probability that each difference is below a value, (n,); `gaps` (draws, n), `sd` of one design's misfit, nats. Equal ones count half."""
    if sd > 0.0:
        below: FloatArray = _normal((at - gaps) / (np.sqrt(2.0) * sd)).mean(axis=0)
        return below
    return np.asarray(((gaps < at) + 0.5 * (gaps == at)).mean(axis=0))


def _normal(z: FloatArray) -> FloatArray:
    """Φ(z), of the same shape; of few values without scipy, which takes longer to import than the whole answer of a run to find."""
    if z.size > FEW:
        from scipy.special import ndtr

        return np.asarray(ndtr(z))
    values = [0.5 * math.erfc(each) for each in (z / -math.sqrt(2.0)).ravel().tolist()]
    return np.array(values).reshape(z.shape)


def difference_quantiles(gaps: FloatArray, sd: float, levels: tuple[float, ...]) -> FloatArray:
    """Quantiles of each difference, (levels, n), nats; `gaps` (draws, n), `sd` of one design's misfit.

    Where there is a misfit by bisection between the ends of the draws, widened by eight sds.
    """
    if sd == 0.0:
        return np.asarray(np.quantile(gaps, levels, axis=0))
    size, found = max(1, AT_ONCE // len(gaps)), np.empty((len(levels), gaps.shape[1]))
    for start in range(0, gaps.shape[1], size):
        block = gaps[:, start : start + size]
        for row, level in zip(found, levels, strict=True):
            row[start : start + size] = _bisected(block, sd, level)
    return found


def _bisected(gaps: FloatArray, sd: float, level: float) -> FloatArray:
    low, high = gaps.min(axis=0) - 8.0 * np.sqrt(2.0) * sd, gaps.max(axis=0) + 8.0 * np.sqrt(2.0) * sd
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        less = probability_below(gaps, sd, middle) < level
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray(0.5 * (low + high))
