"""Which designs to evaluate next: those that improve the frontier as it is expected, or over states of affairs where little is sure."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import moocore
import numpy as np

from nas.problem.evaluations import REFERENCE, non_dominated
from plas_prior.corrected import LEAST, Corrected, Guess
from plas_prior.prior_columns import Designs
from search_spaces.arrays import BoolArray, FloatArray, IntArray

COMPARED = 300  # designs whose gain is measured
DRAWN_NEAR = 250  # designs near the corrected frontier, and as many others, of which one state of affairs is drawn
# Error of left-out values over their spread, above which an improvement is expected over states of affairs.
UNSURE = 0.15
USELESS = 0.6  # the same, above which half of what is asked for are neighbours of the best evaluated designs
STATES = 8  # of affairs over which an improvement is expected
LOOKED_AT = 3_000  # designs of a large pool
NEAR = 400  # designs whose improvement is
OPTIMISM = 1.5  # sd
UNLIKELY = 0.02  # probability of holding the budgets, below which a design is not considered
NONE: IntArray = np.zeros(0, dtype=np.int64)  # no rows


@dataclass(frozen=True, eq=False)
class Proposals:
    """Designs to choose from, `taken` those that were evaluated or are on the way, (n,), and what is expected of all.

    confidence: least probability of holding the budgets, of all of a batch but `explored`.
    """

    corrected: Corrected
    pool: Designs
    guess: Guess
    taken: BoolArray
    confidence: float
    explored: int
    generator: np.random.Generator

    def batch(self, most: int, few: int) -> IntArray:
        """Rows to evaluate next: up to `most`, where what is left out is predicted badly up to `few`."""
        error = self.corrected.error()
        most = most if error <= UNSURE else min(most, few)
        sure = most - min(self.explored, most)
        if error > UNSURE:
            chosen = self._beside(most // 2) if error > USELESS else NONE
            chosen = self._expected(chosen, most - len(chosen) if sure == most else sure - len(chosen), self.confidence)
            chosen = self._expected(chosen, most - len(chosen), UNLIKELY)
        elif self.corrected.limited and sure < most:
            chosen = self._expected(NONE, (most + 1) // 2, self.confidence)
            chosen = self._expected(chosen, most - len(chosen), UNLIKELY)
        else:
            chosen = best(self.guess, self.pool, self.taken, sure, self.confidence, self.generator)
        for _ in range(most - len(chosen)):  # more than asked for where little improves what is expected
            chosen = np.concatenate([chosen, self._drawn(chosen)])
        return chosen

    def _expected(self, chosen: IntArray, count: int, least: float) -> IntArray:
        """Rows chosen before, and those that improve most besides them, on average over states of affairs."""
        if count <= 0:
            return chosen
        taken = self.taken.copy()
        taken[chosen] = True
        rows = self._near(taken, least)
        ends = self._ends()
        states = []
        for state in self.corrected.drawn(self.pool[rows], self.generator, STATES):
            points, holds = normalised(state.values, ends), state.holds > 0
            states.append((np.where((holds & ~taken[rows])[:, None], points, np.nan), points[holds & taken[rows]]))
        return np.concatenate([chosen, rows[most_expected(states, count)]])

    def _near(self, taken: BoolArray, least: float) -> IntArray:
        """Rows of the taken designs, and of unseen ones, likely within the budgets, that may be nearest to improving the frontier."""
        unseen = np.flatnonzero(~taken & (self.guess.holds >= least))
        values = self.corrected.optimistic(self.pool, OPTIMISM)[unseen]
        nearest = np.argsort(self._behind(values), kind="stable")[:NEAR]
        return np.concatenate([np.flatnonzero(taken), unseen[nearest]])

    def _behind(self, values: FloatArray) -> FloatArray:
        """How far values (k, m) are behind the corrected frontier, normalised, (k,)."""
        ends = self._ends()
        return behind(values, ends if len(ends) <= COMPARED else self.generator.choice(ends, COMPARED, replace=False))

    def _ends(self) -> FloatArray:
        return self.guess.values[front(self.guess, self.confidence)]

    def _beside(self, count: int) -> IntArray:
        """Rows of unseen neighbours of the best evaluated designs, drawn: what is left where nothing predicts."""
        space = self.corrected.problem.space
        reached = np.flatnonzero(self.taken & (self.guess.holds >= self.confidence))
        members = reached[non_dominated(self.guess.values[reached])] if len(reached) else reached
        near = space.keys(space.neighbours(self.pool.genotypes[members])) if len(members) else self.pool.keys[:0]
        rows = np.flatnonzero(np.isin(self.pool.keys, near) & ~self.taken & self.pool.ok)
        return self.generator.choice(rows, min(count, len(rows)), replace=False)

    def _drawn(self, chosen: IntArray) -> IntArray:
        """The row that adds most in one state of affairs, of the evaluated designs and some near the frontier and others."""
        unseen = np.setdiff1d(np.flatnonzero(~self.taken & (self.guess.holds > 0)), chosen)
        nearest = np.argsort(self._behind(self.guess.values[unseen]), kind="stable")[:DRAWN_NEAR]
        others = self.generator.permutation(np.delete(np.arange(len(unseen)), nearest))[:DRAWN_NEAR]
        rows = np.concatenate([np.flatnonzero(self.taken), unseen[nearest], unseen[others]])
        some = self.pool[rows]
        state = self.corrected.drawn(some, self.generator)[0]
        return rows[best(state, some, self.taken[rows], 1, self.confidence, self.generator)]


def best(
    guess: Guess, pool: Designs, known: BoolArray, count: int, confidence: float, generator: np.random.Generator
) -> IntArray:
    """Rows of unseen designs that improve most on what is known, likely within the budgets; else the likeliest."""
    likely = guess.holds >= confidence
    rows = np.flatnonzero(~known & likely)
    if not len(rows):
        rows = np.flatnonzero(~known & pool.ok)
        return rows[np.argsort(-guess.holds[rows], kind="stable")[:count]]
    rows = rows[non_dominated(guess.values[rows])]
    reached = np.flatnonzero(known & likely)
    ends = guess.values[np.concatenate([rows, reached])]
    ends = ends[non_dominated(ends)]
    if len(rows) > COMPARED:
        rows = np.sort(generator.choice(rows, COMPARED, replace=False))
    points, before = normalised(guess.values[rows], ends), normalised(guess.values[reached], ends)
    return rows[most_improving(points, before, count)]


def front(guess: Guess, confidence: float = 0.5) -> IntArray:
    """Rows that are likely within the budgets and that no other such row dominates; else those likeliest within."""
    rows = np.flatnonzero(guess.holds >= confidence)
    if not len(rows):
        return np.argsort(-guess.holds, kind="stable")[:LEAST]
    return rows[non_dominated(guess.values[rows])]


def behind(values: FloatArray, ends: FloatArray) -> FloatArray:
    """How far values (k, m) are behind some others, normalised by these: the least by which all would have to improve, (k,)."""
    points, of = normalised(values, ends), normalised(ends, ends)
    found = np.full(len(values), np.inf)
    for end in of:
        found = np.minimum(found, reduce(np.maximum, (points - end).T))
    return found


def promising(pool: Designs, guess: Guess, taken: IntArray, confidence: float) -> IntArray:
    """Rows of a large pool that are worth a closer look, ascending: those of some keys, those nearest to the frontier, some others."""
    ends = guess.values[front(guess, confidence)]
    far = behind(guess.values, ends[:: max(1, len(ends) // COMPARED)])
    nearest = np.argsort(np.where(guess.holds > UNLIKELY, far, np.inf), kind="stable")[:LOOKED_AT]
    others = np.arange(0, len(pool), max(1, len(pool) // DRAWN_NEAR))
    return np.unique(np.concatenate([np.flatnonzero(np.isin(pool.keys, taken)), nearest, others]))


def normalised(values: FloatArray, ends: FloatArray) -> FloatArray:
    """Values (n, m) with the best of some others at 0 and the worst at 1."""
    low, high = ends.min(axis=0), ends.max(axis=0)
    return np.asarray((values - low) / np.where(high > low, high - low, 1.0))


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
