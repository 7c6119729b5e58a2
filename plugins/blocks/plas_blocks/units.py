"""Metrics as whole numbers of their last decimal place, so that sums are exact and equal totals are equal.

A sum of floats depends on its order: the same two blocks in two layers could differ in the last bit, and neither a tie nor
dominance would be certain. Whole numbers below 2^53 add exactly in float64. Where a column has too many digits for that
(a measured loss of 17 digits), its values are rounded to the last place that fits: about 15 digits of the largest total.
"""

import math

import numpy as np

from search_spaces.arrays import FloatArray

MOST_DIGITS = 15.6  # log10 of the largest total: 2^53 is 10^15.95, and weighted sums need room
MOST_PLACES = 17


def places_of(values: FloatArray, total: float) -> int:
    """Decimal places that hold every value, or as many as leave sums up to `total` exact."""
    most = min(math.floor(MOST_DIGITS - math.log10(max(total, 1e-300))), 300)
    for places in range(min(most, MOST_PLACES) + 1):
        if np.array_equal(from_units(in_units(values, places), places), values):
            return places
    return most


def in_units(values: FloatArray, places: int) -> FloatArray:
    """Values as whole numbers of 10^-places."""
    return np.rint(values * 10.0**places if places >= 0 else values / 10.0**-places)


def from_units(units: FloatArray, places: int) -> FloatArray:
    """Whole numbers of 10^-places as values, each the closest float."""
    result: FloatArray = units / 10.0**places if 0 <= places <= 22 else units * 10.0**-places
    return result


def limit_in_units(limit: float, places: int) -> float:
    """The largest whole number of 10^-places within a limit; one that the limit meets but for its own rounding counts."""
    scaled = limit * 10.0**places
    if not math.isfinite(scaled):
        return scaled
    nearest = float(np.rint(scaled))
    return nearest if abs(scaled - nearest) <= 1e-12 * max(abs(scaled), 1.0) else math.floor(scaled)
