"""Predictors without a law beside a fit: a straight line and a quadratic in logarithms, and size alone, on rows that none has seen.

The straight line is least squares of ln(loss) on the logarithms of the factors. The quadratic adds squares and products, shrunk by a ridge that
generalised cross-validation chooses anew for the rows that are kept. Active parameters alone are the form `parameters_power`. Source: Golub, Heath and Wahba 1979.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from objectives.fitting.diagnostics import factors, quadratic
from objectives.fitting.estimate import Fit
from objectives.fitting.form_choice import error_of_mean
from objectives.fitting.trained_models import Table
from objectives.fitting.validation import Order, Validation, folds, largest
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

LINE, QUADRATIC = "straight line in logarithms", "quadratic in logarithms"
SIZE = "power law in active parameters"
SIZE_FORM = "parameters_power"
RIDGES = np.geomspace(1e-8, 1e3, 45)  # of the mean squared length of a column
SHOWN = 2.0  # standard errors by which a baseline must be better to be called so
Predict = Callable[[Table, BoolArray], FloatArray]


@dataclass(frozen=True)
class Unseen:
    """Errors on rows that a predictor has not seen, nats, and their order.

    excess: RMSE of the fit minus its RMSE, above 0 where it is better than the fit, with a standard error of pairs of errors over designs;
    None for the fit itself.
    """

    rmse: float
    order: Order | None
    rows: int
    excess: float | None
    excess_error: float | None


@dataclass(frozen=True)
class Predictor:
    """A predictor on rows of 10 random folds, and on the largest fifth from the rest."""

    folds: Unseen
    largest: Unseen | None


@dataclass(frozen=True)
class Better:
    """A baseline that is better than the fit on unseen rows: which rows, both RMSEs, their difference and its standard error, nats."""

    baseline: str
    rows: str
    fit_rmse: float
    rmse: float
    excess: float
    excess_error: float


@dataclass(frozen=True)
class Baselines:
    """The fit first, then each baseline, or why it cannot be had; `better`: those that it loses to.

    logarithms: the factors that the line and the quadratic are made of; largest_by: what the largest fifth is largest in.
    """

    logarithms: tuple[str, ...]
    largest_by: str | None
    predictors: Mapping[str, Predictor | str]
    better: tuple[Better, ...]


def baselines(fit: Fit, own: Validation, size: tuple[Fit, Validation] | str | None) -> Baselines:
    """A fit and the baselines on the same unseen rows; `size` is `parameters_power` fitted to them, or why it cannot be."""
    table, found = fit.table, largest(fit.table)
    seen = (own.predicted, own.largest_predicted)
    predictors: dict[str, Predictor | str] = {fit.form_name: _judged(table, seen, None)}
    for name, predict in ((LINE, straight_line), (QUADRATIC, shrunk_quadratic)):
        try:
            inside = _left_out(table, predict, folds(table, fit.method.seed))
            beyond = None if found is None else np.where(found[1], predict(table, ~found[1]), np.nan)
        except ValueError as error:
            predictors[name] = str(error)
            continue
        predictors[name] = _judged(table, (inside, beyond), seen)
    if isinstance(size, str):
        predictors[SIZE] = size
    elif size is not None:
        predictors[SIZE] = _judged(table, (size[1].predicted, size[1].largest_predicted), seen)
    by = own.largest_by
    return Baselines(factors(table), by, predictors, tuple(_better(fit.form_name, predictors, by)))


def straight_line(table: Table, kept: BoolArray) -> FloatArray:
    """Losses of all rows by a power law in every factor, without a floor, fitted to the kept ones, nats, (n,).

    Raises:
        ValueError: no factor, or no more designs than coefficients.
    """
    columns = np.hstack([np.ones((len(table), 1)), _logarithms(table)])
    if len(np.unique(table.design[kept])) <= columns.shape[1]:
        raise ValueError(f"too few designs are left for {columns.shape[1]} coefficients")
    root = np.sqrt(table.weight[kept])
    found = np.linalg.lstsq(columns[kept] * root[:, None], np.log(table.loss[kept]) * root, rcond=1e-10)[0]
    return np.asarray(np.exp(columns @ found))


def shrunk_quadratic(table: Table, kept: BoolArray) -> FloatArray:
    """Losses of all rows by a ridge regression on the logarithms, their squares and products, fitted to the kept ones, nats, (n,).

    Raises:
        ValueError: no factor, or no more designs than factors.
    """
    if len(np.unique(table.design[kept])) <= 1 + _logarithms(table).shape[1]:
        raise ValueError("too few designs are left")
    columns = np.hstack([quadratic(table)[:, 1:], _shares(table)])
    return np.asarray(np.exp(ridge(columns, np.log(table.loss), kept, table.weight)))


def ridge(columns: FloatArray, target: FloatArray, kept: BoolArray, weight: FloatArray) -> FloatArray:
    """Predictions of all rows by a ridge on the kept ones with the least generalised cross-validation error, (n,)."""
    own = weight[kept]
    centre, mean = np.average(columns[kept], axis=0, weights=own), np.average(target[kept], weights=own)
    root = np.sqrt(own)
    left, singular, right = np.linalg.svd((columns[kept] - centre) * root[:, None], full_matrices=False)
    inside, rest = left.T @ ((target[kept] - mean) * root), (target[kept] - mean) * root
    n, squares = len(own), singular**2
    penalties = RIDGES * max(float(squares.sum()) / columns.shape[1], 1e-300)
    shrink = squares / (squares + penalties[:, None])
    errors = ((rest - (shrink * inside) @ left.T) ** 2).sum(axis=1)
    freedom = n - 1 - shrink.sum(axis=1)
    score = np.where(freedom > 0.5, errors / np.maximum(freedom, 0.5) ** 2, np.inf)
    best = penalties[int(np.argmin(score))]
    return np.asarray(mean + (columns - centre) @ (right.T @ (singular / (squares + best) * inside)))


def _logarithms(table: Table) -> FloatArray:
    """Logarithms of the factors, and shares of layers that are of a kind, (n, columns).

    Raises:
        ValueError: nothing varies.
    """
    names = factors(table)
    if not names:
        raise ValueError("no factor varies")
    return np.hstack([np.stack([np.log(table.feature(name)) for name in names], axis=1), _shares(table)])


def _shares(table: Table) -> FloatArray:
    """Shares of the layers that are of a kind, (n, kinds)."""
    return np.stack(list(table.kinds.values()), axis=1) if table.kinds else np.zeros((len(table), 0))


def _left_out(table: Table, predict: Predict, group: AnyArray) -> FloatArray:
    """Each row's loss as predicted from all other groups, nats, (n,)."""
    found = np.empty(len(table))
    for each in np.unique(group):
        found[group == each] = predict(table, group != each)[group == each]
    return found


Predictions = tuple[FloatArray, FloatArray | None]  # of the folds, and of the largest fifth with NaN for other rows


def _judged(table: Table, predicted: Predictions, fit: Predictions | None) -> Predictor:
    """Both sets of unseen rows by a predictor, beside the fit's own predictions."""
    inside = _unseen(table, predicted[0], None if fit is None else fit[0])
    if predicted[1] is None or (fit is not None and fit[1] is None):
        return Predictor(inside, None)
    return Predictor(inside, _unseen(table, predicted[1], None if fit is None else fit[1]))


def _unseen(table: Table, predicted: FloatArray, fit: FloatArray | None) -> Unseen:
    rows = np.flatnonzero(np.isfinite(predicted))
    loss = table.loss[rows]
    squares = (predicted[rows] - loss) ** 2
    rmse, order = float(np.sqrt(squares.mean())), ordered(predicted[rows], loss, table.design[rows])
    if fit is None:
        return Unseen(rmse, order, len(rows), None, None)
    theirs = (fit[rows] - loss) ** 2
    fit_rmse = float(np.sqrt(theirs.mean()))
    error = error_of_mean(theirs - squares, table.family[rows]) / max(rmse + fit_rmse, 1e-300)
    return Unseen(rmse, order, len(rows), fit_rmse - rmse, error)


def ordered(predicted: FloatArray, loss: FloatArray, design: AnyArray) -> Order | None:
    """Pairs of rows of different designs and losses in the right order; a predicted tie counts half. None without a pair."""
    right, pairs = 0.0, 0
    for i in range(len(loss) - 1):
        apart = (loss[i + 1 :] != loss[i]) & (design[i + 1 :] != design[i])
        agree = np.sign(predicted[i + 1 :] - predicted[i]) * np.sign(loss[i + 1 :] - loss[i])
        right += float((agree[apart] + 1.0).sum()) / 2.0
        pairs += int(apart.sum())
    return Order(right / pairs, pairs) if pairs else None


def _better(form: str, predictors: Mapping[str, Predictor | str], by: str | None) -> list[Better]:
    """Baselines whose error is below the fit's by two standard errors or more, on either set of rows."""
    found, fit = [], predictors[form]
    assert isinstance(fit, Predictor)
    for name, known in predictors.items():
        if isinstance(known, str):
            continue
        for rows, ours, theirs in (
            ("10 random folds", fit.folds, known.folds),
            (f"the largest fifth by {by}", fit.largest, known.largest),
        ):
            if ours is None or theirs is None or theirs.excess is None or theirs.excess_error is None:
                continue
            if theirs.excess > SHOWN * theirs.excess_error:
                found.append(Better(name, rows, ours.rmse, theirs.rmse, theirs.excess, theirs.excess_error))
    return found
