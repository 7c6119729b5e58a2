"""Dominance under the tie rule: values are compared after rounding to 12 significant digits."""

import moocore
import numpy as np

from nas.evaluations import Evaluations
from search_spaces.arrays import FloatArray, IntArray

DIGITS = 12
TINY = 1e-200


def rounded(values: FloatArray) -> FloatArray:
    """Values to 12 significant digits, same shape; equal quantities computed in another order become equal."""
    boost = np.where(np.abs(values) < TINY, 1.0 / TINY, 1.0)  # else the scale of tiny values would overflow
    boosted = values * boost
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log10(np.abs(boosted)))
    exponent = np.where(np.isfinite(exponent), exponent, 0.0)
    scale = 10.0 ** (DIGITS - 1 - exponent)
    result: FloatArray = np.round(boosted * scale) / scale / boost
    return result


def non_dominated(values: FloatArray) -> IntArray:
    """Rows of (n, m) that no other dominates, ascending; equal rows are all kept.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError("values: expected finite objectives, got NaN or infinity; leave failed rows out")
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    comparable = rounded(values)
    if comparable.shape[1] == 1:
        return np.flatnonzero(comparable[:, 0] == comparable.min())
    return np.flatnonzero(moocore.is_nondominated(comparable, keep_weakly=True))


def frontier_rows(evaluations: Evaluations) -> IntArray:
    """Rows of the feasible non-dominated architectures, sorted by the objectives, then by genotype."""
    feasible = np.flatnonzero(evaluations.feasible)
    values = evaluations.values[feasible]
    kept = non_dominated(values)
    rows, values = feasible[kept], rounded(values[kept])
    order = np.lexsort((evaluations.keys[rows], *values.T[::-1]))
    return rows[order]
