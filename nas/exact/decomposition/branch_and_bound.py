"""Branch and bound over boxes of FFNs: a box falls, with a backbone, when the best imaginable point of it does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from nas.exact.decomposition.additive_bounds import AdditiveBounds
from nas.exact.decomposition.checking import agreement
from nas.exact.decomposition.dominance_lookup import SLACK
from nas.exact.decomposition.incumbents import Incumbents
from nas.exact.decomposition.items import Items
from nas.problem.problem import Problem
from search_spaces.arrays import BoolArray, FloatArray, IntArray

AT_ONCE = 600_000
CACHED = 65_536  # items whose columns stay in the processor's cache
FEW = 5_000  # items whose bounds take as long as the calls around them


@dataclass
class Effort:
    """Counters of the work: items bounded, architectures evaluated whole, architectures settled by either.

    `difference` is the largest relative one between the sums and the wholes that were evaluated.
    """

    bounded: int = 0
    evaluated: int = 0
    covered: int = 0
    difference: float = 0.0

    def add(self, further: Self) -> None:
        """Count further work in."""
        self.bounded += further.bounded
        self.evaluated += further.evaluated
        self.covered += further.covered
        self.difference = max(self.difference, further.difference)


class Exceeded(Exception):
    """More items had to be bounded than allowed."""


@dataclass(eq=False)
class BranchAndBound:
    """Finds every member of a problem's feasible frontier over a grid that the incumbents lack.

    No architecture in a box with a backbone is better than its sums in any objective or budget. When
    an incumbent is better in every objective, or a budget is out of reach, none of them can be on
    the frontier. That is checked on the way: the shares of no half of a box may be better than the
    box's, and no architecture than its sums. `most` limits the items, of which few at once count as `FEW`.
    """

    problem: Problem
    sums: AdditiveBounds
    known: Incumbents
    metrics: tuple[str, ...]
    most: int | None = None
    effort: Effort = field(default_factory=Effort)
    spent: int = 0

    @cached_property
    def compared(self) -> list[tuple[str, float | None]]:
        """Metrics that budgets limit, each with its limit, then the objectives."""
        budgets: list[tuple[str, float | None]] = [(budget.metric, budget.limit) for budget in self.problem.budgets]
        return budgets + [(objective.name, None) for objective in self.problem.objectives]

    def blocks(self, size: int = AT_ONCE) -> Iterator[Items]:
        """The whole grid in blocks of about `size` items that can be settled one by one, in any order."""
        return Items.everything(self.sums.grid, self.sums.backbones, size)

    def settle(self, block: Items, report: Callable[[int], None] | None = None) -> None:
        """Settle every architecture of a block.

        Raises:
            Exceeded: `most` items did not suffice.
            BrokenSum: something was better than the bound that admitted it.
        """
        stack = [block]
        while stack:
            items = stack.pop()
            if len(items) > AT_ONCE and len(pieces := items.pieces(AT_ONCE // 2)) > 1:
                stack += pieces
                continue
            before = self.effort.covered
            rest = self._settled(items)
            if rest is not None:
                stack.append(rest)
            if report is not None:
                report(self.effort.covered - before)

    def _settled(self, items: Items) -> Items | None:
        """Drop what cannot matter and evaluate single architectures; what is left comes back cut in halves."""
        self.effort.bounded += len(items)
        self.spent += max(len(items), FEW)
        if self.most is not None and self.spent > self.most:
            raise Exceeded
        ffn, volumes = self.sums.ffn(items.boxes), items.boxes.volumes
        if items.around is not None:
            self.sums.refuse_better(ffn, items.around)
        left, best = self._alive(items, ffn)
        single = items.boxes.single[left.box]
        if single.any():
            self._evaluate(left.kept(single), [column[single] for column in best])
        rest = left.kept(~single)
        self.effort.covered += int(volumes[items.box].sum() - volumes[rest.box].sum())
        return rest.split(ffn) if len(rest) else None

    def _alive(self, items: Items, ffn: FloatArray) -> tuple[Items, list[FloatArray]]:
        """The items whose best imaginable point is within the budgets and not behind an incumbent, with that point."""
        starts = range(0, max(len(items), 1), CACHED)
        runs = [self._alive_of_run(items.kept(slice(start, start + CACHED)), ffn) for start in starts]
        left = np.concatenate([start + rows for start, (rows, _) in zip(starts, runs, strict=True)])
        return items.kept(left), [np.concatenate(column) for column in zip(*(best for _, best in runs), strict=True)]

    def _alive_of_run(self, items: Items, ffn: FloatArray) -> tuple[IntArray, list[FloatArray]]:
        """The same of so few items that their columns stay in the cache, as rows."""
        rows, best = np.arange(len(items)), list[FloatArray]()
        for metric, limit in self.compared:
            values = self.sums.values(metric, ffn, items.box, items.backbone)
            best.append(values)
            if limit is not None and not (within := ~(values > limit + SLACK * abs(limit))).all():
                kept = np.flatnonzero(within)
                items, rows, best = items.kept(kept), rows[kept], [column[kept] for column in best]
        left = np.flatnonzero(self._improving(items, ffn, best[len(self.problem.budgets) :]))
        return rows[left], [column[left] for column in best]

    def _improving(self, items: Items, ffn: FloatArray, objectives: list[FloatArray]) -> BoolArray:
        """Which items no incumbent beats in every objective."""
        return ~self.known.behind(objectives)

    def _evaluate(self, leaves: Items, best: list[FloatArray]) -> None:
        """Evaluate single architectures whole, and hold them against their sums."""
        found = self.problem.evaluate(leaves.genotypes(self.sums.grid, self.sums.backbones), self.metrics)
        for (metric, _), sums in zip(self.compared, best, strict=True):
            self.effort.difference = max(self.effort.difference, agreement(metric, sums, found))
        self.effort.evaluated += len(leaves)
        self.known.add(found)
