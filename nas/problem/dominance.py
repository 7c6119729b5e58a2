"""Dominance under the tie rule: values are compared after rounding to 12 significant digits."""

import moocore
import numpy as np

from nas.problem.evaluations import Evaluations
from search_spaces.arrays import FloatArray, IntArray

DIGITS = 12
TINY = 1e-200
BLOCK = 131_072


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


def non_dominated(values: FloatArray, *, exact: bool = False) -> IntArray:
    """Rows of (n, m) that no other dominates, ascending; equal rows are all kept. `exact`: values are compared as they are.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError("values: expected finite objectives, got NaN or infinity; leave failed rows out")
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    comparable = values if exact else rounded(values)
    if comparable.shape[1] == 1:
        return np.flatnonzero(comparable[:, 0] == comparable.min())
    return np.flatnonzero(moocore.is_nondominated(comparable, keep_weakly=True))


def frontier_rows(evaluations: Evaluations) -> IntArray:
    """Rows of the feasible non-dominated architectures, sorted by the objectives, then by genotype.

    In blocks: what a block dominates is gone before the next one, so that millions of rows take little memory.
    """
    rows: IntArray = np.zeros(0, dtype=np.int64)
    for start in range(0, len(evaluations), BLOCK):
        feasible = start + np.flatnonzero(evaluations[start : start + BLOCK].feasible)
        rows = np.concatenate([rows, feasible])
        rows = rows[non_dominated(objective_values(evaluations, rows))]
    values = rounded(objective_values(evaluations, rows))
    order = np.lexsort((evaluations.keys[rows], *values.T[::-1]))
    return rows[order]


def objective_values(evaluations: Evaluations, rows: IntArray) -> FloatArray:
    """Objective values of some rows, (k, m)."""
    return np.stack([evaluations.metrics[name][rows] for name in evaluations.objectives], axis=1)
