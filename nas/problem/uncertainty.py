"""A law's uncertainty at the frontier: optimality per draw, differences of designs.

A draw is a law refitted to resampled data. Draws hold the coefficients' uncertainty and, as far as the law
file has draws of rival forms, that of the form.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.problem.evaluations import Evaluations, non_dominated
from nas.problem.objective import Baseline
from nas.problem.problem import Problem
from objectives.loss_law.draws import difference_quantiles, probability_below
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


FIRST_COMPARED = 32  # next in loss that a design is compared with at once; then twice as many


@dataclass(frozen=True)
class Difference:
    """A design's predicted loss less another's, nats: 90 % of what it may be lies between low and high; better: that it is below 0.

    Outside of the law's evidence low, high and better are NaN.
    """

    nats: float
    low: float
    high: float
    better: float

    @property
    def known(self) -> bool:
        """Whether both designs lie within the law's evidence."""
        return not np.isnan(self.better)


def has_doubt(law: Law) -> bool:
    """Whether a law says how sure it is: by draws, or by the misfit of one design, its residual sd."""
    return bool(law.draws) or law.residual_sd is not None


def misfit(law: Law) -> float:
    """What one design is worth beside the law, sd in nats; 0 where the law does not say it."""
    return law.residual_sd or 0.0


def possible_losses(law: Law, designs: Architectures) -> FloatArray:
    """Losses that the law allows, nats, (draws, n): those of its draws; of a law without draws its prediction, (1, n)."""
    return law.drawn_losses(designs) if law.draws else law.loss(designs)[None]


def differences(law: Law, designs: Architectures, others: Architectures) -> list[list[Difference]]:
    """The difference of each design from each of the others; of a law that says how sure it is."""
    both, n = Architectures.concatenate([designs, others]), len(designs)
    possible, predicted = possible_losses(law, both), law.loss(both)
    usable = ~law.extrapolates(both) & np.isfinite(predicted)
    columns = [
        _column(
            predicted[:n] - predicted[at], possible[:, :n] - possible[:, [at]], misfit(law), usable[:n] & usable[at]
        )
        for at in range(n, len(both))
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(n)]


def paired(law: Law, designs: Architectures, others: Architectures, of_others: Law | None = None) -> list[Difference]:
    """The difference of each design from the other one in its row; `of_others` prices these where it is another law, with draws in the same order."""
    theirs = of_others or law
    nats = law.loss(designs) - theirs.loss(others)
    gaps = possible_losses(law, designs) - possible_losses(theirs, others)
    known = ~law.extrapolates(designs) & ~theirs.extrapolates(others) & np.isfinite(nats)
    return _column(nats, gaps, misfit(law), known)


def from_models(law: Law, designs: Architectures, models: Sequence[Baseline]) -> dict[str, list[Difference]]:
    """The difference of each design from published models, by their label; nothing of a law that does not say how sure it is."""
    if not (models and has_doubt(law)):
        return {}
    others = Architectures.concatenate(known.architecture for known in models)
    columns = zip(*differences(law, designs, others), strict=True)
    return {known.label: list(column) for known, column in zip(models, columns, strict=False)}


def _column(nats: FloatArray, gaps: FloatArray, sd: float, known: BoolArray) -> list[Difference]:
    """Differences from one design; `gaps` (draws, n)."""
    low, high = difference_quantiles(gaps, sd, ENDS)
    rows = zip(
        nats.tolist(), low.tolist(), high.tolist(), probability_below(gaps, sd).tolist(), known.tolist(), strict=True
    )
    return [Difference(d, *(found if inside else [np.nan] * 3)) for d, *found, inside in rows]


def tied(law: Law, architectures: Architectures) -> IntArray | None:
    """Group of each design, (n,): in a group the law cannot tell the others from its best one; -1 outside of the law's evidence.

    Two designs are tied while the 90 % interval of their losses' difference holds zero: over the law's draws and the
    misfit √2 · residual_sd, or over one of the two where the law has no other. Groups are numbered from the lowest loss;
    each is led by the lowest loss that no group before it holds. None for a law without uncertainty.
    """
    if not has_doubt(law):
        return None
    known = np.flatnonzero(~law.extrapolates(architectures))
    inside = architectures[known]
    order = np.argsort(law.loss(inside), kind="stable")
    group = np.full(len(architectures), -1)
    group[known[order]] = _groups(possible_losses(law, inside)[:, order], misfit(law))
    return group


def not_told_apart(law: Law, designs: Architectures, from_one: Architectures) -> BoolArray:
    """Which designs the law cannot tell from one of no larger loss, (n,): the 90 % interval of the difference holds zero; none outside of its evidence."""
    both = Architectures.concatenate([from_one, designs])
    possible, usable = possible_losses(law, both), ~law.extrapolates(both) & np.isfinite(law.loss(both))
    same = _same(possible[:, 1:] - possible[:, [0]], misfit(law))
    found: BoolArray = same & usable[1:] & usable[0]
    return found


def cheapest(group: IntArray, cost: FloatArray, loss: FloatArray) -> IntArray:
    """The row of lowest cost, then loss, of each group in order; those of no group (-1) left out."""
    order = np.lexsort((loss, cost, group))
    found: IntArray = order[np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1))]
    return found


def _groups(losses: FloatArray, sd: float) -> IntArray:
    """Groups of designs in the order of their losses; losses (draws, n), sd of a design's misfit.

    The least loss of all designs from a place on, draw by draw, tells whether any of them can be tied.
    """
    n, number = losses.shape[1], 0
    least = np.minimum.accumulate(losses[:, ::-1], axis=1)[:, ::-1]
    group = np.full(n, -1)
    for leader in range(n):
        if group[leader] >= 0:
            continue
        group[leader], start, size = number, leader + 1, FIRST_COMPARED
        while start < n and _same(least[:, [start]] - losses[:, [leader]], sd).any():
            free = start + np.flatnonzero(group[start : start + size] < 0)
            group[free[_same(losses[:, free] - losses[:, [leader]], sd)]] = number
            start, size = start + size, 2 * size
        number += 1
    return group


def _same(gaps: FloatArray, sd: float) -> BoolArray:
    """Whether designs may as well be the better ones: not above the leader with at least 5 %, (n,); gaps (draws, n)."""
    same: BoolArray = probability_below(gaps, sd) >= ENDS[0]
    return same


BLOCK = 512  # designs compared at once


@dataclass(frozen=True, eq=False)
class NotToldApart:
    """Evaluated designs within the budgets that the law cannot tell from the answer: how many.

    cheapest: of all whose loss is at most AS_GOOD higher the one that costs least, one row, what it takes of `metric`, and its loss, nats; None where
    the answer is it.
    """

    number: int
    metric: str
    cheapest: Architectures | None
    cost: float
    loss: float


AS_GOOD = 0.02  # nats


def not_told_apart_from(problem: Problem, answer: Evaluations, found: Evaluations) -> NotToldApart | None:
    """The evaluated designs that hold the budgets and cannot be told from an answer of one row; None where there is none.

    Taken in the order of their losses, up to the first block without such a design.
    """
    law, metric, loss = problem.scenario.law, _cost(problem), found.metrics["loss"]
    rows = np.flatnonzero(found.feasible & (found.keys != answer.keys[0]))
    rows = rows[np.argsort(loss[rows], kind="stable")]
    own, tied = problem.architectures(answer.genotypes), list[IntArray]()
    for block in (rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)):
        same = not_told_apart(law, problem.architectures(found.genotypes[block]), own)
        if not same.any():
            break
        tied.append(block[same])
    if not tied:
        return None
    every = np.concatenate(tied)
    good = rows[loss[rows] <= answer.metrics["loss"][0] + AS_GOOD]
    cost = problem.evaluate(np.concatenate([answer.genotypes, found.genotypes[good]]), (metric,)).metrics[metric]
    least = int(np.argmin(cost))
    row = found[good[[least - 1]]] if least else answer
    cheapest = problem.architectures(row.genotypes) if least else None
    return NotToldApart(len(every), metric, cheapest, float(cost[least]), float(row.metrics["loss"][0]))


def _cost(problem: Problem) -> str:
    own = {metric.name for metric in problem.functions}
    return cost_among(tuple(o.name for o in problem.objectives if o.name not in own))
