"""A table that tells in one look-up whether known points beat a point in every objective."""

import numpy as np

from search_spaces.arrays import BoolArray, FloatArray, IntArray

SLACK = 1e-9  # relative; sums of parts and whole architectures agree far more closely
CELLS = 1 << 18


class Table:
    """The least value of one objective among points in strictly smaller bins of all others.

    Points in smaller bins have smaller values, so what the table calls behind is behind; what lies in
    the same bin as its better is let through.
    """

    def __init__(self, points: FloatArray) -> None:
        least, most = points.min(axis=0), points.max(axis=0)
        self.kept = int(np.argmin((most - least) / np.maximum(np.abs(most), 1e-300)))  # bins would tell least of it
        others = [i for i in range(points.shape[1]) if i != self.kept]
        side = int(CELLS ** (1 / max(len(others), 1)))
        self.bins = [(i, Bins(least[i], most[i], side)) for i in others]
        self.least = np.full([bins.count + 2 for _, bins in self.bins] or [1], np.inf)
        self.add(points)

    def add(self, points: FloatArray) -> None:
        """Add points (n, m); each counts from the bins after its own on."""
        cells = tuple(bins.index(points[:, i]) + 1 for i, bins in self.bins)
        np.minimum.at(self.least, cells or (np.zeros(len(points), dtype=np.int64),), points[:, self.kept])
        for axis in range(len(self.bins)):
            np.minimum.accumulate(self.least, axis=axis, out=self.least)

    def behind(self, values: list[FloatArray]) -> BoolArray:
        """Return which points (objective by objective, each (n,)) are beaten in every objective by more than SLACK.

        ∞, a perplexity beyond floating point, is beaten by every number.
        """
        lowered = [column * (1.0 - np.copysign(SLACK, column)) for column in values]
        cell: IntArray | int = 0
        for (i, bins), side in zip(self.bins, self.least.shape, strict=False):
            cell = cell * side + bins.index(lowered[i])
        behind: BoolArray = self.least.reshape(-1).take(cell) < lowered[self.kept]
        return behind


class Bins:
    """A weakly rising, nearly logarithmic map from values to 0 … count."""

    def __init__(self, low: float, high: float, count: int) -> None:
        first, last = ordered(np.array([low, high])).tolist()
        self.count = count
        self.shift = max((last - first) // (count - 1), 0).bit_length()
        self.first, self.last = first >> self.shift, last >> self.shift

    def index(self, values: FloatArray) -> IntArray:
        """Return the bins (n,) of values (n,); values below the range get its first bin, values above it the bin after its last."""
        bins: IntArray = ordered(values) >> self.shift
        np.clip(bins, self.first, self.last + 1, out=bins)  # before the difference, which whole numbers may not hold
        bins -= self.first
        return bins


def ordered(values: FloatArray) -> IntArray:
    """Return integers (n,) in the order of floating-point values (n,)."""
    whole = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    negative = whole < 0
    return np.where(negative, np.int64(-(2**63)) - whole, whole) if negative.any() else whole
