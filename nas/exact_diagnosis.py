"""Why nothing fits, over the whole space where that takes seconds, else over what was evaluated."""

from dataclasses import replace

import numpy as np

from nas.decomposition.frontier import SumsOfParts
from nas.diagnosis import Diagnosis, Relaxation, diagnose
from nas.errors import UsageError
from nas.evaluations import Evaluations, distinct
from nas.exact_solution import QUICK, lowest_loss, metrics_of, way_of
from nas.objective import Budget, built_in
from nas.picks import PickRule
from nas.problem import Problem

BISECTIONS = 40
MISSES = 3


def diagnosed(problem: Problem, found: Evaluations) -> Diagnosis:
    """Explain infeasibility; a user's own metrics are never called for it."""
    if problem.functions:
        return diagnose(found)
    if problem.space.size <= QUICK:
        return diagnose(problem.evaluate(problem.space.genotypes(np.arange(problem.space.size))))
    try:
        way, _ = way_of(problem)
        return diagnose(found) if way == "enumeration" else _by_parts(problem)
    except UsageError:
        return diagnose(found)


def _by_parts(problem: Problem) -> Diagnosis:
    """Each budget's least value under the others, and the least common relaxation, by exact re-solves.

    Raises:
        BrokenSum: sums of parts prove nothing here.
    """
    sums = SumsOfParts(problem, metrics_of(problem, (PickRule(None),)))
    if lowest_loss(sums, ()) is None:
        return Diagnosis(0, problem.space.size, (), problem.evaluate(sums.good), float("inf"))
    relaxations, closest = [], []
    for budget in problem.budgets:
        others = tuple(other for other in problem.budgets if other is not budget)
        best = sums.frontier((built_in(budget.metric),), others)
        limit = None if best is None else float(best.metrics[budget.metric].min())
        relaxations.append(Relaxation(budget, limit, 0 if best is None else len(best), None))
        if best is not None:
            closest.append(problem.evaluate(best.genotypes[:1]))
    together, nearest = _together(sums, problem)
    rows = distinct([problem.evaluate(nearest.genotypes[:1]), *closest])
    order = np.argsort(rows.violations.max(axis=1), kind="stable")
    return Diagnosis(problem.space.size, 0, tuple(relaxations), rows[order][:MISSES], together)


def _together(sums: SumsOfParts, problem: Problem) -> tuple[float, Evaluations]:
    """The least factor by which relaxing every budget opens a design, and that design."""
    low, high = 0.0, 1.0
    while (found := _within(sums, problem.budgets, high)) is None:
        low, high = high, 2.0 * high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        better = _within(sums, problem.budgets, middle)
        if better is None:
            low = middle
        else:
            found = better
            high = min(middle, float(problem.evaluate(better.genotypes).violations.max(axis=1).min()))
        if high - low <= 1e-9 * high:
            break
    return high, found


def _within(sums: SumsOfParts, budgets: tuple[Budget, ...], factor: float) -> Evaluations | None:
    relaxed = tuple(replace(budget, limit=budget.limit * (1.0 + factor)) for budget in budgets)
    return lowest_loss(sums, relaxed)
