"""Numbers of devices: a column holds whole numbers, and what a board is called may be anything.

The number of a name is the same in every process, so that stored columns and tasks for workers mean the same everywhere.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from search_spaces.arrays import AnyArray, IntArray

BYTES = 7  # of a number, which is positive in 64 bits; two names of a study share one with probability below 1e-8
_NAMES = {0: ""}  # 0 is the study's own device


def number_of(name: str) -> int:
    """The number of a device's name, from then on read back by `names_of`; "" is 0."""
    if not name:
        return 0
    number = int.from_bytes(blake2b(name.encode(), digest_size=BYTES).digest(), "big") or 1
    if _NAMES.setdefault(number, name) != name:
        raise ValueError(
            f"device: expected names with numbers of their own, got {name} and {_NAMES[number]}; rename one"
        )
    return number


def names_of(numbers: Iterable[int] | IntArray) -> AnyArray:
    """The names of numbers, (n,)."""
    column = np.asarray(numbers)
    known, place = np.unique(column, return_inverse=True)
    names = np.array([_NAMES[number] for number in known.tolist()], dtype=object)
    found: AnyArray = names[place.reshape(column.shape)]
    return found
