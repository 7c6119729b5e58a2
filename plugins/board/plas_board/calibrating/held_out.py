"""Errors of a calibration: on what it was fitted to, and on models or lengths it has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import kendalltau

from objectives.device import Calibration, Device
from plas_board.calibrating.efficiencies import PARAMETERS, Freedom, Priors, fit, freedom, penalty
from plas_board.calibrating.terms import Terms, predict
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

CLEARLY = 0.5  # of the held-out penalty that leaving a coefficient out must save: less is noise on so few models
HELPS = 0.1  # of the held-out penalty that rows at other batches must save
FOLDS = 5
WILD = 0.25  # log error beyond which a row says nothing of what is kept


@dataclass(frozen=True, eq=False)
class Group:
    """Rows that share a calibration, with those measured beside them at other batches, and what they can say."""

    terms: Terms
    models: AnyArray
    device: Device
    request: bool = False
    priors: Priors = field(default_factory=lambda: PARAMETERS)

    def rows(self, which: AnyArray) -> "Group":
        """Some of the rows."""
        return Group(self.terms.rows(which), self.models[which], self.device, self.request, self.priors)

    def alone(self) -> "Group":
        """Without what was measured beside."""
        return self.rows(~self.terms.beside)

    def free(self) -> Freedom:
        """The coefficients that the rows determine."""
        return freedom(self.terms, self.device, len(set(self.models.tolist())), self.priors, request=self.request)

    def fitted(self, kept: Sequence[str]) -> Calibration:
        """The calibration with some of the optional coefficients, as far as the rows determine them."""
        return fit(self.terms, self.free().keeping(kept))


@dataclass(frozen=True)
class Chosen:
    """The optional coefficients that a group keeps, and whether rows at other batches help."""

    kept: tuple[str, ...]
    beside: bool

    def fitted_rows(self, group: Group) -> Group:
        """The rows that are fitted to."""
        return group if self.beside else group.alone()


def leave_one_out(group: Group, *, by: AnyArray | None = None, which: AnyArray | None = None) -> FloatArray:
    """Milliseconds of every row of the group's own predicted from rows of other models, (n,); NaN with one model alone.

    What is kept of the optional coefficients is decided again for every model, without its rows.

    Args:
        group: rows, those beside it included.
        by: what is held out instead of the model.
        which: the values of it that are held out, all without.
    """
    labels = group.models if by is None else by
    predicted = np.full(len(labels), np.nan)
    for label in np.unique(labels) if which is None else which:
        others, here = labels != label, labels == label
        if (others & ~group.terms.beside).any():
            seen = group.rows(others)
            chosen = choose(seen)
            predicted[here] = predict(group.terms.rows(here), chosen.fitted_rows(seen).fitted(chosen.kept))
    return predicted[~group.terms.beside]


def choose(group: Group) -> Chosen:
    """The coefficients to keep: every optional one that the rows determine, without those that raise held-out errors.

    On other devices they lower these errors, which is the evidence that a few models cannot outweigh by noise: one after
    another, or all at once, they go where the errors without are smaller by `CLEARLY`. Held out in turn are the models, or
    the lengths of a single one; where neither differs all stay. A model with experts that no other has is not held out:
    it says how far others' experts carry, nothing of coefficients. Rows at other batches join where they save `HELPS`.
    """
    alone, missed = _kept(group.alone())
    if group.terms.beside.any():
        kept, joined = _kept(group)
        if joined < (1.0 - HELPS) * missed:
            return Chosen(kept, beside=True)
    return Chosen(alone, beside=False)


def _kept(group: Group) -> tuple[tuple[str, ...], float]:
    """The optional coefficients that keep their place, and the held-out penalty with them."""
    missed, kept = _judge(group), group.free().optional
    if missed is None:
        return kept, np.inf
    least = missed(kept)
    while kept:
        fewer = {(), *(tuple(name for name in kept if name != gone) for gone in kept)}
        error, names = min((missed(names), names) for names in fewer)
        if error >= (1.0 - CLEARLY) * least:
            break
        kept, least = names, error
    return kept, least


def _judge(group: Group) -> Callable[[tuple[str, ...]], float] | None:
    """Mean held-out penalty of the group's own rows by what is kept; None where nothing can be held out."""
    labels = group.models if len(set(group.models.tolist())) > 1 else group.terms.lengths
    folds = np.unique(labels, return_inverse=True)[1] % FOLDS
    routed: BoolArray = np.asarray(group.terms.experts.any(axis=1), dtype=np.bool_)
    held = [
        (~here, here & ~group.terms.beside)
        for here in (folds == fold for fold in np.unique(folds))
        if _has_alike(group, here, routed)
    ]
    if len(np.unique(folds)) < 2 or not held:
        return None

    def missed(kept: tuple[str, ...]) -> float:
        errors = [
            np.log(predict(rest, group.rows(seen).fitted(kept)) / rest.ms)
            for seen, rest in ((seen, group.terms.rows(here)) for seen, here in held)
        ]
        return float(penalty(np.clip(np.concatenate(errors), -WILD, WILD)).mean())

    return missed


def _has_alike(group: Group, here: BoolArray, routed: BoolArray) -> bool:
    """Whether rows that are held out have others like them: experts where they have experts."""
    own = ~group.terms.beside
    return bool((here & own).any() and (~here & own).any() and ((~here & routed).any() or not (here & routed).any()))


@dataclass(frozen=True)
class Errors:
    """Errors of one phase over rows: shares (0.03 is 3 %), Kendall's τ of the order of the models.

    overshoot: the worst excess over a budget, when every measured time in turn is the budget and the
    slowest model predicted within it is picked. overlap: Jaccard index of the models on the predicted
    and on the measured frontier of time and parameters, which stand in for quality. NaN: not defined.
    """

    rows: int
    median: float
    p90: float
    kendall: float
    overshoot: float
    overlap: float


def errors(predicted: FloatArray, measured: FloatArray, parameters: FloatArray) -> Errors:
    """Errors of one phase; rows that were not predicted (NaN) are left out."""
    known = np.isfinite(predicted)
    p, m, size = predicted[known], measured[known], parameters[known]
    if not len(p):
        return Errors(0, *[float("nan")] * 5)
    share = np.abs(p / m - 1.0)
    order = float(kendalltau(p, m).statistic) if len(p) > 1 else float("nan")
    return Errors(
        len(p),
        float(np.median(share)),
        float(np.quantile(share, 0.9)),
        order,
        worst_overshoot(p, m),
        _jaccard(_frontier(p, size), _frontier(m, size)),
    )


def worst_overshoot(predicted: FloatArray, measured: FloatArray) -> float:
    """max over budgets b of measured(pick) / b − 1, at least 0, (pick: slowest with predicted ≤ b)."""
    worst = 0.0
    for budget in measured:
        within = predicted <= budget
        if within.any():
            pick = np.argmax(np.where(within, predicted, -np.inf))
            worst = max(worst, float(measured[pick] / budget - 1.0))
    return worst


def _frontier(ms: FloatArray, size: FloatArray) -> AnyArray:
    """Rows that no other beats in both time and parameters."""
    better = (ms[None] <= ms[:, None]) & (size[None] >= size[:, None])
    strict = (ms[None] < ms[:, None]) | (size[None] > size[:, None])
    kept: AnyArray = ~np.asarray((better & strict).any(axis=1))
    return kept


def _jaccard(a: AnyArray, b: AnyArray) -> float:
    return float((a & b).sum() / (a | b).sum())
