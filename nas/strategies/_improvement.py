"""Designs that add most to a hypervolume, one after the other."""

import heapq

import moocore
import numpy as np

from nas.problem.indicators import REFERENCE
from search_spaces.arrays import FloatArray, IntArray

NOTHING = 1e-12


def most_improving(points: FloatArray, known: FloatArray, count: int) -> IntArray:
    """Up to `count` rows of points (n, m), each adding most to what `known` (k, m) and the rows before it dominate.

    All are normalised, the best values 0 and the worst 1. Rows that add nothing are not chosen. Gains only shrink as more is
    chosen, so that most are measured once.
    """
    dominated = Volume(known)
    gains = [(-dominated.gain(point), row) for row, point in enumerate(points)]
    heapq.heapify(gains)
    chosen: list[int] = []
    while gains and len(chosen) < count:
        _, row = heapq.heappop(gains)
        now = -dominated.gain(points[row])
        if gains and now > gains[0][0]:
            heapq.heappush(gains, (now, row))
            continue
        if now >= -NOTHING:
            break
        chosen.append(row)
        dominated.add(points[row])
    return np.array(chosen, dtype=np.int64)


class Volume:
    """The volume that some points dominate within the reference point; of one objective, the length below it."""

    def __init__(self, points: FloatArray) -> None:
        self.points = self._padded(points)
        if len(self.points):
            self.points = self.points[moocore.is_nondominated(self.points)]
        self.volume = self._dominated(self.points)

    def gain(self, point: FloatArray) -> float:
        """How much a point adds."""
        return self._dominated(np.concatenate([self.points, self._padded(point[None])])) - self.volume

    def add(self, point: FloatArray) -> None:
        """Take a point in."""
        self.points = np.concatenate([self.points, self._padded(point[None])])
        self.volume = self._dominated(self.points)

    def _dominated(self, points: FloatArray) -> float:
        reference = np.full(points.shape[1], REFERENCE)
        return float(moocore.hypervolume(points, ref=reference)) if len(points) else 0.0

    def _padded(self, points: FloatArray) -> FloatArray:
        return np.pad(points, ((0, 0), (0, 1))) if points.shape[1] == 1 else points
