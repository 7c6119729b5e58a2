"""Few designs that cover all cases: exact, by the case that fewest designs cover."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(eq=False)
class Cover:
    """Designs by the cases that they cover, bits; `impossible`: cases and numbers of designs known not to cover them."""

    masks: Sequence[int]
    impossible: set[tuple[int, int]] = field(default_factory=set)

    def within(self, left: int, most: int) -> list[int] | None:
        """At most so many designs, by their places, that cover all cases (bits); None where there are none."""
        if not left:
            return []
        if most == 0 or (left, most) in self.impossible or self._hopeless(left, most):
            return None
        for place in self._choices(left):
            rest = self.within(left & ~self.masks[place], most - 1)
            if rest is not None:
                return [place, *rest]
        self.impossible.add((left, most))
        return None

    def _hopeless(self, left: int, most: int) -> bool:
        """Whether even the largest coverages together are too small."""
        sizes = sorted(((mask & left).bit_count() for mask in self.masks), reverse=True)
        return sum(sizes[:most]) < left.bit_count()

    def _choices(self, left: int) -> list[int]:
        """The designs that cover the case which fewest cover, those of most cases left first."""
        bits = [1 << bit for bit in range(left.bit_length()) if left >> bit & 1]
        of_case = min(([i for i, mask in enumerate(self.masks) if mask & bit] for bit in bits), key=len)
        return sorted(of_case, key=lambda i: -(self.masks[i] & left).bit_count())


def covering(allowed: BoolArray, most: int) -> IntArray | None:
    """At most so many rows of (n, cases) of which each case is allowed in one; None where there are none."""
    masks = [sum(1 << case for case in np.flatnonzero(row).tolist()) for row in allowed]
    found = Cover(masks).within((1 << allowed.shape[1]) - 1, most)
    return None if found is None else np.array(found, dtype=np.int64)


def least_regret(regret: FloatArray, most: int) -> tuple[IntArray, float] | None:
    """The rows of least worst regret of at most so many designs, and that regret; None where none serve all.

    regret: (n, cases), ∞ where a design does not fit.
    """
    levels = np.unique(regret[np.isfinite(regret)])
    low, high = -1, len(levels)
    best = None
    while high - low > 1:
        middle = (low + high) // 2 if best is not None else high - 1
        rows = covering(regret <= levels[middle], most)
        if rows is None:
            low = middle
        else:
            high, best = middle, (rows, float(levels[middle]))
    return best
