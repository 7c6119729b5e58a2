"""Designs that add most to a hypervolume, one after the other."""

import heapq
from collections.abc import Sequence

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


def most_expected(states: Sequence[tuple[FloatArray, FloatArray]], count: int) -> IntArray:
    """Up to `count` rows, each adding most, on average over states of affairs, to what is known and the rows before it dominate.

    states: of each the points (n, m), rows of NaN for those that do not count in it, and what is known (k, m), normalised.
    """
    volumes = [Volume(known) for _, known in states]
    gains = np.stack([volume.gains(points) for volume, (points, _) in zip(volumes, states, strict=True)])
    chosen: list[int] = []
    while len(chosen) < count:
        row = int(np.argmax(gains.sum(axis=0)))
        if gains[:, row].sum() <= NOTHING:
            break
        chosen.append(row)
        for volume, own, (points, _) in zip(volumes, gains, states, strict=True):
            if own[row] > NOTHING:
                volume.add(points[row])
                left = np.flatnonzero(own > NOTHING)
                own[left] = volume.gains(points[left])
        gains[:, chosen] = 0.0
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

    def gains(self, points: FloatArray) -> FloatArray:
        """How much each point adds by itself, (n,); nothing a row of NaN."""
        found = np.zeros(len(points))
        inside = np.flatnonzero((points < REFERENCE).all(axis=1))
        if points.shape[1] == 2:
            found[inside] = self._added_areas(points[inside])
            return found
        free = [
            row for row in inside.tolist() if not (self.points[:, : points.shape[1]] <= points[row]).all(axis=1).any()
        ]
        found[free] = [self.gain(points[row]) for row in free]
        return found

    def _added_areas(self, points: FloatArray) -> FloatArray:
        """∫ max(h(x) − y, 0) dx from each point (x, y) to the reference, (n,), h the least second value of what lies left of x."""
        kept = self.points[(self.points < REFERENCE).all(axis=1)]
        kept = kept[np.argsort(kept[:, 0], kind="stable")]
        heights = np.minimum.accumulate(np.concatenate([[REFERENCE], kept[:, 1]]))
        ends = np.concatenate([[-np.inf], kept[:, 0], [REFERENCE]])
        widths = np.maximum(ends[1:] - np.maximum(ends[:-1], points[:, :1]), 0.0)
        return np.asarray((widths * np.maximum(heights - points[:, 1:], 0.0)).sum(axis=1))

    def add(self, point: FloatArray) -> None:
        """Take a point in."""
        self.points = np.concatenate([self.points, self._padded(point[None])])
        self.volume = self._dominated(self.points)

    def _dominated(self, points: FloatArray) -> float:
        reference = np.full(points.shape[1], REFERENCE)
        return float(moocore.hypervolume(points, ref=reference)) if len(points) else 0.0

    def _padded(self, points: FloatArray) -> FloatArray:
        return np.pad(points, ((0, 0), (0, 1))) if points.shape[1] == 1 else points
