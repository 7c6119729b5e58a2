"""Rows whose training diverged: so far from every fit that they say nothing of a design, left out by name."""

from dataclasses import replace

import numpy as np

from objectives.fitting.robust import NORMAL
from objectives.fitting.trained_models import Table
from search_spaces.arrays import BoolArray, FloatArray

MOST_SCALES, MOST_NATS = (
    20.0,
    0.5,
)  # beyond so many standard deviations of the others, and so many nats, a residual is no noise
LEAST_SCALE = 1e-6  # nats


def diverged(residuals: FloatArray, coefficients: int = 0) -> BoolArray:
    """Which rows lie above a fit by more than MOST_SCALES robust standard deviations of its residuals and MOST_NATS, nats, (n,)."""
    found: BoolArray = residuals - np.median(residuals) > max(MOST_SCALES * spread(residuals, coefficients), MOST_NATS)
    return found


def spread(residuals: FloatArray, coefficients: int = 0) -> float:
    """Robust standard deviation of residuals, nats: that of a normal with the same median of absolute values.

    A robust fit goes through as many rows as it has coefficients: the smallest residuals, that many, are no evidence of noise.
    """
    sizes = np.sort(np.abs(residuals - np.median(residuals)))[coefficients:]
    return max(NORMAL * float(np.median(sizes)), LEAST_SCALE)


def without_diverged(table: Table, residuals: FloatArray, coefficients: int = 0) -> Table:
    """The table without rows whose training diverged, each named in a note; the table itself where none did."""
    out = diverged(residuals, coefficients)
    if not out.any():
        return table
    far = (residuals - np.median(residuals)) / spread(residuals, coefficients)
    said = [_said(table, row, float(far[row])) for row in np.flatnonzero(out).tolist()]
    return replace(table[np.flatnonzero(~out)], notes=(*table.notes, *said))


def _said(table: Table, row: int, scales: float) -> str:
    name = "" if table.names is None or not str(table.names[row]) else f" ({table.names[row]})"
    return f"line {table.lines[row]}{name} left out: its loss {table.loss[row]:.4g} lies {scales:.0f} standard deviations above the fit, as of a training that diverged"
