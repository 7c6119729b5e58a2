"""What each device of a study gives: the lowest loss within the budgets on it, what that takes, or what is short there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.gains import covered
from nas.exact.solution import pick_of
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import Pick, PickRule, answers
from nas.problem.problem import Problem
from nas.problem.quantiles import refuse_unclaimed, with_margins
from nas.problem.settings import in_setting
from nas.search.assembly import Study
from nas.study.scenarios import with_preset
from search_spaces.arrays import IntArray
from search_spaces.columns import code

MOST = 64  # devices that are answered one by one


@dataclass(frozen=True, eq=False)
class OnDevice:
    """The pick on one device, a row of the study's space, None where nothing fits; how many of the frontier are on it.

    missed: where nothing that was evaluated there fits, the budgets of the closest miss with what it takes of them.
    """

    name: str
    pick: Evaluations | None
    on_frontier: int
    missed: Mapping[str, float]


def on_each_device(
    problem: Problem, found: Evaluations, frontier: Evaluations, *, solved: bool
) -> tuple[OnDevice, ...]:
    """The answer on each device of a study with several, in their order; of very many none.

    solved: the search kept the frontier and picks of a space that it covered, so that each device is solved by itself;
    else the answers are among what was evaluated.
    """
    names = problem.space.specification.axes.device or []
    if not 1 < len(names) <= MOST:
        return ()
    return tuple(_on(problem, name, found, frontier, solved=solved) for name in names)


def _on(problem: Problem, name: str, found: Evaluations, frontier: Evaluations, *, solved: bool) -> OnDevice:
    place, number = problem.space.place["device"], (problem.space.specification.axes.device or []).index(name)
    own = found[found.genotypes[:, place] == number]
    pick, members = PickRule(None).answer(own), int((frontier.genotypes[:, place] == number).sum())
    pick = _solved(problem, name) if solved else pick
    return OnDevice(name, pick, members, {} if pick is not None else _closest(own))


def _solved(problem: Problem, name: str) -> Evaluations | None:
    """The exact pick on a device, in genotypes of the whole."""
    there = in_setting(problem, {"device": int(code("device", name))})
    pick = pick_of(there, PickRule(None))
    if pick is None:
        return None
    designs = there.space.architectures(pick.genotypes)
    return problem.evaluate(problem.space.genotypes(problem.space.find(designs)))


def _closest(own: Evaluations) -> dict[str, float]:
    """Of the row whose largest miss is smallest the budgets that it misses, with its values."""
    rows = np.flatnonzero(own.ok)
    if len(rows) == 0 or not own.budgets:
        return {}
    violations = own.violations[rows]
    row = int(np.argmin(violations.max(axis=1)))
    missed = [budget.metric for budget, by in zip(own.budgets, violations[row].tolist(), strict=True) if by > 0]
    return {metric: float(own.metrics[metric][rows[row]]) for metric in missed}


OF_MEMORY = ("memory_gb", "resident_gb", "memory_share", "resident_share")


def held_on_device(study: Study, on_device: Problem, found: Evaluations, *, solved: bool) -> tuple[Pick, ...]:
    """Your budgets' and each application's pick under preset `device`, among what was evaluated; of the whole space that a run has `solved`.

    Limits on memory stand beside that of the preset. Empty where a budget or a pick is of a metric of a user's own, or on a
    quantile that the device's profile does not claim, or where a solved space would take long.
    """
    own = {metric.name for metric in study.problem.functions}
    queries = tuple(question for question in study.problem.queries if not question.baseline)
    if own & {*(budget.metric for budget in study.problem.budgets), *(question.least for question in queries)}:
        return ()
    shipped = tuple(each for each in on_device.objectives if each.name not in own)
    asked = study.problem.asked_besides
    problem = replace(on_device, objectives=shipped, budgets=_budgets(study), queries=queries, columns=asked)
    problem = with_margins(problem)
    try:
        refuse_unclaimed(problem)
        good = found.genotypes[found.ok]
        return _solved_on_device(problem, good) if solved else answers(problem, problem.evaluate(good))
    except (Exceeded, UsageError):
        return ()


def _budgets(study: Study) -> tuple[Budget, ...]:
    """The study's own limits and, where one of them is on memory, the preset's."""
    budgets, default = study.problem.budgets, with_preset(study.config, "device").default_budget
    if default is None or not any(budget.metric in OF_MEMORY for budget in budgets):
        return budgets
    scenario = study.problem.scenario
    metric, limit = default.on(None if scenario.devices else scenario.device)
    return budgets if any(b.metric == metric for b in budgets) else (*budgets, Budget(metric, limit))


def _solved_on_device(problem: Problem, good: IntArray) -> tuple[Pick, ...]:
    """The pick of each of the problem's questions, of the whole space; `good` designs are found elsewhere."""
    rules = tuple(PickRule.for_query(question) for question in problem.queries)
    alone = replace(problem, objectives=(), queries=())
    whole = covered(alone, rules, good)
    found = whole.picks([PickRule(None, (*problem.budgets, *rule.limits)) for rule in rules])
    rows = [None if row is None else problem.evaluate(row.genotypes) for row in found]
    return tuple(Pick(question, row) for question, row in zip(problem.queries, rows, strict=True))
