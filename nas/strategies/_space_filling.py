"""Space-filling designs over the axes, each architecture at most once."""

from collections.abc import Callable

import numpy as np
from scipy.stats import qmc

from nas.search.distinct_sampling import draw_unseen
from nas.search.key_index import KeyIndex
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.space import SearchSpace

ROUNDS = 8


def latin_hypercube(space: SearchSpace, seen: KeyIndex, n: int, generator: np.random.Generator) -> IntArray:
    """Up to n new genotypes from Latin hypercubes over the axes; they are added to `seen`."""

    def cube(count: int) -> FloatArray:
        points: FloatArray = qmc.LatinHypercube(d=len(space.genes), rng=generator).random(count)
        return points

    return filled(space, seen, n, generator, cube)


def filled(
    space: SearchSpace, seen: KeyIndex, n: int, generator: np.random.Generator, points: Callable[[int], FloatArray]
) -> IntArray:
    """New genotypes from a stream of points in [0, 1)^g, topped up from what is left of the space."""
    chosen: list[IntArray] = []
    short = min(n, space.size - len(seen))
    for _ in range(ROUNDS):
        if short == 0:
            break
        genotypes = space.spread(points(short))
        genotypes = genotypes[seen.add(space.keys(genotypes))]
        chosen.append(genotypes)
        short -= len(genotypes)
    if short:
        chosen.append(space.genotypes(draw_unseen(space.size, seen, short, generator)))
    return np.concatenate(chosen) if chosen else space.genotypes(np.zeros(0, dtype=np.int64))
