"""Designs by the set of cases whose limits each meets: of every set those that none beats in loss, and in cost where it counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MOST_CASES = 64  # bits of a mask
Masks = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Patterns:
    """Columns (n,): key of the design, bit c set where it is within all limits of case c, its loss, its cost (0 where none counts)."""

    keys: IntArray
    masks: Masks
    loss: FloatArray
    cost: FloatArray

    @classmethod
    def none(cls) -> Self:
        """No design."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> Self:
        return type(self)(self.keys[rows], self.masks[rows], self.loss[rows], self.cost[rows])

    def fits(self, cases: int) -> BoolArray:
        """Whether each design fits each case, (n, cases)."""
        bits = np.uint64(1) << np.arange(cases, dtype=np.uint64)
        found: BoolArray = (self.masks[:, None] & bits) != 0
        return found

    def reduced(self) -> Self:
        """Those that no other beats: fits at least the same cases, is no worse in loss and cost; of equal ones the first."""
        useful = self[(self.masks != 0) & np.isfinite(self.loss)]
        order = np.lexsort((useful.keys, useful.cost, useful.loss, -_counts(useful.masks)))
        useful = useful[order]
        kept = useful[_staircases(useful)]
        lookup = Lookup(kept)
        return kept[~lookup.beaten(kept, own=True)]


def joined(parts: Sequence[Patterns]) -> Patterns:
    """The rows of all parts, in order."""
    names = ("keys", "masks", "loss", "cost")
    return Patterns(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def patterns_of(found: Sequence[Evaluations], limits: Sequence[Sequence[Budget]], cost: FloatArray | None) -> Patterns:
    """Designs evaluated in each case; the loss is that of the first case, the same in all."""
    first = found[0]
    masks = np.zeros(len(first), dtype=np.uint64)
    for bit, (evaluations, budgets) in enumerate(zip(found, limits, strict=True)):
        met = evaluations.ok
        for budget in budgets:
            met = met & (budget.violation(evaluations.metrics[budget.metric]) <= 0.0)
        masks |= met.astype(np.uint64) << np.uint64(bit)
    zeros = np.zeros(len(first)) if cost is None else np.asarray(cost, dtype=np.float64)
    return Patterns(first.keys, masks, first.metrics["loss"], zeros)


def clipped(cost: FloatArray, most: float) -> FloatArray:
    """Costs (n,), all those beyond the most that may be spent as one, twice it: how much more says nothing."""
    return np.where(cost > most, 2.0 * most, cost)


def _counts(masks: Masks) -> IntArray:
    return np.bitwise_count(masks).astype(np.int64)


def _staircases(rows: Patterns) -> BoolArray:
    """Of rows in order of loss within each mask, those of less cost than all before them, (n,)."""
    kept = np.zeros(len(rows), dtype=bool)
    for members in _by_mask(rows.masks):
        members = members[np.lexsort((rows.keys[members], rows.cost[members], rows.loss[members]))]
        before = np.concatenate([[np.inf], np.minimum.accumulate(rows.cost[members])[:-1]])
        kept[members[rows.cost[members] < before]] = True
    return kept


def _by_mask(masks: Masks) -> Iterator[IntArray]:
    """Row numbers of each distinct mask."""
    order = np.argsort(masks, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(masks[order])) + 1) if len(order) else ()


@dataclass(eq=False)
class Lookup:
    """Least losses among designs whose masks hold a mask, within a cost."""

    known: Patterns
    _stairs: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    @cached_property
    def _members(self) -> dict[int, IntArray]:
        return {int(self.known.masks[rows[0]]): rows for rows in _by_mask(self.known.masks)}

    @cached_property
    def _masks(self) -> Masks:
        return np.array(list(self._members), dtype=np.uint64)

    @cached_property
    def _costly(self) -> bool:
        return bool((self.known.cost > 0.0).any())

    @cached_property
    def _least(self) -> FloatArray:
        return np.array([self.known.loss[rows].min() for rows in self._members.values()])

    def least(self, masks: Masks, cost: FloatArray) -> FloatArray:
        """Per row the least loss of a known design that fits all cases of the mask at no more cost, (n,); ∞ without one."""
        unique, back = np.unique(masks, return_inverse=True)
        if not self._costly:
            return self._of_masks(unique)[back]
        found = np.empty(len(masks))
        order = np.argsort(back, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(back))[:-1]) if len(order) else ():
            costs, losses = self._stair(int(masks[rows[0]]))
            found[rows] = losses[np.searchsorted(costs, cost[rows], side="right")]
        return found

    def _of_masks(self, masks: Masks) -> FloatArray:
        if len(self._masks) == 0:
            return np.full(len(masks), np.inf)
        return np.concatenate(
            [
                np.where((self._masks & part[:, None]) == part[:, None], self._least, np.inf).min(axis=1)
                for part in np.array_split(masks, max(1, len(masks) * len(self._masks) // 4_000_000))
            ]
        )

    def _stair(self, mask: int, *, strictly: bool = False) -> tuple[FloatArray, FloatArray]:
        """Costs ascending, and the least loss within each; the first entry of losses is that of no cost at all, ∞."""
        key = -mask - 1 if strictly else mask
        if key not in self._stairs:
            above = [rows for m, rows in self._members.items() if m & mask == mask and not (strictly and m == mask)]
            rows = np.concatenate(above) if above else np.zeros(0, dtype=np.int64)
            rows = rows[np.argsort(self.known.cost[rows], kind="stable")]
            losses = np.concatenate([[np.inf], np.minimum.accumulate(self.known.loss[rows])])
            self._stairs[key] = self.known.cost[rows], losses
        return self._stairs[key]

    def beaten(self, rows: Patterns, *, own: bool = False) -> BoolArray:
        """Which rows a known design beats or equals; `own`: of one that fits more cases, where the rows are the known themselves."""
        if not own:
            return self.least(rows.masks, rows.cost) <= rows.loss
        found = np.zeros(len(rows), dtype=bool)
        for members in _by_mask(rows.masks):
            costs, losses = self._stair(int(rows.masks[members[0]]), strictly=True)
            least = losses[np.searchsorted(costs, rows.cost[members], side="right")]
            found[members] = least <= rows.loss[members]
        return found
