"""The frontier within a tolerance: mixtures found near lower bounds, and how far any other could lie below them."""

import numpy as np

from nas.errors import InfeasibleError
from plas_blocks.gap import corners
from plas_blocks.linear_bounds import near
from plas_blocks.lines import Lines, lines
from plas_blocks.problem import Problem
from plas_blocks.solution import Frontier, nothing_within, ranges, staircase
from search_spaces.arrays import AnyArray, FloatArray, IntArray

TARGET = 1e-3  # of the frontier's range; lines are added until it is reached
ROUNDS, WIDTH, MOST_NEW = 12, 48, 96
ROUNDING = 1e-12  # of weighted sums, relative
SLOPES = np.logspace(-4.0, 4.0, 41)  # of the first lines, as shares of the ranges


def bracketed(problem: Problem, rounds: int = ROUNDS) -> Frontier:
    """The frontier of two objectives within limits, with the tolerance that was proved.

    Raises:
        InfeasibleError: nothing was found within the limits; it is not proved that there is nothing.
    """
    scale = np.maximum(problem.most[-1] - problem.least[-1], 1.0)[:2]
    angles, new = np.zeros(0), np.concatenate([[0.0], np.arctan(SLOPES), [np.pi / 2]])
    chosen: AnyArray = np.zeros((0, problem.layers), dtype=np.int32)
    sums = np.zeros((0, 2))
    directions, bounds, tolerance = np.zeros((0, 2)), np.zeros(0), np.inf
    for number in range(rounds):
        told = lines(problem, np.stack([np.cos(new), np.sin(new)], axis=1) / scale)
        angles, directions = np.concatenate([angles, new]), np.concatenate([directions, told.weights[:, :2]])
        bounds = np.concatenate([bounds, told.bounds])
        sums, chosen = _with(sums, chosen, *near(problem, told, WIDTH * 2 ** (number // 3)))
        if not len(sums):
            raise InfeasibleError(nothing_within(problem).replace("none is", "none was found"))
        gaps, tight = _gaps(problem, sums, directions, bounds)
        tolerance = float(gaps.max())
        if tolerance <= TARGET:
            break
        new = _between(angles, tight[np.argsort(-gaps)][: (gaps > TARGET).sum()])
    room = max(tolerance, 1e-12) * ranges(problem, sums)
    return Frontier(problem, chosen, sums, np.full(len(sums), np.nan), room, f"{len(angles):,} lines")


def _with(sums: FloatArray, chosen: IntArray, more: FloatArray, rows: IntArray) -> tuple[FloatArray, IntArray]:
    sums, chosen = np.concatenate([sums, more[:, :2]]), np.concatenate([chosen, rows])
    kept = staircase(sums) if len(sums) else np.zeros(0, dtype=np.int64)
    return sums[kept], chosen[kept]


def _gaps(
    problem: Problem, sums: FloatArray, directions: FloatArray, bounds: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Of every place beside neighbours: by what share of the ranges a mixture there could be better, and which line says so.

    A better mixture has both objectives below such a place: the first of one neighbour, the second of the other. Beyond an
    end of the frontier it is better in one objective than the last neighbour, whatever the other, which no mixture has above `most`.
    """
    scale, places = ranges(problem, sums), corners(problem, sums)
    shares = np.broadcast_to(directions @ scale, (len(places), len(directions))).copy()
    shares[0], shares[-1] = directions[:, 0] * scale[0], directions[:, 1] * scale[1]
    reached = places @ directions.T
    above = reached - bounds + ROUNDING * (np.abs(reached) + np.abs(bounds))
    gaps = np.divide(above, shares, out=np.full(above.shape, np.inf), where=shares > 0)
    tight = gaps.argmin(axis=1)
    return np.maximum(gaps[np.arange(len(places)), tight], 0.0), tight


def _between(angles: FloatArray, tight: IntArray) -> FloatArray:
    """Directions between those lines and their neighbours."""
    order = np.argsort(angles)
    place, ascending = np.empty(len(angles), dtype=np.int64), angles[order]
    place[order] = np.arange(len(angles))
    near_ones = dict.fromkeys(place[tight].tolist())
    sides = [(at + d, at + d + 1) for at in near_ones for d in (-1, 0) if -1 < at + d < len(angles) - 1]
    middles = [(ascending[a] + ascending[b]) / 2 for a, b in dict.fromkeys(sides)]
    return np.array(middles[:MOST_NEW])


def best_bound(problem: Problem) -> tuple[Lines, FloatArray, IntArray]:
    """Of a single objective: its line, and the best mixture found near it, sums (1, D) and rows; none where none was found."""
    told = lines(problem, np.ones((1, 1)))
    sums, chosen = near(problem, told, 1_000)
    best = np.argsort(sums[:, 0], kind="stable")[:1]
    return told, sums[best], chosen[best]
