"""Drawing architectures that were not seen before, also when few are left."""

import numpy as np

from nas.search.key_index import KeyIndex
from search_spaces.arrays import IntArray

_ROUNDS = 12
_LISTED = 50_000_000


def draw_unseen(size: int, seen: KeyIndex, n: int, generator: np.random.Generator) -> IntArray:
    """Up to n distinct keys of [0, size) outside `seen`, uniform; they are added to `seen`.

    By rejection first; when most keys are seen, from the list of those that are left.
    """
    fresh = np.zeros(0, dtype=np.int64)
    wanted = min(n, size - len(seen))
    for _ in range(_ROUNDS):
        if len(fresh) == wanted:
            return fresh
        drawn = generator.integers(0, size, size=wanted - len(fresh))
        fresh = np.concatenate([fresh, drawn[seen.add(drawn)]])
    if len(fresh) < wanted and size <= _LISTED:
        left = np.flatnonzero(seen.rows(np.arange(size)) < 0)
        drawn = generator.choice(left, size=wanted - len(fresh), replace=False)
        seen.add(drawn)
        fresh = np.concatenate([fresh, drawn])
    return fresh
