"""A gene whose valid values depend on another gene (its owner), as small tables."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from search_spaces.arrays import BoolArray, IntArray, frozen


@dataclass(frozen=True, eq=False)
class DependentGene:
    """Tables over (owner value, gene value).

    valid: allowed or not; counts: allowed values per owner; nth: gene value of the i-th allowed;
    rank: position among the allowed of a valid value; repaired: the next smaller allowed value.
    """

    valid: BoolArray
    counts: IntArray
    nth: IntArray
    rank: IntArray
    repaired: IntArray

    @classmethod
    def from_mask(cls, valid: BoolArray) -> Self:
        """Tables from the mask of allowed values, (owners, values); each owner allows one at least."""
        rank = np.cumsum(valid, axis=1) - 1
        counts = rank[:, -1] + 1
        nth = np.argsort(~valid, axis=1, kind="stable")
        repaired = np.take_along_axis(nth, np.maximum(rank, 0), axis=1)
        return cls(frozen(valid), frozen(counts), frozen(nth), frozen(rank), frozen(repaired))
