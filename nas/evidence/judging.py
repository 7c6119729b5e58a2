"""How predictions do on the pairs of a question: order with its interval, regret, slope, error of differences, what is mute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.evidence.predictors import Prediction
from nas.evidence.questions import TIE, Pairs
from search_spaces.arrays import FloatArray

BOOTSTRAPS, SEED = 1_000, 20_261_124
LEAST_PAIRS, LEAST_ROWS = 10, 5
LEVELS, SURE = (50, 80, 90), 0.95
AT_ONCE = 20_000_000  # weights held together


@dataclass(frozen=True)
class Judgement:
    """How a law or a rule does on one question of one table.

    pairs: those that it prices, of `of`; order: the share in the right order, within `interval` (95 %, bootstrap over rows);
    regret: nats, mean over rows; slope: nats measured per nat predicted; error: rms of differences, nats; both nan of a
    rule, which predicts no nats. mute: the share of `of` that it does not price or sees no difference in. decides: whether pairs and rows are enough.
    """

    pairs: int
    of: int
    order: float
    interval: tuple[float, float]
    regret: float
    slope: float
    error: float
    mute: float
    decides: bool
    coverage: Mapping[int, float] | None = None
    sure: float | None = None
    sure_right: float | None = None


def judged(predictions: Mapping[str, Prediction | None], loss: FloatArray, pairs: Pairs) -> dict[str, Judgement | None]:
    """A judgement of each prediction by name; None of one that is None."""
    given = {name: each for name, each in predictions.items() if each is not None}
    intervals = order_intervals({name: _order(each.losses, loss, pairs) for name, each in given.items()}, pairs)
    found = {name: _judgement(each, loss, pairs, intervals[name]) for name, each in given.items()}
    return {name: found.get(name) for name in predictions}


def order_intervals(right: Mapping[str, FloatArray], pairs: Pairs) -> dict[str, tuple[float, float]]:
    """The 95 % interval of the mean of each `right` (pairs,), nan where a pair is not priced.

    Rows are drawn again with replacement, a pair as often as both its rows together.
    """
    generator = np.random.default_rng(SEED)
    rows, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = place[: len(pairs)], place[len(pairs) :]
    every = np.stack([*right.values()], axis=1)
    priced = np.isfinite(every).astype(np.float64)
    values, shares = np.where(priced > 0, every, 0.0), []
    for count in _blocks(len(pairs)):
        drawn = generator.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=count)
        weight = (drawn[:, first] * drawn[:, second]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            shares.append((weight @ values) / (weight @ priced))
    found = np.concatenate(shares)
    return {name: _interval(found[:, place]) for place, name in enumerate(right)}


def _interval(shares: FloatArray) -> tuple[float, float]:
    known = shares[np.isfinite(shares)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (0.0, 1.0)
    return float(low), float(high)


def _order(predicted: FloatArray, loss: FloatArray, pairs: Pairs) -> FloatArray:
    """1 for a pair in the right order, 0 in the wrong one, .5 for a tie, nan for one that is not priced, (pairs,)."""
    difference = predicted[pairs.first] - predicted[pairs.second]
    true = loss[pairs.first] - loss[pairs.second]
    right = np.where(np.abs(difference) > TIE, (difference * true > 0).astype(np.float64), 0.5)
    return np.where(np.isfinite(difference), right, np.nan)


def _judgement(prediction: Prediction, loss: FloatArray, pairs: Pairs, interval: tuple[float, float]) -> Judgement:
    predicted = prediction.losses
    right = _order(predicted, loss, pairs)
    priced = np.isfinite(right)
    own = Pairs(pairs.first[priced], pairs.second[priced])
    difference = predicted[own.first] - predicted[own.second]
    true = loss[own.first] - loss[own.second]
    seen = np.abs(difference) > TIE
    mute = 1.0 - float(seen.sum()) / len(pairs)
    if not seen.any():
        return Judgement(len(own), len(pairs), 0.5, (0.0, 1.0), np.nan, np.nan, np.nan, mute, decides=False)
    slope = float((difference * true).sum() / (difference**2).sum()) if prediction.in_nats else np.nan
    error = float(np.sqrt(((difference - true) ** 2).mean())) if prediction.in_nats else np.nan
    decides = len(own) >= LEAST_PAIRS and len(own.rows) >= LEAST_ROWS
    order, regret = float(right[priced].mean()), _regret(predicted, loss, own)
    doubt = {} if prediction.draws is None else _doubt(prediction.draws, true, own)
    return Judgement(len(own), len(pairs), order, interval, regret, slope, error, mute, decides, **doubt)


def _doubt(draws: FloatArray, true: FloatArray, pairs: Pairs) -> dict[str, Any]:
    """Coverage of the draws' intervals of differences, and how many of the orders that they call sure are right."""
    held, sure, right = dict.fromkeys(LEVELS, 0), 0, 0
    size = max(1, AT_ONCE // len(draws))
    for start in range(0, len(pairs), size):
        block = slice(start, start + size)
        gaps = draws[:, pairs.first[block]] - draws[:, pairs.second[block]]
        for level in LEVELS:
            low, high = np.quantile(gaps, [0.5 - level / 200, 0.5 + level / 200], axis=0)
            held[level] += int(((low <= true[block]) & (true[block] <= high)).sum())
        worse = (gaps > 0).mean(axis=0)
        certain = np.maximum(worse, (gaps < 0).mean(axis=0)) >= SURE
        sure += int(certain.sum())
        right += int((certain & ((worse > 0.5) == (true[block] > 0))).sum())
    coverage = {level: count / len(pairs) for level, count in held.items()}
    return {"coverage": coverage, "sure": sure / len(pairs), "sure_right": right / sure if sure else None}


def _blocks(pairs: int) -> list[int]:
    size = max(1, min(BOOTSTRAPS, AT_ONCE // max(pairs, 1)))
    return [min(size, BOOTSTRAPS - start) for start in range(0, BOOTSTRAPS, size)]


def _regret(predicted: FloatArray, loss: FloatArray, pairs: Pairs) -> float:
    """Of each row among those that it is paired with: the loss of what is predicted best, ties their mean, less the lowest; the mean over rows."""
    found = []
    for row in pairs.rows:
        others = np.concatenate([pairs.second[pairs.first == row], pairs.first[pairs.second == row], [row]])
        best = others[predicted[others] <= predicted[others].min() + TIE]
        found.append(float(loss[best].mean() - loss[others].min()))
    return float(np.mean(found))
