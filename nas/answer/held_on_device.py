"""Answers of applications that hold on the device: the lowest loss within each limit under preset `device`."""

from dataclasses import replace

from nas.errors import UsageError
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.gains import covered
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import Pick, PickRule, answers
from nas.problem.problem import Problem
from nas.problem.quantiles import refuse_unclaimed
from nas.search.assembly import Study
from nas.search.scenarios import with_preset

OF_MEMORY = ("memory_gb", "resident_gb", "memory_share", "resident_share")


def held_on_device(study: Study, on_device: Problem, found: Evaluations, *, solved: bool) -> tuple[Pick, ...]:
    """Your budgets' and each application's pick under preset `device`, among what was evaluated; of the whole space that a run has `solved`.

    Limits on memory stand beside that of the preset. Empty where a budget is on a metric of a user's own or on a
    quantile that the device's profile does not claim, or where a solved space would take long.
    """
    own = {metric.name for metric in study.problem.functions}
    if own & {budget.metric for budget in study.problem.budgets}:
        return ()
    queries = tuple(question for question in study.problem.queries if not question.baseline)
    shipped = tuple(each for each in on_device.objectives if each.name not in own)
    asked = study.problem.asked_besides
    problem = replace(on_device, objectives=shipped, budgets=_budgets(study), queries=queries, columns=asked)
    try:
        refuse_unclaimed(problem)
        return _solved(problem) if solved else answers(problem, problem.evaluate(found.genotypes[found.ok]))
    except (Exceeded, UsageError):
        return ()


def _budgets(study: Study) -> tuple[Budget, ...]:
    """The study's own limits and, where one of them is on memory, the preset's."""
    budgets, default = study.problem.budgets, with_preset(study.config, "device").default_budget
    if default is None or not any(budget.metric in OF_MEMORY for budget in budgets):
        return budgets
    scenario = study.problem.scenario
    metric, limit = default.on(None if scenario.devices else scenario.device.memory_gb)
    return budgets if any(b.metric == metric for b in budgets) else (*budgets, Budget(metric, limit))


def _solved(problem: Problem) -> tuple[Pick, ...]:
    """The pick of each of the problem's questions, of the whole space."""
    rules = tuple(PickRule.for_query(question) for question in problem.queries)
    alone = replace(problem, objectives=(), queries=())
    whole = covered(alone, rules)
    found = [whole.lowest((*problem.budgets, *rule.limits)) for rule in rules]
    rows = [None if row is None else problem.evaluate(row.genotypes) for row in found]
    return tuple(Pick(question, row) for question, row in zip(problem.queries, rows, strict=True))
