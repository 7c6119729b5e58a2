"""How predictions do on the pairs of a question: order with its interval, regret, slope, error of differences, what is mute."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nas.evidence.predictors import Prediction
from nas.evidence.questions import TIE, Pairs
from objectives.loss_law.differences import difference_quantiles, probability_below
from search_spaces.arrays import BoolArray, FloatArray

BOOTSTRAPS, SEED = 1_000, 20_261_124
LEAST_PAIRS, LEAST_ROWS = 10, 5
LEVELS, BINS = (50, 80, 90), (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
MEASURED = 200  # pairs whose intervals' widths are taken
AT_ONCE = 20_000_000  # weights held together


@dataclass(frozen=True)
class Doubt:
    """What a law's draws and its misfit claim of differences, and what holds, over the pairs inside of what it was fitted on.

    outside: share of the pairs that are not. coverage: share of measured differences inside intervals of 50, 80 and 90 %; width: median width of
    those of 90 %, nats. bins: by the probability of the likelier order, between two of BINS each, how many pairs and how many of them in that
    order. sure: share of the pairs in the last, 95 % or more; sure_right: share of these in that order.
    """

    outside: float
    coverage: Mapping[int, float] | None
    width: float | None
    sure: float | None
    sure_right: float | None
    bins: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Judgement:
    """How a law or a rule does on one question of one table.

    pairs: those that it prices, of `of`; order: the share of `of` in the right order, ties and pairs that it does not price counted half (a coin),
    within `interval` (95 %, bootstrap over rows);
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
    doubt: Doubt | None = None


def judged(predictions: Mapping[str, Prediction | None], loss: FloatArray, pairs: Pairs) -> dict[str, Judgement | None]:
    """A judgement of each prediction by name; None of one that is None."""
    given = {name: each for name, each in predictions.items() if each is not None}
    intervals = order_intervals({name: _order(each.losses, loss, pairs) for name, each in given.items()}, pairs)
    found = {name: _judgement(each, loss, pairs, intervals[name]) for name, each in given.items()}
    return {name: found.get(name) for name in predictions}


def order_intervals(right: Mapping[str, FloatArray], pairs: Pairs) -> dict[str, tuple[float, float]]:
    """The 95 % interval of the mean of each `right` (pairs,).

    Rows are drawn again with replacement, a pair as often as both its rows together.
    """
    generator = np.random.default_rng(SEED)
    rows, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = place[: len(pairs)], place[len(pairs) :]
    every = np.stack([*right.values()], axis=1)
    shares = []
    for count in _blocks(len(pairs)):
        drawn = generator.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=count)
        weight = (drawn[:, first] * drawn[:, second]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            shares.append((weight @ every) / weight.sum(axis=1, keepdims=True))
    found = np.concatenate(shares)
    return {name: _interval(found[:, place]) for place, name in enumerate(right)}


def _interval(shares: FloatArray) -> tuple[float, float]:
    known = shares[np.isfinite(shares)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (0.0, 1.0)
    return float(low), float(high)


def _order(predicted: FloatArray, loss: FloatArray, pairs: Pairs) -> FloatArray:
    """1 for a pair in the right order, 0 in the wrong one, .5 for a tie and for one that is not priced, (pairs,)."""
    difference = predicted[pairs.first] - predicted[pairs.second]
    true = loss[pairs.first] - loss[pairs.second]
    return np.where(np.abs(difference) > TIE, (difference * true > 0).astype(np.float64), 0.5)


def _judgement(prediction: Prediction, loss: FloatArray, pairs: Pairs, interval: tuple[float, float]) -> Judgement:
    predicted = prediction.losses
    right = _order(predicted, loss, pairs)
    priced = np.isfinite(predicted[pairs.first] - predicted[pairs.second])
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
    order, regret = float(right.mean()), _regret(predicted, loss, own)
    return Judgement(
        len(own), len(pairs), order, interval, regret, slope, error, mute, decides, _doubt(prediction, true, own)
    )


def _doubt(prediction: Prediction, true: FloatArray, pairs: Pairs) -> Doubt | None:
    """How intervals of differences and orders called sure do on pairs inside of what the law was fitted on; None without draws."""
    if prediction.draws is None:
        return None
    out = np.zeros(len(prediction.losses), dtype=bool) if prediction.outside is None else prediction.outside
    inside = ~(out[pairs.first] | out[pairs.second])
    own, true = Pairs(pairs.first[inside], pairs.second[inside]), true[inside]
    if not len(own):
        return Doubt(1.0, None, None, None, None)
    held, worse = np.empty(len(own)), np.empty(len(own))
    size = max(1, AT_ONCE // len(prediction.draws))
    for start in range(0, len(own), size):
        block = slice(start, start + size)
        gaps = prediction.draws[:, own.first[block]] - prediction.draws[:, own.second[block]]
        held[block] = probability_below(gaps, prediction.misfit, true[block])
        worse[block] = 1.0 - probability_below(gaps, prediction.misfit)
    coverage = {level: float((np.abs(held - 0.5) <= level / 200).mean()) for level in LEVELS}
    bins = binned(np.maximum(worse, 1.0 - worse), (worse > 0.5) == (true > 0))
    sure, right = bins[-1]
    few = np.unique(np.linspace(0, len(own) - 1, MEASURED).astype(np.int64))
    low, high = difference_quantiles(
        prediction.draws[:, own.first[few]] - prediction.draws[:, own.second[few]], prediction.misfit, (0.05, 0.95)
    )
    return Doubt(
        1.0 - len(own) / len(pairs),
        coverage,
        float(np.median(high - low)),
        sure / len(own),
        right / sure if sure else None,
        bins,
    )


def binned(said: FloatArray, right: BoolArray) -> tuple[tuple[int, int], ...]:
    """Between each two of BINS how many statements have such a probability, and how many of them are right; both (statements,)."""
    place = np.digitize(said, BINS[1:-1])
    return tuple((int((place == i).sum()), int(right[place == i].sum())) for i in range(len(BINS) - 1))


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
