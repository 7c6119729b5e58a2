"""Reasons why nothing fits, over the whole space if that takes seconds, else over the evaluated designs."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import BranchAndBound, Exceeded, Incumbents, Wanted
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import QUICK, SECONDS, metrics_of, way_of
from nas.problem.diagnosis import MISSES, Diagnosis, Relaxation, SmallerVocabulary, beyond, closest, diagnose
from nas.problem.evaluations import Evaluations, distinct
from nas.problem.objective import EXTRAPOLATION, Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import in_all_settings
from nas.problem.steps import VOCABULARIES
from search_spaces.arrays import BoolArray, FloatArray

NOTHING = np.zeros(0, dtype=np.int64)


def diagnosed(problem: Problem, found: Evaluations) -> Diagnosis:
    """Return the reasons for infeasibility; never calls a user's own metrics."""
    if problem.functions:
        return diagnose(found)
    if problem.space.size <= QUICK:
        every = problem.space.genotypes(np.arange(problem.space.size))
        return _with_vocabulary(
            diagnose(problem.evaluate(every)), problem, lambda variant: int(variant.evaluate(every).feasible.sum())
        )
    try:
        way, _ = way_of(problem)
        if way == "enumeration":
            return diagnose(found)
        return _with_vocabulary(_by_parts(problem), problem, _fits)
    except (UsageError, Exceeded):
        return diagnose(found)


def _with_vocabulary(found: Diagnosis, problem: Problem, fitting: Callable[[Problem], int | None]) -> Diagnosis:
    """The diagnosis with a smaller vocabulary, where nothing fits without."""
    return replace(found, vocabulary=_smaller_vocabulary(problem, fitting)) if found.together > 0 else found


def _smaller_vocabulary(problem: Problem, fitting: Callable[[Problem], int | None]) -> SmallerVocabulary | None:
    """The largest smaller vocabulary of a few at which something fits, at equal text, by how many do (None: not counted, 0: none); None where none opens any."""
    sizes = [size for size in VOCABULARIES if size < problem.vocabulary]
    try:
        of_size = {size: problem.at_equal_text().with_vocabulary(size) for size in sizes}
        if not sizes or fitting(of_size[sizes[-1]]) == 0:
            return None
        size, opens = next((size, opens) for size in sizes if (opens := fitting(of_size[size])) != 0)
    except (ValueError, Exceeded):  # a curve that does not count them, or a space that takes longer
        return None
    lengths = of_size[size].scenario
    return SmallerVocabulary(problem.vocabulary, size, opens, lengths.input_tokens, lengths.output_tokens)


def _fits(problem: Problem) -> int | None:
    """0 where nothing fits, by exact sums of parts, else None: how many do is not counted.

    Raises:
        Exceeded: that would take more than seconds.
    """
    sums = SettingBySetting(problem, metrics_of(problem, (PickRule(None),)), most=SECONDS)
    return 0 if sums.lowest(problem.budgets) is None else None


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
    found = None if problem.limits == problem.budgets else sums.lowest(problem.limits, least=EXTRAPOLATION)
    outside = None if found is None else problem.evaluate(found.genotypes)
    return Diagnosis(problem.space.size, 0, tuple(relaxations), nearest, together, least=least, outside=outside)


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
    nearest = _Nearest(problem.budgets)
    nearest.add(problem.evaluate(np.concatenate([sums.good, sums.random]), metrics))
    wanted = Wanted(tuple(budget.metric for budget in problem.budgets), sums.usable, nearest)
    for grid in sums.sums:
        search = BranchAndBound(problem, grid.restricted(metrics), (wanted,), metrics, SECONDS)
        for block in search.blocks():
            search.settle(block)
    assert nearest.front is not None
    return problem.evaluate(nearest.front.genotypes)
