"""Chips one after the other, each without what is dominated by pairs of those before it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from nas.exact.chip_leaves import SHARES
from nas.exact.chip_points import Points
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.solution import metrics_of, solve, way_of
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray, IntArray


class Asked(Protocol):
    """What is asked of pairs: see `nas.exact.chips.ChipProblem`."""

    problem: Problem
    scenarios: tuple[Scenario, ...]

    @property
    def of_architectures(self) -> tuple[str, ...]:
        """Objectives of architectures."""

    @property
    def costs(self) -> dict[str, FloatArray]:
        """Columns that are objectives."""

    @property
    def limits(self) -> tuple[Budget, ...]:
        """Budgets on metrics of architectures."""

    @property
    def shares(self) -> tuple[Budget, ...]:
        """Budgets on shares of memory."""


def solve_chip_by_chip(
    asked: Asked, chips: IntArray, report: Callable[[int], None] = lambda settled: None
) -> tuple[Points, str]:
    """The frontier over some chips, and how many of them had to be solved; chips are places among those given.

    Raises:
        UsageError: more architectures than can be covered.
    """
    costs = np.stack([np.zeros(len(chips)), *(column[chips] for column in asked.costs.values())], axis=1)[:, 1:]
    order = np.lexsort((np.arange(len(chips)), *costs.T[::-1]))
    nothing = np.zeros(0, dtype=np.int64)
    front = Points(np.zeros((0, len(asked.of_architectures))), costs[:0], nothing, nothing)
    for done, place in enumerate(order.tolist(), 1):
        problem = _at(asked, int(chips[place]))
        found = _frontier(problem, front, costs[place])
        if found is not None and len(found):
            keys = found.keys
            here = Points(found.values, np.tile(costs[place], (len(keys), 1)), np.full(len(keys), place), keys)
            front = Points.joined([front, here]).frontier()
        report(done * problem.space.size)
    return front, "what is dominated on chips that cost no more was left out"


def _at(asked: Asked, number: int) -> Problem:
    """The problem of one chip: shares of its memory are limits in GB."""
    scenario = asked.scenarios[number]
    own = {objective.name: objective for objective in (*asked.problem.functions, *asked.problem.objectives)}
    objectives = tuple(own.get(name) or built_in(name) for name in asked.of_architectures)
    limits = (Budget(SHARES[b.metric], b.limit * scenario.device.memory_gb) for b in asked.shares)
    budgets = (*asked.limits, *limits)
    return replace(asked.problem, scenario=scenario, objectives=objectives, budgets=budgets, queries=(), columns=())


def _frontier(problem: Problem, front: Points, costs: FloatArray) -> Evaluations | None:
    """One chip's frontier, less what pairs that cost no more in any column dominate."""
    way, _ = way_of(problem)
    if way == "enumeration":
        return solve(problem).frontier
    cheaper = (front.costs <= costs).all(axis=1)
    names = tuple(objective.name for objective in problem.objectives)
    columns = dict(zip(names, front.values[cheaper].T, strict=True))
    keys = front.key[cheaper]
    genotypes = problem.space.genotypes(keys)
    elsewhere = Evaluations(genotypes, keys, columns, None, names, ()) if len(keys) else None
    return SumsOfParts(problem, metrics_of(problem, ())).frontier(problem.objectives, problem.budgets, elsewhere=elsewhere)
