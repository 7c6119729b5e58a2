"""The design of least expected regret over a law's posterior samples.

Under draw i of a law the regret of a design is R_i(x) = L_i(x) − min over y L_i(y) among the designs that a rule
allows; expected regret is the mean of R_i over the draws. The second part is the same for every design, so that the
least mean drawn loss has the least expected regret.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.drawn_search import MEAN, LeastDrawn, MeanDrawnLoss, search_draws
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import blocks, metrics_of, way_of
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import in_all_settings
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray, IntArray

COVERED = 200_000  # designs whose losses under every draw take seconds


@dataclass(frozen=True, eq=False)
class ExpectedRegret:
    """The design of least expected regret, (g,), and its expected regret, nats.

    lowest: the least loss under each draw, nats, (draws,). proven: whether every design that the rule allows was covered, by evaluation or by bounds; else it is the least
    among the designs that were given.
    """

    genotype: IntArray
    expected_regret: float
    lowest: FloatArray
    proven: bool


def least_expected_regret(
    problem: Problem, law: Law, rule: PickRule, candidates: IntArray | None = None
) -> ExpectedRegret | None:
    """Return the design of least expected regret within a rule's budgets."""
    return least_expected_regrets(problem, law, (rule,), candidates)[0]


def least_expected_regrets(
    problem: Problem, law: Law, rules: tuple[PickRule, ...], candidates: IntArray | None = None
) -> tuple[ExpectedRegret | None, ...]:
    """Return for each rule the design of least expected regret within its budgets and the problem's; None if there is none.

    Up to `COVERED` designs are evaluated, more are solved by sums of parts. Ties, at 12 digits of the mean drawn loss,
    are broken as for every pick.

    Args:
        candidates: genotypes (n, g), as of a frontier and picks, among which it is where the space is too large to
            evaluate: that takes no search, and nothing is proven.

    Raises:
        UsageError: the law has no draws, or the space is too large to evaluate and no sum of parts.
    """
    if not law.draws:
        raise UsageError(f"law: expected one with draws, got {law.name} without; fit one with 'plas fit'")
    under = replace(problem, scenario=replace(problem.scenario, law=law), objectives=(), queries=())
    metrics = metrics_of(under, rules)
    if under.space.size <= COVERED:
        return _among(under, rules, blocks(under, metrics), proven=True)
    if candidates is None:
        return tuple(_by_parts(under, rule) for rule in rules)
    return _among(under, rules, [under.evaluate(np.unique(candidates, axis=0), metrics)], proven=False)


def _among(
    problem: Problem, rules: tuple[PickRule, ...], evaluated: Iterable[Evaluations], *, proven: bool
) -> tuple[ExpectedRegret | None, ...]:
    """The answers among evaluated designs, whose losses are drawn once for all rules."""
    found = tuple(LeastDrawn(rule) for rule in rules)
    for block in evaluated:
        losses = _drawn(problem, block.genotypes)
        for drawn in found:
            drawn.add(block, losses)
    return tuple(_answer(drawn, proven=proven) for drawn in found)


def _answer(drawn: LeastDrawn, *, proven: bool) -> ExpectedRegret | None:
    if drawn.best is None:
        return None
    return ExpectedRegret(drawn.best.genotypes[0], drawn.expected_regret, drawn.least, proven)


def _by_parts(problem: Problem, rule: PickRule) -> ExpectedRegret | None:
    """The answer of a space of any size; among dense architectures alone that of the space of these."""
    if rule.dense:
        return _of_dense(problem, rule)
    _, obstacle = way_of(problem, (rule,))
    if obstacle:
        raise UsageError(
            f"expected regret: expected at most {COVERED:,} architectures where {obstacle}, got {problem.space.size:,}; "
            "take a smaller space"
        )
    metrics, limits = metrics_of(problem, (rule,)), (*problem.budgets, *rule.limits)
    rated = replace(problem, functions=(Objective(MEAN, function=MeanDrawnLoss(problem.scenario.law)),))
    by_setting, drawn = SettingBySetting(rated, (MEAN, *metrics)), LeastDrawn(rule)
    for number in range(len(by_setting.problems)):
        sums, take = by_setting.at(number), partial(_take, problem, drawn, number)
        take(sums.problem.evaluate(sums.random, metrics), _drawn(sums.problem, sums.random))
    for number in range(len(by_setting.problems)):
        search_draws(by_setting.at(number), limits, metrics, drawn, partial(_take, problem, drawn, number))
    return _answer(drawn, proven=True)


def _drawn(problem: Problem, genotypes: IntArray) -> FloatArray:
    return problem.scenario.law.drawn_losses(problem.architectures(genotypes))


def _take(problem: Problem, drawn: LeastDrawn, number: int, found: Evaluations, losses: FloatArray) -> bool:
    """Take in designs of one setting as designs of the whole problem."""
    return drawn.add(in_all_settings(replace(found, budgets=problem.budgets), number, problem), losses)


def _of_dense(problem: Problem, rule: PickRule) -> ExpectedRegret | None:
    smaller = problem.space.dense
    if smaller is None:
        return None
    found = least_expected_regret(replace(problem, space=smaller), problem.scenario.law, replace(rule, dense=False))
    if found is None:
        return None
    whole = problem.space.find(smaller.architectures(found.genotype[None]))
    return replace(found, genotype=problem.space.genotypes(whole)[0])
