"""How sure differences of predicted losses are, over a law's draws and the misfit of each design; designs that cannot be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.problem.pick_queries import Baseline
from nas.problem.uncertainty import ENDS
from objectives.loss_law.draws import difference_quantiles, probability_below
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

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
