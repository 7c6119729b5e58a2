"""Architectures evaluated whole on the chips of a class, paired with those of its chips that none holds them for less."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nas.exact.decomposition.additive_bounds import agreement
from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.decomposition.dominance_lookup import SLACK
from nas.exact.decomposition.grid import Items
from nas.problem.evaluations import Evaluations, non_dominated
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from plas_chips.cells import ChipTable
from plas_chips.points import LevelTable, Points
from plas_chips.sums import ChipSums
from search_spaces.arrays import FloatArray, IntArray

WORTH = 256  # architectures that are held against one another before they are evaluated

#: Shares of a chip's memory that a budget may limit, and of which metric.
SHARES = {"memory_share": "memory_gb", "resident_share": "resident_gb"}


@dataclass(frozen=True, eq=False)
class Leaves:
    """What is asked of pairs: objectives of the architecture, budgets on its metrics, budgets on shares of a chip's memory."""

    problem: Problem
    chips: ChipTable
    objectives: tuple[str, ...]
    budgets: tuple[Budget, ...]
    shares: tuple[Budget, ...]
    effort: Effort = field(default_factory=Effort)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of architectures that decide, those with limits first."""
        of_shares = (SHARES[budget.metric] for budget in self.shares)
        return tuple(dict.fromkeys([*(budget.metric for budget in self.budgets), *of_shares, *self.objectives]))

    @cached_property
    def limits(self) -> dict[str, float]:
        """The least limit on each metric."""
        found: dict[str, float] = {}
        for budget in self.budgets:
            found[budget.metric] = min(budget.limit, found.get(budget.metric, np.inf))
        return found

    def need(self, metrics: Mapping[str, FloatArray], n: int) -> FloatArray:
        """The memory that budgets on shares ask of a chip, GB, (n,): the most of metric / limit."""
        need = np.zeros(n)
        for budget in self.shares:
            np.maximum(need, metrics[SHARES[budget.metric]] / budget.limit, out=need)
        return need

    def at(self, number: int) -> Problem:
        """The problem on the chips of a class."""
        chip = int(self.chips.numbers[self.chips.first[number]])
        budgets = tuple(budget for budget in self.budgets)
        return replace(self.problem, scenario=self.chips.scenarios[chip], budgets=budgets)

    def found(self, number: int, items: Items, sums: ChipSums, best: list[FloatArray], table: LevelTable) -> Points:
        """The feasible pairs of single architectures, held against their sums, with the chips of a class.

        Of many, those are evaluated whole that no other of them beats by its sums, which may count for as much as a bound may.
        """
        if len(items) > WORTH:
            rows = self._unbeaten(number, dict(zip(self.metrics, best, strict=True)), table)
            items, best = items.kept(rows), [column[rows] for column in best]
        genotypes = items.genotypes(sums.grid, sums.sums.backbones)
        evaluated = self.at(number).evaluate(genotypes, self.metrics)
        for name, values in zip(self.metrics, best, strict=True):
            self.effort.difference = max(self.effort.difference, agreement(name, values, evaluated))
        self.effort.evaluated += len(genotypes)
        points = self.pairs(number, evaluated)
        table.add(points)
        return points

    def _unbeaten(self, number: int, best: Mapping[str, FloatArray], table: LevelTable) -> IntArray:
        """Rows of single architectures that none of them beats, once those that are surely feasible count."""
        surely = {name: column * (1.0 + np.copysign(SLACK, column)) for name, column in best.items()}
        n = len(surely[self.metrics[0]])
        within = np.ones(n, dtype=bool)
        for budget in self.budgets:
            within &= budget.violation(surely[budget.metric]) <= 0.0
        rows = np.flatnonzero(within)
        metrics = {name: column[rows] for name, column in surely.items()}
        row, chip = self._expanded(number, self._first_that_holds(number, metrics, len(rows)))
        table.take_in([Points(self._values(metrics, row), self.chips.costs[chip], chip, row)])
        level = np.minimum(table.levels.of_need(self.need(best, n)), len(table.least) - 1)
        return np.flatnonzero(~table.behind([best[name] for name in self.objectives], level))

    def _values(self, metrics: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
        return np.stack([metrics[name][rows] for name in self.objectives], axis=1)

    def pairs(self, number: int, evaluated: Evaluations) -> Points:
        """The frontier of evaluated architectures with the chips of a class that none of it holds for less."""
        rows = np.flatnonzero(evaluated.feasible)
        metrics = {name: column[rows] for name, column in evaluated.metrics.items()}
        first = self._first_that_holds(number, metrics, len(rows))
        row, chip = self._expanded(number, first)
        points = Points(self._values(metrics, row), self.chips.costs[chip], chip, evaluated.keys[rows][row])
        return points[non_dominated(np.concatenate([points.values, points.costs], axis=1))]

    def _first_that_holds(self, number: int, metrics: Mapping[str, FloatArray], n: int) -> IntArray:
        """How many of a class's chips, by memory, are too small for each architecture, (n,)."""
        small = np.zeros(n, dtype=np.int64)
        for memory in self.chips.memory_gb[self.chips.members(number)].tolist():
            fits = np.ones(n, dtype=bool)
            for budget in self.shares:
                fits &= budget.violation(metrics[SHARES[budget.metric]] / memory) <= 0.0
            small += ~fits
        return small

    def _expanded(self, number: int, first: IntArray) -> tuple[IntArray, IntArray]:
        """Every architecture (row) with every chip (place) of the class that holds it and that no other such chip undercuts."""
        rows, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for start in np.unique(first).tolist():
            chosen = self.chips.cheapest(number, start)
            mine = np.flatnonzero(first == start)
            rows.append(np.repeat(mine, len(chosen)))
            places.append(np.tile(chosen, len(mine)))
        return np.concatenate(rows), np.concatenate(places)
