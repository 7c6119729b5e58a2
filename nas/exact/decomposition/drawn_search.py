"""Branch and bound under all posterior samples of a law: the least loss of each sample and the design of the least mean."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nas.exact.decomposition.additive_bounds import AGREE, BrokenSum
from nas.exact.decomposition.branch_and_bound import BranchAndBound, Effort, Incumbents, Wanted
from nas.exact.decomposition.dominance_lookup import SLACK
from nas.exact.decomposition.frontier import SumsOfParts
from nas.exact.decomposition.grid import Items
from nas.exact.decomposition.needed_heads import needed_pairs, with_needed
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from objectives.drawn_bounds import DrawnBounds, drawn_bounds, mean_composition
from objectives.loss_law.draws import trimmed_mean
from objectives.loss_law.law import Law
from objectives.parts import Composition
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray

MEAN = "mean_drawn_loss"
AT_ONCE = 2048  # items whose losses under all draws fit into the cache


@dataclass(frozen=True, eq=False)
class MeanDrawnLoss:
    """The mean of an architecture's losses over a law's posterior samples, nats, (n,); under each setting with its law."""

    law: Law

    def __call__(self, architectures: Architectures) -> FloatArray:
        losses: FloatArray = self.law.drawn_losses(architectures).mean(axis=0)
        return losses

    def composition(self, scenario: Scenario) -> Composition:
        """It rises with each of the losses."""
        return mean_composition(scenario.law)


class LeastDrawn:
    """The best evaluated designs under a rule: `least` loss under each sample, (draws,), and `best`, one row, with its losses (draws,)."""

    def __init__(self, rule: PickRule) -> None:
        self.rule = replace(rule, least=MEAN)
        self.best: Evaluations | None = None
        self.best_losses = self.least = np.full(1, np.inf)

    def add(self, evaluated: Evaluations, losses: FloatArray) -> bool:
        """Add evaluated designs with their losses under each sample, (draws, n); returns whether the rule allows all of them."""
        rows = np.flatnonzero(self.rule.allowed(evaluated))
        if len(rows) == 0:
            return len(evaluated) == 0
        allowed, losses = evaluated[rows], losses[:, rows]
        self.least = np.minimum(self.least, losses.min(axis=1))
        rated = replace(allowed, metrics={**allowed.metrics, MEAN: losses.mean(axis=0)})
        row = self.rule.row(rated)
        assert row is not None
        self.best = self.rule.better(self.best, rated[row : row + 1])
        assert self.best is not None
        if self.best.keys[0] == rated.keys[row]:
            self.best_losses = losses[:, row]
        return len(rows) == len(evaluated)

    @property
    def expected_regret(self) -> float:
        """Expected regret of the design that is best on average, nats."""
        return trimmed_mean(self.best_losses - self.least)


@dataclass(eq=False)
class DrawnSearch(BranchAndBound):
    """A search for what known designs lack: less loss under some sample, or as little on average.

    A box falls, with a backbone, when a budget is out of reach or when its bound under every draw is no less than the least that is
    known, by more than SLACK, and their mean above the least mean.
    """

    drawn: LeastDrawn = field(kw_only=True)
    bounds: DrawnBounds = field(kw_only=True)
    take: Callable[[Evaluations, FloatArray], bool] = field(kw_only=True)

    def _improving(self, items: Items, ffn: FloatArray, values: Mapping[str, FloatArray]) -> BoolArray:
        """Which items may hold less under some draw or on average."""
        least, best = self.drawn.least, self.drawn.best_losses
        if self.drawn.best is None:
            return np.ones(len(items), dtype=bool)
        least, best = least - SLACK * np.abs(least), best + SLACK * np.abs(best)
        found = np.empty(len(items), dtype=bool)
        for start in range(0, len(items), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            columns = list(self.sums.columns(MEAN, ffn, items.box[rows], items.backbone[rows]))
            found[rows] = self.bounds.may_improve(columns, least, best)
        return found

    def _evaluate(self, leaves: Items, ffn: FloatArray) -> None:
        """Evaluate those single architectures whole that their sums say are the best of them by some draw or on average.

        Where one of them may not be taken, as one by rounding beyond a limit, all are evaluated.
        """
        for start in range(0, len(leaves), AT_ONCE):
            some = leaves.kept(np.arange(start, min(start + AT_ONCE, len(leaves))))
            columns = self.sums.columns(MEAN, ffn, some.box, some.backbone)
            sums = self.bounds.losses(list(columns))
            sums = np.broadcast_to(sums, (len(sums), len(some)))
            mean = sums.mean(axis=0)
            chosen = mean <= mean.min() + SLACK * abs(mean.min())
            chosen[sums.argmin(axis=1)] = True
            if not self._evaluated(some.kept(chosen), sums[:, chosen]):
                self._evaluated(some.kept(~chosen), sums[:, ~chosen])

    def _evaluated(self, leaves: Items, sums: FloatArray) -> bool:
        """Evaluate all of some architectures and hold them against their sums; whether the rule allows every one."""
        genotypes = leaves.genotypes(self.sums.grid, self.sums.backbones)
        found = self.problem.evaluate(genotypes, self.metrics)
        losses = self.problem.scenario.law.drawn_losses(self.problem.architectures(genotypes))
        apart = float((np.abs(sums - losses) / np.abs(losses))[:, found.ok].max(initial=0.0))
        if not apart <= AGREE:
            raise BrokenSum("loss", "differs under a draw from the sum of its parts")
        self.effort.difference = max(self.effort.difference, apart)
        self.effort.evaluated += len(leaves)
        return self.take(found, losses)


def search_draws(
    sums: SumsOfParts,
    budgets: tuple[Budget, ...],
    metrics: tuple[str, ...],
    drawn: LeastDrawn,
    take: Callable[[Evaluations, FloatArray], bool],
) -> Effort:
    """Settle a whole space within budgets under every posterior sample of its law; `take` receives the evaluations.

    Raises:
        Exceeded: the items that are allowed did not suffice.
        BrokenSum: sums of parts prove nothing here.
    """
    problem = replace(sums.problem, objectives=(), budgets=(*budgets, *sums.usable))
    needed = tuple(dict.fromkeys([MEAN, *(budget.metric for budget in problem.budgets)]))
    ties = ("total_ms",) if sums.varies("total_ms") else ()
    effort, bounds = Effort(), drawn_bounds(problem.scenario.law)
    for grid in sums.sums:
        kept = needed_pairs(grid.restricted(tuple(dict.fromkeys([*needed, *ties]))), frozenset(ties))
        own, effort.covered = with_needed(grid.restricted(needed), kept)
        search = DrawnSearch(
            problem,
            own,
            (Wanted((), problem.budgets, Incumbents()),),
            metrics,
            sums.most,
            effort,
            drawn=drawn,
            bounds=bounds,
            take=take,
        )
        for block in search.blocks():
            search.settle(block)
    return effort
