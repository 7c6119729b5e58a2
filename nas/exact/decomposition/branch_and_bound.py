"""Branch and bound over boxes of FFNs: a box with a backbone is dropped when its optimistic bound is dominated."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np

from nas.exact.decomposition.additive_bounds import AdditiveBounds, agreement
from nas.exact.decomposition.dominance_lookup import SLACK, Table
from nas.exact.decomposition.grid import Items
from nas.problem.evaluations import Evaluations, distinct, frontier_rows
from nas.problem.objective import EXTRAPOLATION, Budget
from nas.problem.problem import Problem
from search_spaces.arrays import BoolArray, FloatArray, IntArray


class Incumbents:
    """Feasible non-dominated architectures, with all ties.

    New ones wait until there are enough to renew the table, few beside few, or, rarer, the frontier. `elsewhere` are objective values,
    (k, m), of feasible architectures of another space: they are not among the known, but whoever is behind them is behind.
    """

    def __init__(self, elsewhere: FloatArray | None = None) -> None:
        self.front: Evaluations | None = None
        self.waiting: list[Evaluations] = []
        self.unseen = 0
        self.elsewhere = elsewhere
        self.table = None if elsewhere is None else Table(elsewhere)

    def add(self, evaluations: Evaluations) -> None:
        """Add evaluated architectures."""
        kept = evaluations[frontier_rows(evaluations)]
        if len(kept) == 0:
            return
        self.waiting.append(kept)
        self.unseen += len(kept)
        known = 0 if self.front is None else len(self.front)
        if self.table is None or self.front is None or sum(map(len, self.waiting)) > max(2000, known // 2):
            self.settle()
        elif self.unseen > min(200, known // 2):
            self.table.add(np.concatenate([part.values for part in self.waiting]))
            self.unseen = 0

    def settle(self) -> Evaluations | None:
        """Return the frontier of everything added, in file order; None if nothing was feasible."""
        if self.waiting:
            rows = distinct([*([] if self.front is None else [self.front]), *self.waiting])
            self.front = rows[frontier_rows(rows)]
            self.table = self._table_of(self.front)
        self.waiting, self.unseen = [], 0
        return self.front

    def _table_of(self, front: Evaluations) -> Table:
        return Table(front.values if self.elsewhere is None else np.concatenate([front.values, self.elsewhere]))

    def noted(self) -> dict[str, Any]:
        """Return the state that `restored` needs, as plain content."""
        waiting = [key for part in self.waiting for key in part.keys.tolist()]
        return {
            "front": [] if self.front is None else self.front.keys.tolist(),
            "waiting": waiting,
            "unseen": self.unseen,
        }

    @classmethod
    def restored(
        cls, note: Mapping[str, Any], evaluated: Callable[[list[int]], Evaluations], elsewhere: FloatArray | None = None
    ) -> Self:
        """Return incumbents from their state and what is known elsewhere; `evaluated` returns the architectures of keys."""
        known = cls(elsewhere)
        if note["front"]:
            known.front = evaluated(note["front"])
            known.table = known._table_of(known.front)
        if note["waiting"] and known.table is not None:
            known.waiting, known.unseen = [evaluated(note["waiting"])], note["unseen"]
            known.table.add(known.waiting[0].values[: len(note["waiting"]) - known.unseen])
        return known

    def behind(self, values: list[FloatArray]) -> BoolArray:
        """Return which points (objective by objective, each (n,)) an incumbent beats in every objective."""
        if self.table is None:
            return np.zeros(len(values[0]), dtype=bool)
        return self.table.behind(values)


AT_ONCE = 600_000
CACHED = 65_536  # items whose columns stay in the processor's cache
OPENED = 0.12  # of the longer range of a box, in logarithms: wider groups of depths are opened before it is cut
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
        """Add further work."""
        self.bounded += further.bounded
        self.evaluated += further.evaluated
        self.covered += further.covered
        self.difference = max(self.difference, further.difference)


class Exceeded(Exception):
    """Raised when more items must be bounded than allowed."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """A frontier that is wanted: its objectives, its budgets, what is known of it; `dense` tells which genotypes are, where no others are wanted."""

    objectives: tuple[str, ...]
    budgets: tuple[Budget, ...]
    known: Incumbents
    dense: Callable[[IntArray], BoolArray] | None = None

    @property
    def limits(self) -> dict[str, float]:
        """The tightest limit on each metric."""
        return {b.metric: min(o.limit for o in self.budgets if o.metric == b.metric) for b in self.budgets}

    def add(self, evaluations: Evaluations) -> None:
        """Take in evaluated architectures."""
        wanted = evaluations if self.dense is None else evaluations[self.dense(evaluations.genotypes)]
        self.known.add(replace(wanted, objectives=self.objectives, budgets=self.budgets))

    def improving(self, values: Mapping[str, FloatArray], *, within: bool) -> BoolArray:
        """Which items may hold members, given the best values of metrics, each (n,); `within`: all are within the budgets."""
        improving = ~self.known.behind([values[name] for name in self.objectives])
        for budget in () if within else self.budgets:
            improving &= ~beyond(values[budget.metric], budget.limit)
        return improving


def beyond(values: FloatArray, limit: float) -> BoolArray:
    """Which values lie beyond a limit by more than SLACK."""
    result: BoolArray = values > limit + SLACK * abs(limit)
    return result


@dataclass(eq=False)
class BranchAndBound:
    """A search for every member of feasible frontiers over a grid that their incumbents lack.

    No architecture in a box with a backbone is better than its sums in any objective or budget. When
    an incumbent is better in every objective, or a budget is out of reach, none of them can be on
    the frontier. That is checked on the way: the shares of no half of a box may be better than the
    box's, and no architecture than its sums. `most` limits the items, of which few at once count as `FEW`.
    """

    problem: Problem
    sums: AdditiveBounds
    wanted: tuple[Wanted, ...]
    metrics: tuple[str, ...]
    most: int | None = None
    effort: Effort = field(default_factory=Effort)
    spent: int = 0

    @cached_property
    def compared(self) -> dict[str, float | None]:
        """Metrics that all frontiers limit, each with the loosest limit, then further ones with None; last what takes longest."""
        limits = [one.limits for one in self.wanted]
        shared = {name: max(each[name] for each in limits) for name in limits[0] if all(name in o for o in limits)}
        names = (name for one in self.wanted for name in (*one.limits, *one.objectives))
        every = shared | {name: None for name in names if name not in shared}
        return dict(sorted(every.items(), key=lambda each: each[0] == EXTRAPOLATION))

    def blocks(self, size: int = AT_ONCE) -> Iterator[Items]:
        """Yield the whole grid in blocks of about `size` items that can be settled in any order."""
        return Items.everything(self.sums.grid, self.sums.backbones, size, self.sums.tree)

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
        left, narrow = items.kept(self._alive(items, ffn)), OPENED * np.maximum(*items.boxes.spreads)
        while (wide := self.sums.spread[left.backbone] >= narrow[left.box]).any():
            left, fresh = left.opened(self.sums.tree, wide)
            self.effort.bounded += int(fresh.sum())
            self.spent += int(fresh.sum())
            alive = ~fresh
            alive[np.flatnonzero(fresh)[self._alive(left.kept(fresh), ffn)]] = True
            left = left.kept(alive)
        single, size = items.boxes.single[left.box], self.sums.tree.size
        if single.any():
            self._evaluate(left.kept(single), ffn)
        rest = left.kept(~single)
        before, after = (int((volumes[some.box] * size[some.backbone]).sum()) for some in (items, rest))
        self.effort.covered += before - after
        return rest.split(ffn, twice=len(rest) < FEW) if len(rest) else None

    def _alive(self, items: Items, ffn: FloatArray) -> IntArray:
        """The rows of items whose best imaginable point is within the budgets and not behind an incumbent."""
        starts = range(0, max(len(items), 1), CACHED)
        runs = [self._alive_of_run(items.kept(slice(start, start + CACHED)), ffn) for start in starts]
        return np.concatenate([start + rows for start, rows in zip(starts, runs, strict=True)])

    def _alive_of_run(self, items: Items, ffn: FloatArray) -> IntArray:
        """The same of so few items that their columns stay in the cache."""
        rows, best = np.arange(len(items)), list[FloatArray]()
        for metric, limit in self.compared.items():
            if metric == EXTRAPOLATION:  # of those alone that are worth it
                optimistic = dict(zip(self.compared, [*best, np.zeros(len(items))], strict=True))
                kept = np.flatnonzero(self._improving(items, ffn, optimistic))
                items, rows, best = items.kept(kept), rows[kept], [column[kept] for column in best]
            values = self.sums.values(metric, ffn, items.box, items.backbone, limit)
            best.append(values)
            if limit is not None and not (within := ~beyond(values, limit)).all():
                kept = np.flatnonzero(within)
                items, rows, best = items.kept(kept), rows[kept], [column[kept] for column in best]
        return rows[self._improving(items, ffn, dict(zip(self.compared, best, strict=True)))]

    def _improving(self, items: Items, ffn: FloatArray, values: Mapping[str, FloatArray]) -> BoolArray:
        """Which items may hold a member of some frontier."""
        within, dense = len(self.wanted) == 1, self.sums.grid.dense
        improving = [one.improving(values, within=within) for one in self.wanted]
        for which, one in zip(improving, self.wanted, strict=True):
            if one.dense is not None:
                which &= dense[items.boxes.group].take(items.box)
        return reduce(np.logical_or, improving)

    def _evaluate(self, leaves: Items, ffn: FloatArray) -> None:
        """Evaluate single architectures whole, and hold them against their sums."""
        found = self.problem.evaluate(leaves.genotypes(self.sums.grid, self.sums.backbones), self.metrics)
        for metric, limit in self.compared.items():
            sums = self.sums.values(metric, ffn, leaves.box, leaves.backbone, limit)
            self.effort.difference = max(self.effort.difference, agreement(metric, sums, found))
        self.effort.evaluated += len(leaves)
        for one in self.wanted:
            one.add(found)
