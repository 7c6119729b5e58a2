"""Values of a study as people write them in a flag: nothing, names by comma."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any


def none_word(value: Any) -> Any:
    """The word `none` means no value."""
    return None if value == "none" else value


def ascending(values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers, each larger than the one before it.

    Raises:
        ValueError: other content, or fewer than two.
        TypeError: not several values.
    """
    found = tuple(float(value) for value in values)
    rising = all(0.0 < low < high < math.inf for low, high in pairwise(found))
    if len(found) < 2 or not rising:
        raise ValueError(f"expected two positive numbers or more, each larger than the one before, got {list(found)}")
    return found


def split_names(value: Any) -> Any:
    """`loss,total_ms` as a list of names."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
