"""Designs under several laws: each law's best within the same budgets, regrets, and the smallest worst regret.

Only regrets are compared: a law's loss of a design minus its loss of the best design it prices within the budgets.
"""

from dataclasses import dataclass, replace

import numpy as np

from nas.errors import UsageError
from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import trained_on
from objectives.composition import composition_of_all
from objectives.loss_law.coverage import ULPS
from objectives.loss_law.law import Law
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

WORST = "worst_perplexity_ratio"
LARGEST_RATIO = 1e300


@dataclass(frozen=True, eq=False)
class WorstRatio:
    """exp of the worst regret over laws: a design's perplexity over the least possible, (n,).

    Infinite where one of the laws says nothing of a design. `least` are the laws' least losses, nats. Where tokens are
    an axis, `over_tokens`, those that a scenario's law predicts for are those of all.
    """

    laws: tuple[Law, ...]
    least: tuple[float, ...]
    over_tokens: bool = False

    def __call__(self, architectures: Architectures) -> FloatArray:
        return np.minimum(self._ratio([law.loss(architectures) for law in self.laws]), LARGEST_RATIO)

    def composition(self, scenario: Scenario) -> Composition:
        """It rises with each of the losses."""
        laws = [law.at(scenario.precision.name) for law in self.laws]
        tokens = scenario.law.tokens if self.over_tokens else None
        return composition_of_all(laws if tokens is None else [trained_on(law, tokens) for law in laws], self._ratio)

    def _ratio(self, losses: list[FloatArray]) -> FloatArray:
        regrets = [loss - least for loss, least in zip(losses, self.least, strict=True)]
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(np.exp(np.maximum.reduce(np.broadcast_arrays(*regrets))), LARGEST_RATIO))


@dataclass(frozen=True, eq=False)
class Verdict:
    """Each law's best designs within a rule's budgets.

    best: each law's own pick, None where it prices nothing there; least: that pick's loss under it, nats, NaN for
    none; robust: the design of the least worst regret among those that every law with a pick prices, None where no
    design is priced by all of them.
    """

    rule: PickRule
    laws: tuple[Law, ...]
    best: tuple[Evaluations | None, ...]
    least: FloatArray
    robust: Evaluations | None

    def regrets(self, architectures: Architectures) -> FloatArray:
        """Return the regret of designs under each law, nats, (n, laws); NaN if a law does not cover a design."""
        return regrets(self.laws, self.least, architectures)


def regrets(laws: tuple[Law, ...], least: FloatArray, architectures: Architectures) -> FloatArray:
    """Return L_law(x) − least, (n, laws); NaN if a law does not cover a design or has no least."""
    losses = np.stack([law.loss(architectures) for law in laws], axis=1)
    found: FloatArray = np.where(np.isfinite(losses), losses, np.nan) - least
    return found


def verdicts(problem: Problem, laws: tuple[Law, ...], rules: tuple[PickRule, ...]) -> tuple[Verdict, ...]:
    """Return each law's exact pick by each rule, and the design of the smallest worst regret.

    Raises:
        UsageError: a user's own metric has a budget, or the space is too large for a law that is no function of sums.
    """
    plain = _alone(problem, (), tuple(b for rule in rules for b in (rule.budget, *rule.within) if b))
    picks = [solve(_under(plain, law), rules).picks for law in laws]
    return tuple(_verdict(plain, laws, rule, tuple(of_law[i] for of_law in picks)) for i, rule in enumerate(rules))


def _alone(problem: Problem, objectives: tuple[str, ...], further: tuple[Budget, ...] = ()) -> Problem:
    """The problem with shipped objectives alone.

    Raises:
        UsageError: a user's own metric has a budget.
    """
    own = {metric.name for metric in problem.functions}
    if mine := sorted(own & {budget.metric for budget in (*problem.budgets, *further)}):
        raise UsageError(
            f"laws: expected budgets on shipped metrics, got one on {', '.join(mine)}; drop the budget or the laws"
        )
    return replace(problem, functions=(), queries=(), columns=(), objectives=tuple(map(built_in, objectives)))


def _under(problem: Problem, law: Law) -> Problem:
    return replace(problem, scenario=replace(problem.scenario, law=law))


def _verdict(problem: Problem, laws: tuple[Law, ...], rule: PickRule, best: tuple[Evaluations | None, ...]) -> Verdict:
    losses = [np.nan if pick is None else float(pick.metrics["loss"][0]) for pick in best]
    able = [(law, loss) for law, loss in zip(laws, losses, strict=True) if np.isfinite(loss)]
    over_tokens = "tokens" in problem.space.settings
    ratio = WorstRatio(tuple(law for law, _ in able), tuple(least for _, least in able), over_tokens)
    robust = _least_worst(problem, rule, ratio) if able else None
    return Verdict(rule, laws, best, np.array(losses), robust)


def _least_worst(problem: Problem, rule: PickRule, ratio: WorstRatio) -> Evaluations | None:
    """The design of least worst regret by a rule; ties as for every pick."""
    worst = Objective(WORST, function=ratio)
    priced = Budget(WORST, LARGEST_RATIO / 2.0)
    question = replace(rule, least=WORST, within=(*rule.within, priced))
    first = _under(replace(problem, functions=(worst,)), ratio.laws[0])
    return solve(first, (question,)).picks[0]


@dataclass(frozen=True, eq=False)
class Staircase:
    """The exact frontier of a law in loss and cost, costs ascending, columns (n,)."""

    law: Law
    costs: FloatArray
    losses: FloatArray
    n_experts: IntArray

    def at(self, costs: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the least loss, and its experts, at or below these costs; NaN and 0 below the first."""
        place = np.searchsorted(self.costs, costs * (1.0 + ULPS), side="right") - 1
        known = place >= 0
        if not known.any():
            return np.full(len(costs), np.nan), np.zeros(len(costs), dtype=np.int64)
        return np.where(known, self.losses[place], np.nan), np.where(known, self.n_experts[place], 0)


@dataclass(frozen=True, eq=False)
class Along:
    """Several laws along a cost: each law's best design at or below each cost, within a problem's budgets."""

    metric: str
    stairs: tuple[Staircase, ...]

    def regrets(self, architectures: Architectures, costs: FloatArray) -> FloatArray:
        """Return the regret of designs (n,) among designs of at most their cost, nats, (n, laws); NaN if a law does not cover it."""
        columns = [regrets((stair.law,), stair.at(costs)[0][:, None], architectures)[:, 0] for stair in self.stairs]
        return np.stack(columns, axis=1)

    def n_experts(self, costs: FloatArray) -> IntArray:
        """Return the experts of each law's best design at or below these costs, (n, laws); 0 if it covers none."""
        return np.stack([stair.at(costs)[1] for stair in self.stairs], axis=1)


def along(problem: Problem, laws: tuple[Law, ...], metric: str) -> Along:
    """Return each law's exact frontier of its loss and a shipped cost."""
    plain = _alone(problem, ("loss", metric))
    return Along(metric, tuple(_staircase(_under(plain, law), metric) for law in laws))


def _staircase(problem: Problem, metric: str) -> Staircase:
    front = solve(problem).frontier
    order = np.lexsort((front.metrics["loss"], front.metrics[metric]))
    costs, losses = front.metrics[metric][order], np.minimum.accumulate(front.metrics["loss"][order])
    return Staircase(problem.scenario.law, costs, losses, problem.architectures(front.genotypes).n_experts[order])
