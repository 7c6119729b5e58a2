"""Branch and bound over boxes of FFNs: a box falls, with a partner, when the best imaginable point of it does."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nas.decomposition.incumbents import Incumbents
from nas.decomposition.items import Items
from nas.decomposition.sums import Sums
from nas.decomposition.table import SLACK
from nas.problem import Problem
from search_spaces.arrays import IntArray

AT_ONCE = 300_000


@dataclass
class Effort:
    """Items bounded, architectures evaluated whole, and architectures settled by either."""

    bounded: int = 0
    evaluated: int = 0
    covered: int = 0


class Exceeded(Exception):
    """More items had to be bounded than allowed."""


@dataclass(eq=False)
class BranchAndBound:
    """Finds every member of a problem's feasible frontier over a grid that the incumbents lack.

    No architecture in a box with a partner is better than its sums in any objective or budget. When
    an incumbent is better in every objective, or a budget is out of reach, none of them can be on
    the frontier. `most` limits the items bounded.
    """

    problem: Problem
    sums: Sums
    known: Incumbents
    metrics: tuple[str, ...]
    most: int | None = None
    effort: Effort = field(default_factory=Effort)

    def blocks(self, size: int = AT_ONCE) -> list[Items]:
        """The whole grid in blocks of about `size` items that can be settled one by one, in any order."""
        return Items.everything(self.sums.grid, self.sums.partners).pieces(size)

    def settle(self, block: Items, report: Callable[[int], None] | None = None) -> None:
        """Settle every architecture of a block.

        Raises:
            Exceeded: `most` items did not suffice.
        """
        stack = [block]
        while stack:
            items = stack.pop()
            if len(items) > AT_ONCE and len(pieces := items.pieces(AT_ONCE // 2)) > 1:
                stack += pieces
                continue
            before = self.effort.covered
            rest = self._settled(items)
            if len(rest):
                stack.append(rest.split())
            if report is not None:
                report(self.effort.covered - before)

    def _settled(self, items: Items) -> Items:
        """Drop what cannot matter and evaluate single architectures; what is returned must be split."""
        self.effort.bounded += len(items)
        if self.most is not None and self.effort.bounded > self.most:
            raise Exceeded
        left = items.kept(self._alive(items))
        single = items.boxes.single[left.box]
        leaves, rest = left.kept(single), left.kept(~single)
        if len(leaves):
            genotypes = leaves.genotypes(self.sums.grid, self.sums.partners)
            self.known.add(self.problem.evaluate(genotypes, self.metrics))
        volumes = items.boxes.volumes
        self.effort.evaluated += len(leaves)
        self.effort.covered += int(volumes[items.box].sum() - volumes[rest.box].sum())
        return rest

    def _alive(self, items: Items) -> IntArray:
        """Rows whose best imaginable point is within the budgets and not behind an incumbent."""
        ffn, rows = self.sums.ffn(items.boxes), np.arange(len(items))
        for budget in self.problem.budgets:
            values = self.sums.values(budget.metric, ffn, items.box[rows], items.partner[rows])
            rows = rows[values <= budget.limit + SLACK * abs(budget.limit)]
        box, partner = items.box[rows], items.partner[rows]
        best = [self.sums.values(o.name, ffn, box, partner) for o in self.problem.objectives]
        return rows[~self.known.behind(best)]
