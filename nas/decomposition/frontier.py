"""Exact answers from sums of parts: feasible frontiers under any objectives and budgets of one problem."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from nas.decomposition.checking import largest_difference
from nas.decomposition.grid import Grid
from nas.decomposition.incumbents import Incumbents
from nas.decomposition.search import AT_ONCE, BranchAndBound, Effort
from nas.decomposition.sums import Sums
from nas.evaluations import Evaluations
from nas.notebook import Notebook, section_of
from nas.objective import Budget, Objective
from nas.problem import Problem
from search_spaces.arrays import IntArray

PARTNERS = 10_000_000  # combinations of depth, width and KV heads that fit into memory
FIRST = 20_000  # random architectures, at most, that give branch and bound its first incumbents
STRIDES = (16, 4, 1)  # coarse grids sharpen the incumbents for the whole one
WORTH_STRIDES = 1_000_000
BLOCK = AT_ONCE // 8  # what is settled between two notes
SEED = 20_260_101


class SumsOfParts:
    """A problem's space seen through its parts; `metrics` may be asked for, all of them declare parts.

    `difference` is the largest relative one found between sums and whole architectures; `most` limits
    the items of one answer. Every answer starts from the architectures of those before it.

    Raises:
        UsageError: parts that do not add up to the whole.
    """

    def __init__(
        self, problem: Problem, metrics: tuple[str, ...], notebook: Notebook | None = None, most: int | None = None
    ) -> None:
        self.problem, self.most, self.notebook = problem, most, notebook or Notebook()
        size, generator = problem.space.size, np.random.default_rng(SEED)
        strides = STRIDES if size > WORTH_STRIDES else STRIDES[-1:]
        self.sums = [Sums.of(problem, Grid(problem.space, stride), metrics) for stride in strides]
        self.difference = largest_difference(self.sums[-1], metrics, generator)
        self.random = problem.space.sample(min(FIRST, size // 50), generator)
        self.good: IntArray = self.random[:0]
        self.effort = Effort()

    def frontier(
        self,
        objectives: tuple[Objective, ...],
        budgets: tuple[Budget, ...],
        besides: tuple[str, ...] = (),
        report: Callable[[int], None] = lambda covered: None,
    ) -> Evaluations | None:
        """The feasible frontier with all ties, in file order; None when nothing is feasible.

        Its rows have the metrics of objectives and budgets, and those `besides`.

        Raises:
            Exceeded: `most` items did not suffice.
        """
        problem = replace(self.problem, objectives=objectives, budgets=budgets)
        needed = tuple(dict.fromkeys([*(o.name for o in objectives), *(b.metric for b in budgets)]))
        metrics = tuple(dict.fromkeys([*needed, *besides]))
        section = section_of("parts", problem)
        known, page = Incumbents(), self.notebook.read(section)
        known.add(problem.evaluate(np.concatenate([self.good, self.random]), metrics))
        known.add(
            problem.evaluate(self.problem.space.genotypes(np.array(page.get("keys", []), dtype=np.int64)), metrics)
        )
        for number, sums in enumerate(self.sums):
            search = BranchAndBound(problem, sums.restricted(needed), known, metrics, self.most)
            self._settle(search, number, page, section, report)
        found = known.settle()
        if found is not None:
            self.good = np.concatenate([found.genotypes, self.good])[:FIRST]
        return found

    def _settle(
        self, search: BranchAndBound, number: int, page: dict[str, Any], section: str, report: Callable[[int], None]
    ) -> None:
        """One grid, block by block; blocks that a note says are settled are passed over."""
        last = number == len(self.sums) - 1
        done = page.get("done", 0) if page.get("grid") == number else 0
        if page.get("grid", -1) > number:
            return
        if done:
            search.effort = Effort(**page["effort"])
        report(search.effort.covered if last else 0)
        blocks = search.blocks(BLOCK if last else AT_ONCE)
        for block_number, block in enumerate(blocks[done:], done + 1):
            search.settle(block, report if last else lambda covered: None)
            if self.notebook.due:
                note = {"grid": number, "done": block_number, "effort": asdict(search.effort)}
                self.notebook.write(section, {**note, "keys": _keys(search.known)})
        search.known.settle()
        self.effort.bounded += search.effort.bounded
        self.effort.evaluated += search.effort.evaluated
        self.effort.covered += search.effort.covered if last else 0


def _keys(known: Incumbents) -> list[int]:
    front = known.settle()
    return [] if front is None else front.keys.tolist()
