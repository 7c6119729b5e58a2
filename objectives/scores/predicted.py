"""What curves say of bits per byte: scores with intervals, differences, and which designs a score tells apart."""

from statistics import NormalDist

import numpy as np

from objectives.scores.curves import FamilyCurve
from search_spaces.arrays import BoolArray, FloatArray, IntArray

ENDS = (0.05, 0.95)
NODES = 20
NORMALS = np.array([NormalDist().inv_cdf((i + 0.5) / NODES) for i in range(NODES)])  # that stand for a normal residual
APART = 0.95  # probability from which on two designs are told apart
BLOCK = 500


def interval(curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None = None) -> tuple[FloatArray, ...]:
    """The median expected score, and where 5 % and 95 % of measured ones lie, (n,) each.

    offset: bits per byte less b₀, (n,) or (draws, n); misfit: sd of them that each design has for itself, (n,).
    """
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    low, high = _quantiles(expected, sd)
    least = min(0.0, curve.chance)
    return np.median(expected, axis=0), np.clip(low, least, curve.top), np.clip(high, least, curve.top)


def spread(curve: FamilyCurve, expected: FloatArray, misfit: FloatArray | None) -> FloatArray:
    """The sd of measured scores about their expectations, (draws, n) both."""
    own = np.broadcast_to(curve.columns[2], expected.shape)
    return own if misfit is None else np.asarray(np.hypot(own, curve.changes(expected) * misfit))


def difference(
    curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None, of: int, other: int
) -> tuple[float, float, float] | None:
    """How much higher one design's measured score is than another's: median, 5 % and 95 %, in one laboratory; None where it is not told apart."""
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    gap, both = (expected[:, of] - expected[:, other])[:, None], np.hypot(sd[:, of], sd[:, other])[:, None]
    if max(probability := float(_above(gap, both)[0]), 1.0 - probability) < APART:
        return None
    low, high = _quantiles(gap, both)
    return float(np.median(gap)), float(low[0]), float(high[0])


def steps(curve: FamilyCurve, offset: FloatArray, misfit: FloatArray | None) -> IntArray:
    """The step of each design, (n,), from the highest expected score: in a step the score tells no design from its first one."""
    expected = curve.scores(offset)
    sd = spread(curve, expected, misfit)
    left = np.argsort(-np.median(expected, axis=0), kind="stable")
    found, number = np.full(expected.shape[1], -1), 0
    while len(left):
        first = left[0]
        apart: BoolArray = (
            _above(expected[:, [first]] - expected[:, left], np.hypot(sd[:, [first]], sd[:, left])) >= APART
        )
        apart[0] = False
        found[left[~apart]], left, number = number, left[apart], number + 1
    return found


def _above(gaps: FloatArray, sd: FloatArray) -> FloatArray:
    """The probability that each difference is above 0, (n,); gaps and sd (draws, n)."""
    from scipy.special import ndtr

    found: FloatArray = ndtr(gaps / sd).mean(axis=0)
    return found


def _quantiles(expected: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """5 % and 95 % of expectation and residual together, (n,) each."""
    blocks = [slice(start, start + BLOCK) for start in range(0, expected.shape[1], BLOCK)]
    found = [
        np.quantile(
            (expected[:, at, None] + sd[:, at, None] * NORMALS)
            .transpose(0, 2, 1)
            .reshape(-1, expected[:, at].shape[1]),
            ENDS,
            axis=0,
        )
        for at in blocks
    ]
    low, high = np.concatenate(found, axis=1)
    return low, high
