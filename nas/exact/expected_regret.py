"""The design of least expected regret: what a law's draws cost who chooses by all of them at once.

Under draw i of a law the regret of a design is R_i(x) = L_i(x) − min over y L_i(y) among the designs that a rule
allows; expected regret is the mean of R_i over the draws. The second part is the same for every design, so that the
least mean drawn loss has the least expected regret.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nas.errors import UsageError
from nas.exact.enumeration import blocks
from nas.exact.solution import metrics_of
from nas.problem.evaluations import Evaluations
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray, IntArray

MEAN = "mean_drawn_loss"
COVERED = 200_000  # designs whose losses under every draw take seconds


@dataclass(frozen=True, eq=False)
class ExpectedRegret:
    """The design of least expected regret, (g,), its expected regret and that of the law's own pick, nats.

    proven: whether every design that the rule allows was covered; else both regrets are among the designs that were given.
    """

    genotype: IntArray
    expected_regret: float
    of_own_pick: float
    proven: bool


@dataclass(frozen=True, eq=False)
class Best:
    """Among some designs: the pick by the mean over draws and the law's own, a row each, and each draw's least loss, (draws,)."""

    of_mean: Evaluations
    own: Evaluations
    least: FloatArray

    def with_(self, other: Self | None, rule: PickRule) -> Self:
        """The same among these designs and others."""
        if other is None:
            return self
        of_mean = replace(rule, least=MEAN).better(self.of_mean, other.of_mean)
        own = rule.better(self.own, other.own)
        assert of_mean is not None
        assert own is not None
        return replace(self, of_mean=of_mean, own=own, least=np.minimum(self.least, other.least))


def least_expected_regret(
    problem: Problem, law: Law, rule: PickRule, candidates: IntArray | None = None
) -> ExpectedRegret | None:
    """The design of least expected regret within a rule's budgets, as `least_expected_regrets` has it of several rules."""
    return least_expected_regrets(problem, law, (rule,), candidates)[0]


def least_expected_regrets(
    problem: Problem, law: Law, rules: tuple[PickRule, ...], candidates: IntArray | None = None
) -> tuple[ExpectedRegret | None, ...]:
    """Of each rule the design of least expected regret over a law's draws, within a problem's budgets and the rule's; None of none.

    Ties, at 12 digits of the mean drawn loss, are broken as for every pick. Every design's losses are drawn once for all rules.

    Args:
        candidates: genotypes (n, g), as of a frontier and picks, among which it is where the space is too large to cover
            (`proven` is then false); without them such a space has no answer, None.

    Raises:
        UsageError: the law has no draws.
    """
    if not law.draws:
        raise UsageError(f"law: expected one with draws, got {law.name} without; fit one with 'plas fit'")
    under = replace(problem, scenario=replace(problem.scenario, law=law), objectives=(), queries=())
    metrics = metrics_of(under, rules)
    covered = under.space.size <= COVERED
    if not covered and candidates is None:
        return (None,) * len(rules)
    some = np.zeros((0, 0), dtype=np.int64) if candidates is None else np.unique(candidates, axis=0)
    found: list[Best | None] = [None] * len(rules)
    for block in blocks(under, metrics) if covered else [under.evaluate(some, metrics)]:
        losses = law.drawn_losses(under.architectures(block.genotypes))
        best = [_best(rule, block, losses) for rule in rules]
        found = [
            old if new is None else new.with_(old, rule) for rule, old, new in zip(rules, found, best, strict=True)
        ]
    return tuple(None if best is None else _expected(under, best, proven=covered) for best in found)


def _expected(problem: Problem, best: Best, *, proven: bool) -> ExpectedRegret:
    """Both regrets of the best designs."""
    both = np.concatenate([best.of_mean.genotypes, best.own.genotypes])
    losses = problem.scenario.law.drawn_losses(problem.architectures(both))
    regrets = np.mean(losses - best.least[:, None], axis=0)
    return ExpectedRegret(best.of_mean.genotypes[0], float(regrets[0]), float(regrets[1]), proven)


def _best(rule: PickRule, evaluated: Evaluations, losses: FloatArray) -> Best | None:
    """The best of some evaluated designs, given their losses under each draw; None where a rule allows none of them."""
    rows = np.flatnonzero(rule.allowed(evaluated))
    if len(rows) == 0:
        return None
    losses, allowed = losses[:, rows], evaluated[rows]
    rated = replace(allowed, metrics={**allowed.metrics, MEAN: losses.mean(axis=0)})
    of_mean, own = replace(rule, least=MEAN).row(rated), rule.row(rated)
    assert of_mean is not None
    assert own is not None
    return Best(rated[of_mean : of_mean + 1], rated[own : own + 1], losses.min(axis=1))
