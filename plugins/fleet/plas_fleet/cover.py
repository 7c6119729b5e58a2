"""The fewest designs that cover all cases, within a cost: exact, by the case that fewest designs cover."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from plas_fleet.patterns import Masks, Patterns
from search_spaces.arrays import FloatArray, IntArray

SURE = 1_000  # steps that are taken whatever the time: they find what there is of an easy cover


class OutOfTime(Exception):
    """The deadline passed before anything was proved."""


@dataclass(eq=False)
class Cover:
    """Designs by what they cover, those of most cases first; what is known not to be possible.

    Of equal coverage the cheapest alone are held, and none that another beats in coverage and cost.
    """

    masks: Sequence[int]
    cost: Sequence[float]
    rows: IntArray
    deadline: float = np.inf
    impossible: dict[tuple[int, int], float] = field(default_factory=dict)
    steps: int = 0

    @classmethod
    def of(cls, masks: Masks, cost: FloatArray, deadline: float = np.inf) -> "Cover":
        """The cover of columns (n,): masks of cases, costs."""
        zeros = np.zeros(len(masks))
        kept = Patterns(np.arange(len(masks)), masks, zeros, cost).reduced()
        return cls(kept.masks.tolist(), kept.cost.tolist(), kept.keys, deadline)

    def within(self, cases: int, most: int, budget: float = np.inf) -> IntArray | None:
        """At most so many designs that cover all cases (bits) within a cost, as columns; None where there are none.

        Raises:
            OutOfTime: neither was proved.
        """
        found = self._search(cases, most, budget)
        return None if found is None else self.rows[found]

    def _search(self, left: int, most: int, budget: float) -> list[int] | None:
        if not left:
            return []
        if most == 0 or self.impossible.get((left, most), -1.0) >= budget or self._hopeless(left, most):
            return None
        self.steps += 1
        if self.steps > SURE and time.monotonic() > self.deadline:
            raise OutOfTime
        for place in self._choices(left):
            if self.cost[place] > budget:
                continue
            rest = self._search(left & ~self.masks[place], most - 1, budget - self.cost[place])
            if rest is not None:
                return [place, *rest]
        self.impossible[left, most] = max(budget, self.impossible.get((left, most), -1.0))
        return None

    def _hopeless(self, left: int, most: int) -> bool:
        """Whether even the largest coverages together are too small."""
        sizes = sorted(((mask & left).bit_count() for mask in self.masks), reverse=True)
        return sum(sizes[:most]) < left.bit_count()

    def _choices(self, left: int) -> list[int]:
        """The designs that cover the case which fewest cover, those of most cases left first."""
        bits = [1 << bit for bit in range(left.bit_length()) if left >> bit & 1]
        of_case = min(([i for i, mask in enumerate(self.masks) if mask & bit] for bit in bits), key=len)
        return sorted(of_case, key=lambda i: (-(self.masks[i] & left).bit_count(), self.cost[i]))
