"""How wrong a calibration is: on what it was fitted to, and on models or lengths it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from objectives.calibrating.efficiencies import OPTIONAL, fit, freedom, penalty
from objectives.calibrating.terms import Terms
from objectives.device import Device
from search_spaces.arrays import AnyArray, FloatArray

MARGIN = 0.5  # of the held-out penalty that leaving a coefficient out must save: less is noise on so few models
FOLDS = 5
WILD = 0.25  # log error beyond which a row says nothing of what is left out


def leave_one_out(
    terms: Terms,
    models: Sequence[str],
    device: Device,
    *,
    request: bool = False,
    by: AnyArray | None = None,
    which: AnyArray | None = None,
) -> FloatArray:
    """Milliseconds of every row predicted from rows of other models, (n,); NaN with one model alone.

    What a group keeps of the optional coefficients is decided anew for every model, without its rows.

    Args:
        terms: the group's rows.
        models: of each row.
        device: whose figures the terms are of.
        request: whether there is a constant per request.
        by: what is held out instead of the model.
        which: the values of it that are held out, all without.
    """
    names = np.array(models)
    labels = names if by is None else by
    predicted = np.full(len(names), np.nan)
    for label in np.unique(labels) if which is None else which:
        others, here = labels != label, labels == label
        if others.any():
            seen, left = terms.rows(others), names[others]
            without = superfluous(seen, left, device, request=request)
            free = freedom(seen, device, len(set(left)), request=request, without=without)
            predicted[here] = terms.rows(here).predict(fit(seen, free))
    return predicted


def superfluous(terms: Terms, models: AnyArray, device: Device, *, request: bool = False) -> tuple[str, ...]:
    """Optional coefficients without which held-out errors are smaller by `MARGIN`: one after another, or all of them.

    Held out in turn are the models, or the lengths of a single one; nothing is left out where neither differs.
    """
    labels = models if len(set(models)) > 1 else terms.lengths
    folds = np.unique(labels, return_inverse=True)[1] % FOLDS

    def missed(without: tuple[str, ...]) -> float:
        errors = []
        for fold in np.unique(folds):
            seen = terms.rows(folds != fold)
            free = freedom(seen, device, len(set(models[folds != fold])), request=request, without=without)
            rest = terms.rows(folds == fold)
            errors.append(np.log(rest.predict(fit(seen, free)) / rest.ms))
        return float(penalty(np.clip(np.concatenate(errors), -WILD, WILD)).mean())

    if len(np.unique(folds)) < 2:
        return ()
    told = freedom(terms, device, len(set(models)), request=request).names
    every = tuple(name for name in OPTIONAL if name in told)
    gone: tuple[str, ...] = ()
    least = missed(gone)
    while left := [name for name in every if name not in gone]:
        error, without = min((missed(names), names) for names in {every, *((*gone, name) for name in left)})
        if error >= (1.0 - MARGIN) * least:
            break
        gone, least = without, error
    return gone


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
