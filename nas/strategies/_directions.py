"""Reference directions of algorithms that decompose the objective space."""

from itertools import combinations, count
from math import comb

import numpy as np

from nas.errors import UsageError
from search_spaces.arrays import FloatArray


def count_of(objectives: int, divisions: int) -> int:
    """How many directions there are, C(divisions + m − 1, m − 1)."""
    return comb(divisions + objectives - 1, objectives - 1)


def divisions_of(objectives: int, population: int) -> int:
    """The most divisions whose directions do not outnumber the population, at least one."""
    if objectives == 1:
        return 1
    return next(d for d in count(1) if count_of(objectives, d + 1) > population)


def directions(objectives: int, population: int, divisions: int | None) -> FloatArray:
    """Evenly spread points of the unit simplex (n, m), each coordinate a multiple of 1/divisions.

    As many divisions as the population can hold when None; one objective has one direction.
    Source: Das and Dennis 1998.

    Raises:
        UsageError: more directions than the population can hold.
    """
    parts = divisions or divisions_of(objectives, population)
    wanted = count_of(objectives, parts)
    if wanted > population:
        raise UsageError(
            f"params.population: expected at least {wanted:,}, one for each reference direction of {objectives} objectives "
            f"in {parts} divisions, got {population:,}; raise it or lower divisions"
        )
    bars = np.array(list(combinations(range(parts + objectives - 1), objectives - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=-1)
    edges[:, -1] = parts + objectives - 1
    found: FloatArray = (np.diff(edges, axis=1) - 1) / parts
    return found
