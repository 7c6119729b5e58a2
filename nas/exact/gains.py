"""Gains of relaxing a budget, or of one step beyond an axis; slack that tightening a budget would not cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nas.errors import UsageError
from nas.exact import solution
from nas.exact.axis_steps import beyond
from nas.exact.enumeration import Enumerated
from nas.exact.setting_by_setting import SettingBySetting
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem

DIFFERENT = 1e-11  # relative; less is a tie at 12 digits


@dataclass(frozen=True, eq=False)
class Gain:
    """A better design that a change opens: the change, the limit or value it needs, the loss it reaches."""

    change: str
    at: float
    loss: float
    gain: float
    design: dict[str, Any]
    extrapolates: bool


@dataclass(frozen=True)
class BudgetGain:
    """One budget of a pick: free down to `tightest`; `relaxed` is the smallest relaxation that helps, if any does."""

    budget: Budget
    tightest: float
    relaxed: Gain | None


@dataclass(frozen=True, eq=False)
class Gains:
    """The pick (one row) within the budgets, what each budget and each axis holds back."""

    pick: Evaluations
    budgets: tuple[BudgetGain, ...]
    axes: tuple[Gain, ...]


def gains(problem: Problem) -> Gains | None:
    """Exact answers for the lowest loss within a problem's budgets; None where nothing is feasible.

    Raises:
        UsageError: exact answers are impossible.
        Exceeded: they would take more than seconds.
    """
    whole = covered(problem)
    pick = best_within(whole, problem.budgets)
    if pick is None:
        return None
    return Gains(pick, tuple(_budget_gain(whole, pick, b) for b in problem.limits), tuple(_axis_gains(problem, pick)))


def covered(problem: Problem, rules: tuple[PickRule, ...] = (PickRule(None),)) -> Enumerated | SettingBySetting:
    """Every architecture, evaluated where that is quicker than sums of parts; a user's own metrics are never called for it.

    rules: picks whose metrics will be asked for. An answer that would take more than a few seconds raises `Exceeded`.
    """
    metrics = solution.metrics_of(problem, rules)
    if problem.space.size <= solution.SMALL and not problem.functions:
        return Enumerated(problem, metrics)
    _, obstacle = solution.way_of(problem, rules)
    if obstacle:
        raise UsageError(obstacle)
    return SettingBySetting(problem, metrics, most=solution.SECONDS)


def best_within(whole: Enumerated | SettingBySetting, budgets: tuple[Budget, ...]) -> Evaluations | None:
    """The pick within budgets, every metric."""
    found = whole.lowest(budgets)
    return None if found is None else whole.problem.evaluate(found.genotypes)


def _loss(pick: Evaluations) -> float:
    return float(pick.metrics["loss"][0])


def _budget_gain(whole: Enumerated | SettingBySetting, pick: Evaluations, budget: Budget) -> BudgetGain:
    others = tuple(other for other in whole.problem.budgets if other is not budget)
    equal, better = (Budget("loss", _loss(pick) * (1.0 + sign * DIFFERENT)) for sign in (1, -1))
    least = _cheapest(whole, budget.metric, (*others, equal))
    tightest = float(pick.metrics[budget.metric][0]) if least is None else float(least.metrics[budget.metric][0])
    opened = _cheapest(whole, budget.metric, (*others, better))
    if opened is None:
        return BudgetGain(budget, tightest, None)
    limit = float(opened.metrics[budget.metric].max())  # of ties at 12 digits the last
    found = best_within(whole, (*others, Budget(budget.metric, limit)))
    return BudgetGain(
        budget, tightest, None if found is None else gain(whole.problem, pick, found, budget.metric, limit)
    )


def _cheapest(whole: Enumerated | SettingBySetting, metric: str, budgets: tuple[Budget, ...]) -> Evaluations | None:
    """Designs within budgets that are least in a metric; one of them where it is a device's figure, the same for all designs on it."""
    if metric in whole.problem.scenario.figures:
        return whole.lowest(budgets, least=metric)
    return whole.frontier((built_in(metric),), budgets)


def _axis_gains(problem: Problem, pick: Evaluations) -> Iterator[Gain]:
    """The best of every space that holds one further value of one axis, where it beats the pick."""
    better = Budget("loss", _loss(pick) * (1.0 - DIFFERENT))
    for axis, value, space in beyond(problem.space):
        further = replace(problem, space=space, queries=())
        found = best_within(covered(further), (*problem.budgets, better))
        if found is not None:
            yield gain(further, pick, found, axis, value)


def gain(problem: Problem, pick: Evaluations, found: Evaluations, change: str, at: float) -> Gain:
    """An evaluated design against the pick, marked where it extrapolates the law."""
    design = problem.architectures(found.genotypes)
    shape = {name: column.tolist()[0] for name, column in design.columns().items()}
    outside = bool(problem.scenario.law.extrapolates(design)[0])
    return Gain(change, at, _loss(found), _loss(pick) - _loss(found), shape, outside)
