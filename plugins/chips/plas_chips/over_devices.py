"""Exact answers of a problem over many devices that differ in figures alone, as chips do: solved together in place of one by one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective
from nas.problem.picks import PickRule, best_row
from nas.problem.problem import Problem
from objectives.scenario import Scenario
from plas_chips.cells import rates_of
from plas_chips.problem import ChipProblem, uncovered
from plas_chips.solution import ChipFrontier, solve_chips
from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class OverDevices:
    """A problem whose only setting is the device, seen as chips; answers are in genotypes of the whole, with `names` of metrics.

    Of devices of equal rates and equal figures the one of least memory stands for all.
    """

    problem: Problem
    names: tuple[str, ...]
    plain: Problem
    scenarios: tuple[Scenario, ...]
    figures: dict[str, FloatArray]
    said: list[str] = field(default_factory=list)

    def frontier(
        self,
        objectives: tuple[Objective, ...],
        budgets: tuple[Budget, ...],
        report: Callable[[int], None] = lambda covered: None,
    ) -> Evaluations | None:
        """The feasible frontier in file order; None when nothing is feasible."""
        found = self._solved(tuple(objective.name for objective in objectives), budgets, report)
        return self._whole(found) if len(found) else None

    def lowest(
        self, budgets: tuple[Budget, ...], asked: Budget | None = None, least: str = "loss"
    ) -> Evaluations | None:
        """The pick within budgets and one more, one row: the least of the loss or of another metric, ties broken as everywhere."""
        limits = (*budgets, *([] if asked is None else [asked]))
        found = self._solved(PickRule(asked, least=least).deciding, limits, lambda covered: None)
        if not len(found):
            return None
        whole = self._whole(found)
        row = best_row(replace(whole, budgets=limits), asked, of=least)
        return None if row is None else whole[row : row + 1]

    def _solved(
        self, names: tuple[str, ...], budgets: tuple[Budget, ...], report: Callable[[int], None]
    ) -> ChipFrontier:
        scale = len(self.scenarios) / len(set(map(rates_of, self.scenarios)))
        found = solve_chips(
            self.plain, self.scenarios, self.figures, names, budgets, lambda settled: report(round(settled * scale))
        )
        self.said.append(found.explanation)
        return found

    def _whole(self, found: ChipFrontier) -> Evaluations:
        keys = found.keys * len(self.scenarios) + found.chips
        return self.problem.evaluate(self.problem.space.genotypes(keys), self.names)


def together(problem: Problem, names: tuple[str, ...]) -> OverDevices | None:
    """The problem as one over chips, answers with these metrics; None where devices differ in more than figures."""
    scenarios = tuple(problem.scenario.by_device.values())
    plain = replace(problem, space=problem.space.on_one_device, scenario=scenarios[0])
    figures = {
        name: np.array([each.device.columns[name].value for each in scenarios]) for name in problem.scenario.figures
    }
    objectives = tuple(objective.name for objective in problem.objectives) or ("loss",)
    limits = tuple(Budget(name, 1.0) for name in names if name not in figures)
    if uncovered(ChipProblem(plain, scenarios, figures, objectives, limits)):
        return None
    return OverDevices(problem, names, plain, scenarios, figures)
