"""Solves a run of `exact` under other budgets: its log holds the frontier alone, the answers cover the space."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nas.answer.past_run import RecordedRun
from nas.answer.reassembled_study import study_of
from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations, distinct
from nas.problem.objective import Budget, Objective, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.quantiles import ships


def solvable(run: RecordedRun) -> Problem | None:
    """The run's problem, where the run is exact, covers more than it holds and uses shipped metrics alone."""
    content: Mapping[str, Any] = run.run.resolved
    named = {*content["objectives"], *content["budgets"]}
    if content["algo"] != "exact" or run.whole_space or not all(ships(name, run.workload.figures) for name in named):
        return None
    return study_of(run, {}, []).problem


def solved_within(run: RecordedRun, problem: Problem, budgets: tuple[Budget, ...], pick: Budget | None) -> RecordedRun:
    """The run as if it had these budgets; `pick` is one more, for a single answer."""
    problem = replace(problem, budgets=budgets)
    solution = solve(problem, (PickRule(None), *([PickRule(pick)] if pick else [])))
    return _holding(run, [solution.frontier, *(p for p in solution.picks if p is not None)])


def solved_along(run: RecordedRun, problem: Problem, budgets: tuple[Budget, ...], metric: str) -> RecordedRun:
    """The run holding every pick that some limit on a metric can have, with the metrics that the run minimised."""
    objectives: tuple[Objective, ...] = tuple(built_in(name) for name in dict.fromkeys(["loss", metric]))
    columns = (*problem.columns, *(objective.name for objective in problem.objectives))
    solution = solve(replace(problem, objectives=objectives, budgets=budgets, columns=columns))
    return _holding(run, [replace(solution.frontier, objectives=run.evaluations.objectives)])


def _holding(run: RecordedRun, parts: list[Evaluations]) -> RecordedRun:
    return replace(run, evaluations=distinct(parts), solved=True)
