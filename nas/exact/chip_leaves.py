"""Architectures evaluated whole on the chips of a class, paired with those of its chips that none holds them for less."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from nas.exact.chip_cells import ChipTable
from nas.exact.chip_points import LevelTable, Points
from nas.exact.chip_sums import ChipSums
from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.decomposition.checking import agreement
from nas.exact.decomposition.items import Items
from nas.problem.dominance import non_dominated
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from search_spaces.arrays import FloatArray, IntArray

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
        """The feasible pairs of single architectures, held against their sums, with the chips of a class."""
        genotypes = items.genotypes(sums.grid, sums.sums.backbones)
        evaluated = self.at(number).evaluate(genotypes, self.metrics)
        for name, values in zip(self.metrics, best, strict=True):
            self.effort.difference = max(self.effort.difference, agreement(name, values, evaluated))
        self.effort.evaluated += len(genotypes)
        points = self.pairs(number, evaluated)
        table.add(points)
        return points

    def pairs(self, number: int, evaluated: Evaluations) -> Points:
        """The frontier of evaluated architectures with the chips of a class that none of it holds for less."""
        rows = np.flatnonzero(evaluated.feasible)
        metrics = {name: column[rows] for name, column in evaluated.metrics.items()}
        first = self._first_that_holds(number, metrics, len(rows))
        row, chip = self._expanded(number, first)
        columns = [metrics[name][row] for name in self.objectives]
        values = np.stack(columns, axis=1) if columns else np.zeros((len(row), 0))
        points = Points(values, self.chips.costs[chip], chip, evaluated.keys[rows][row])
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
        members = self.chips.members(number)
        rows, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for start in np.unique(first).tolist():
            chosen = members[start:][cheapest(self.chips.costs[members[start:]])]
            mine = np.flatnonzero(first == start)
            rows.append(np.repeat(mine, len(chosen)))
            places.append(np.tile(chosen, len(mine)))
        return np.concatenate(rows), np.concatenate(places)


def cheapest(costs: FloatArray) -> IntArray:
    """Rows of costs (n, k) that no other undercuts, of equal ones the first."""
    if len(costs) == 0 or costs.shape[1] == 0:
        return np.arange(min(len(costs), 1))
    kept = non_dominated(costs)
    _, first = np.unique(costs[kept], axis=0, return_index=True)
    return kept[np.sort(first)]
