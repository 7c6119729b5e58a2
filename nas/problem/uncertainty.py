"""A law's uncertainty at the frontier: optimality per draw, regret of picks.

A draw is a law refitted to resampled data. Draws hold the coefficients' uncertainty and, as far as the law
file has draws of rival forms, that of the form.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.problem.dominance import non_dominated
from nas.problem.evaluations import Evaluations
from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

FROM_LOSS: dict[str, Callable[[FloatArray], FloatArray]] = {"loss": lambda losses: losses, "perplexity": np.exp}
ROW_DRAWS = 4_000_000  # losses that are computed again, at most
FEWEST = 20
MANY = 100  # rows
EQUAL = 1e-12  # relative; losses so close are ties
ONE_LAW = 1e-9  # nats; draws that differ by less are the same
ENDS = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Losses of feasible evaluated rows under each draw: losses (draws, rows), rows of the evaluations.

    outside: which of the rows lie outside what the law was fitted on, (rows,): there all draws extrapolate by one form, and
    that they agree is no evidence. single: the law's forms see one quantity of an architecture each.
    """

    evaluations: Evaluations
    rows: IntArray
    losses: FloatArray
    outside: BoolArray
    single: bool = False

    @cached_property
    def alike(self) -> bool:
        """Whether every draw orders all rows alike by the form's doing, so that no two of them can disagree on an answer.

        Of a form that sees several quantities only where the rows are so many that near ties would show a disagreement, and
        not where the draws are one law, as of trainings without noise: there the data decide.
        """
        if not self.single and (len(self.rows) < MANY or np.ptp(self.losses, axis=0).max() < ONE_LAW):
            return False
        rising = np.diff(self.losses[:, np.argsort(self.losses[0], kind="stable")], axis=1)
        return bool((rising >= -EQUAL * np.abs(self.losses).max(initial=0.0)).all())

    def frontiers(self) -> Iterator[IntArray]:
        """Each draw's frontier as rows of the evaluations."""
        values = self.evaluations.values[self.rows]
        drawn = [i for i, name in enumerate(self.evaluations.objectives) if name in FROM_LOSS]
        for losses in self.losses:
            for i in drawn:
                values[:, i] = FROM_LOSS[self.evaluations.objectives[i]](losses)
            yield self.rows[non_dominated(values)]

    def probability(self) -> FloatArray:
        """Share of the draws in which each evaluated architecture is Pareto-optimal among them, (n,).

        Infeasible ones have 0, those outside the law's fitted range NaN, and all of them where the draws cannot disagree.
        """
        if self.alike:
            return np.full(len(self.evaluations), np.nan)
        found = np.zeros(len(self.evaluations))
        for rows in self.frontiers():
            found[rows] += 1.0
        found[self.rows[self.outside]] = np.nan
        return found / max(len(self.losses), 1)

    def regret(self, key: int, within: BoolArray) -> tuple[float, float] | None:
        """How much lower the loss of the best evaluated one is, nats, 5 % and 95 % of the draws.

        key names the pick; `within` (n,) says which evaluated rows meet its budget. None of a pick outside the fitted range,
        and where the draws cannot disagree.
        """
        if self.alike:
            return None
        pick = np.flatnonzero(self.evaluations.keys[self.rows] == key)
        allowed = within[self.rows]
        if len(pick) == 0 or not allowed.any() or self.outside[pick[0]]:
            return None
        lost = self.losses[:, pick[0]] - self.losses[:, allowed].min(axis=1)
        low, high = np.quantile(np.maximum(lost, 0.0), ENDS)
        return float(low), float(high)


def uncertainty(law: Law, architectures: Callable[[IntArray], Architectures], found: Evaluations) -> Uncertainty | None:
    """The feasible rows under a law's draws; None without draws or where no objective follows from the loss.

    `architectures` gives those of rows. Of many rows fewer draws are taken, twenty at least.
    """
    if not law.draws or not set(found.objectives) & set(FROM_LOSS):
        return None
    rows = np.flatnonzero(found.feasible)
    count = max(FEWEST, ROW_DRAWS // max(len(rows), 1))
    designs = architectures(rows)
    forms = (law.law_form, *(named_form(rival.form) for rival in law.rivals))
    single = all(len(set(form.features) - {"tokens"}) == 1 for form in forms)
    return Uncertainty(found, rows, law.drawn_losses(designs, count), law.extrapolates(designs), single)


def cost_among(objectives: Sequence[str]) -> str:
    """The first objective that is no loss, by which designs of one loss differ; total_ms without one."""
    return next((name for name in objectives if name.partition("@")[0] not in FROM_LOSS), "total_ms")
