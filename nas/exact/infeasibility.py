"""Why nothing fits, over the whole space where that takes seconds, else over what was evaluated."""

import math
from dataclasses import replace

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import BranchAndBound, Exceeded
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.decomposition.incumbents import Incumbents
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import QUICK, SECONDS, metrics_of, way_of
from nas.problem.diagnosis import MISSES, Diagnosis, Relaxation, beyond, closest, diagnose
from nas.problem.evaluations import Evaluations, distinct
from nas.problem.head_steps import VOCABULARIES
from nas.problem.objective import Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import in_all_settings
from search_spaces.arrays import BoolArray, FloatArray, IntArray

NOTHING = np.zeros(0, dtype=np.int64)


def diagnosed(problem: Problem, found: Evaluations) -> Diagnosis:
    """Explain infeasibility; a user's own metrics are never called for it."""
    if problem.functions:
        return diagnose(found)
    if problem.space.size <= QUICK:
        every = problem.space.genotypes(np.arange(problem.space.size))
        return replace(diagnose(problem.evaluate(every)), heads=_smaller_head(problem, every))
    try:
        way, _ = way_of(problem)
        return diagnose(found) if way == "enumeration" else _by_parts(problem)
    except (UsageError, Exceeded):
        return diagnose(found)


def _smaller_head(problem: Problem, every: IntArray) -> tuple[int, int, int] | None:
    """The vocabulary, the largest smaller one of a few at which something fits, and how many do; None where none opens any."""
    smaller = [vocabulary for vocabulary in VOCABULARIES if vocabulary < problem.vocabulary]
    if not smaller or not (lowest := _fitting(problem, every, smaller[-1])):
        return None
    found = ((vocabulary, _fitting(problem, every, vocabulary)) for vocabulary in smaller[:-1])
    return (problem.vocabulary, *next(((v, n) for v, n in found if n), (smaller[-1], lowest)))


def _fitting(problem: Problem, every: IntArray, vocabulary: int) -> int:
    return int(problem.with_vocabulary(vocabulary).evaluate(every).feasible.sum())


def _by_parts(problem: Problem) -> Diagnosis:
    """Each budget's least value under the others, and the closest misses, by exact re-solves.

    Raises:
        BrokenSum: sums of parts prove nothing here.
        Exceeded: they would take more than seconds.
    """
    sums = SettingBySetting(problem, metrics_of(problem, (PickRule(None),)), most=SECONDS)
    if sums.lowest(()) is None:
        return Diagnosis(0, problem.space.size, (), problem.evaluate(problem.space.genotypes(NOTHING)), float("inf"))
    relaxations = []
    for budget in problem.budgets:
        others = tuple(other for other in problem.budgets if other is not budget)
        best = sums.frontier((built_in(budget.metric),), others)
        limit = None if best is None else float(best.metrics[budget.metric].min())
        relaxations.append(Relaxation(budget, limit, 0 if best is None else len(best), None))
    misses = (in_all_settings(_closest(sums.at(number)), number, problem) for number in range(len(sums.problems)))
    nearest = closest(distinct(misses))
    together = float(nearest.violations.max(axis=1).min())
    least = beyond(problem.budgets, lambda metric: _least(sums, metric))
    return Diagnosis(problem.space.size, 0, tuple(relaxations), nearest, together, least=least)


def _least(sums: SettingBySetting, metric: str) -> float:
    """The least value of a metric in the whole space."""
    found = sums.frontier((built_in(metric),), ())
    return math.inf if found is None else float(found.metrics[metric].min())


class _Nearest(Incumbents):
    """The few architectures whose largest violation is smallest; all others are behind them."""

    def __init__(self, budgets: tuple[Budget, ...]) -> None:
        super().__init__()
        self.budgets, self.last = budgets, np.inf

    def add(self, evaluations: Evaluations) -> None:
        """Take in evaluated architectures."""
        known = [] if self.front is None else [self.front]
        usable = replace(evaluations[evaluations.ok], budgets=self.budgets)
        self.front = closest(distinct([*known, closest(usable)]))
        if len(self.front) == MISSES:
            self.last = float(self.front.violations.max())

    def behind(self, values: list[FloatArray]) -> BoolArray:
        """Which points (budget by budget, each (n,)) miss by no less than the last of the few."""
        missed = [budget.violation(column) for budget, column in zip(self.budgets, values, strict=True)]
        behind: BoolArray = np.max(missed, axis=0) >= self.last
        return behind


def _closest(sums: SumsOfParts) -> Evaluations:
    """The architectures of a setting whose largest violation is smallest; coarse grids give the first ones."""
    problem = sums.problem
    metrics = tuple(dict.fromkeys(budget.metric for budget in (*problem.budgets, *sums.usable)))
    costs = replace(
        problem, objectives=tuple(built_in(budget.metric) for budget in problem.budgets), budgets=sums.usable
    )
    nearest = _Nearest(problem.budgets)
    nearest.add(costs.evaluate(np.concatenate([sums.good, sums.random]), metrics))
    for grid in sums.sums:
        search = BranchAndBound(costs, grid.restricted(metrics), nearest, metrics, SECONDS)
        for block in search.blocks():
            search.settle(block)
    assert nearest.front is not None
    return problem.evaluate(nearest.front.genotypes)
