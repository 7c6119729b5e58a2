"""Designs by the set of cases whose limits each meets: of every set the one of least loss that none beats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MOST_CASES = 64  # bits of a mask
AT_ONCE = 4_000_000  # pairs of masks that are compared at once
Masks = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Patterns:
    """Columns (n,): key of the design, bit c set where it is within all limits of case c, its loss."""

    keys: IntArray
    masks: Masks
    loss: FloatArray

    @classmethod
    def none(cls) -> Self:
        """No design."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64), np.zeros(0))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> Self:
        return type(self)(self.keys[rows], self.masks[rows], self.loss[rows])

    def fits(self, cases: int) -> BoolArray:
        """Whether each design fits each case, (n, cases)."""
        bits = np.uint64(1) << np.arange(cases, dtype=np.uint64)
        found: BoolArray = (self.masks[:, None] & bits) != 0
        return found

    def reduced(self) -> Self:
        """Those that no other beats: fits at least the same cases, is no worse in loss; of equal ones the first."""
        useful = self[(self.masks != 0) & np.isfinite(self.loss)]
        order = np.lexsort((useful.keys, useful.loss, -np.bitwise_count(useful.masks).astype(np.int64)))
        _, first = np.unique(useful.masks[order], return_index=True)
        kept = useful[order[np.sort(first)]]
        return kept[kept.least(kept.masks, strictly=True) > kept.loss]

    def least(self, masks: Masks, *, strictly: bool = False) -> FloatArray:
        """Per mask the least loss of a design that fits all its cases, or `strictly` these and more, (n,); ∞ without one."""
        if len(self) == 0:
            return np.full(len(masks), np.inf)
        distinct, back = np.unique(masks, return_inverse=True)
        least = []
        for part in np.array_split(distinct, max(1, len(distinct) * len(self) // AT_ONCE)):
            above = (self.masks & part[:, None]) == part[:, None]
            above &= (self.masks != part[:, None]) | (not strictly)
            least.append(np.where(above, self.loss, np.inf).min(axis=1))
        result: FloatArray = np.concatenate(least)[back]
        return result


def joined(parts: Sequence[Patterns]) -> Patterns:
    """The rows of all parts, in order."""
    return Patterns(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "masks", "loss")))


def patterns_of(found: Sequence[Evaluations], limits: Sequence[Sequence[Budget]]) -> Patterns:
    """Designs evaluated in each case; the loss is that of the first case, the same in all."""
    first = found[0]
    masks = np.zeros(len(first), dtype=np.uint64)
    for bit, (evaluations, budgets) in enumerate(zip(found, limits, strict=True)):
        met = evaluations.ok
        for budget in budgets:
            met = met & (budget.violation(evaluations.metrics[budget.metric]) <= 0.0)
        masks |= met.astype(np.uint64) << np.uint64(bit)
    return Patterns(first.keys, masks, first.metrics["loss"])
