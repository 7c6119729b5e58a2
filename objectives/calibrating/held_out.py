"""How wrong a calibration is: on what it was fitted to, and on models it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from objectives.calibrating.efficiencies import fit, freedom
from objectives.calibrating.terms import Terms
from objectives.device import Device
from search_spaces.arrays import AnyArray, FloatArray


def leave_one_model_out(terms: Terms, models: Sequence[str], device: Device, *, request: bool = False) -> FloatArray:
    """Milliseconds of every row predicted from the other models' rows, (n,); NaN with one model alone."""
    names = np.array(models)
    predicted = np.full(len(names), np.nan)
    distinct = sorted(set(models))
    for name in distinct if len(distinct) > 1 else ():
        others = terms.rows(names != name)
        free = freedom(others, device, len(distinct) - 1, request=request)
        predicted[names == name] = terms.rows(names == name).predict(fit(others, free))
    return predicted


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
