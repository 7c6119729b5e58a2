"""Errors on rows that a fit has not seen: random folds, whole levels of a factor, the largest models; how sure the choice among forms is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, spearmanr

from objectives.loss_law.form import Form
from plas_fit.fitting.diagnostics import factors, losses, quality, replicates
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.robust import minimised
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

FOLDS = 10
MOST_LEVELS = 30
GROUPS = 5
LARGEST = 0.2
SIZES = ("active_parameters", "parameters", "width")  # what says how large a model is, the first that is known
NEAR = 2.0  # residual sds
MOST_NEAR = 1000
STEPS = 150


@dataclass(frozen=True)
class Errors:
    """Root mean square and mean of predicted minus observed, nats, over `rows` unseen rows."""

    rmse: float
    bias: float
    rows: int


@dataclass(frozen=True)
class Order:
    """Share of pairs of unseen rows whose losses are predicted in the observed order."""

    right: float
    pairs: int


@dataclass(frozen=True)
class Validation:
    """Errors of 10 random folds with rank correlations; per factor with each level left out; of the largest fifth.

    near_frontier: order of the rows that matter, those near the lowest loss for their size; largest_by: what the largest fifth is largest in;
    predicted: each row's loss in the folds, nats; squares: their squared errors, nats²; largest_predicted: loss of each of the largest fifth
    from the rest, NaN for other rows, each (n,).
    """

    folds: Errors
    spearman: float
    kendall: float
    near_frontier: Order | None
    levels: Mapping[str, Errors]
    largest: Errors | None
    largest_by: str | None
    predicted: FloatArray
    squares: FloatArray
    largest_predicted: FloatArray | None


def validated(fit: Fit, seed: int = 0) -> Validation:
    """Every split refitted from the full fit's coefficients (a split changes the weights, not the basin)."""
    predicted = unseen(fit, folds(fit.table, seed))
    levels = {name: _errors(fit, unseen(fit, groups(fit.table, name))) for name in factors(fit.table)}
    with np.errstate(invalid="ignore"):
        ranks = spearmanr(predicted, fit.table.loss).statistic, kendalltau(predicted, fit.table.loss).statistic
    by, beyond = _of_the_largest(fit)
    return Validation(
        _errors(fit, predicted), float(ranks[0]), float(ranks[1]), near_frontier(fit, predicted), levels,
        None if beyond is None else _errors(fit, beyond), by, predicted, (predicted - fit.table.loss) ** 2, beyond,
    )  # fmt: skip


def folds(table: Table, seed: int) -> AnyArray:
    """The random fold of each row, those of one family in one, (n,)."""
    order = np.random.default_rng(seed).permutation(int(table.family.max()) + 1)
    return np.asarray((order % min(FOLDS, len(order)))[table.family])


def largest(table: Table) -> tuple[str, BoolArray] | None:
    """The fifth of the rows with the most training compute, or parameters where tokens are one number or unknown, (n,)."""
    names = [name for name in SIZES if table.has(name)]
    if not names:
        return None
    size, by = table.feature(names[0]), names[0].replace("_", " ")
    if table.has("tokens") and len(np.unique(table.feature("tokens"))) > 1:
        size, by = size * table.feature("tokens"), "training compute"
    out: BoolArray = size > np.quantile(size, 1 - LARGEST)
    return (by, out) if out.any() else None


def groups(table: Table, factor: str) -> AnyArray:
    """Group of each row: the level of a factor, or a fifth of its range where levels are many, (n,)."""
    values = table.feature(factor)
    if len(np.unique(values)) <= MOST_LEVELS:
        return np.unique(values, return_inverse=True)[1]
    return np.searchsorted(np.quantile(values, np.arange(1, GROUPS) / GROUPS), values)


def unseen(fit: Fit, group: AnyArray) -> FloatArray:
    """Each row's loss as predicted by the fit to all other groups, nats, (n,)."""
    kept: BoolArray = group[None, :] != np.unique(group)[:, None]
    vectors, _ = minimised(
        fit.model, np.repeat(fit.vector[None], len(kept), 0), fit.delta, kept * fit.model.weight, STEPS
    )
    predicted = losses(fit, fit.model.predict(vectors))
    return np.asarray(np.where(kept, 0.0, predicted).sum(axis=0))


def near_frontier(fit: Fit, predicted: FloatArray) -> Order | None:
    """Pairs within two residual sds of the lowest observed loss of their size or less; None with no such pair.

    Pairs of equal losses, replicates and those whose losses differ by less than the noise of replicates do not count.
    """
    size = _size(fit.table)
    if size is None:
        return None
    order, loss = np.lexsort((fit.table.loss, size)), fit.table.loss
    best = np.minimum.accumulate(loss[order])
    near = order[loss[order] <= best + NEAR * quality(fit)["residual_sd"]][:MOST_NEAR]
    first, second = np.triu_indices(len(near), 1)
    noise = replicates(fit.table)
    apart = np.abs(loss[near][first] - loss[near][second]) > (0.0 if noise is None else noise["sd"])
    apart &= fit.table.design[near][first] != fit.table.design[near][second]
    observed = np.sign(loss[near][first] - loss[near][second])[apart]
    expected = np.sign(predicted[near][first] - predicted[near][second])[apart]
    return Order(float((observed == expected).mean()), len(observed)) if len(observed) else None


def _size(table: Table) -> FloatArray | None:
    """The size of models, (n,): active parameters where known."""
    names = [name for name in SIZES if table.has(name)]
    return table.feature(names[0]) if names else None


def _of_the_largest(fit: Fit) -> tuple[str | None, FloatArray | None]:
    """What the largest fifth is largest in, and its losses as predicted from the rest, NaN for other rows, (n,)."""
    found = largest(fit.table)
    if found is None or (~found[1]).sum() <= len(fit.vector):
        return None, None
    by, out = found
    return by, np.where(out, unseen(fit, out.astype(np.int64)), np.nan)


def _errors(fit: Fit, predicted: FloatArray) -> Errors:
    error = (predicted - fit.table.loss)[np.isfinite(predicted)]
    return Errors(float(np.sqrt((error**2).mean())), float(error.mean()), len(error))


def rivals(
    forms: Mapping[str, Form], table: Table, method: Method, stage: Callable[[str], None]
) -> dict[str, tuple[Fit, Validation] | str]:
    """Every form under the same validation; the reason where a form cannot be fitted to the table."""
    found: dict[str, tuple[Fit, Validation] | str] = {}
    for name, form in forms.items():
        stage(f"form {name} under the same validation")
        own = {exponent: value for exponent, value in method.fixed.items() if exponent in form.exponents}
        try:
            fit = fitted(name, form, table, Method(method.delta, method.starts, method.seed, own))
        except ValueError as error:
            found[name] = str(error).splitlines()[0]
            continue
        found[name] = (fit, validated(fit, method.seed))
    return found


def row_of(fit: Fit, known: Validation) -> dict[str, float | None]:
    """One line of the comparison of forms."""
    measured = quality(fit)
    levels = [errors.rmse for errors in known.levels.values()]
    return {
        "coefficients": len(fit.vector),
        "r2": measured["r2"],
        "bic": measured["bic"],
        "folds_rmse": known.folds.rmse,
        "worst_level_rmse": max(levels) if levels else None,
        "largest_rmse": None if known.largest is None else known.largest.rmse,
        "largest_bias": None if known.largest is None else known.largest.bias,
        "spearman": known.spearman,
    }


def form_weights(fit: Fit, rivals: Mapping[str, Fit]) -> dict[str, float]:
    """Share of the evidence of each form, exp(−ΔBIC/2) scaled to 1. Source: Kass and Raftery 1995."""
    bics = {name: quality(each)["bic"] for name, each in {fit.form_name: fit, **rivals}.items()}
    return shares(bics)


def shares(bics: Mapping[str, float]) -> dict[str, float]:
    """exp(−ΔBIC/2) of each form, scaled to 1."""
    least = min(bics.values())
    raw = {name: float(np.exp(-0.5 * (bic - least))) for name, bic in bics.items()}
    return {name: value / sum(raw.values()) for name, value in raw.items()}


def excess(fit: Fit, own: Validation, other: Validation) -> tuple[float, float]:
    """Another form's RMSE on unseen rows minus the fit's own, and the standard error of the difference, nats.

    Of the mean difference of squared errors over families of rows, divided by the sum of both RMSEs.
    """
    total = max(own.folds.rmse + other.folds.rmse, 1e-300)
    return other.folds.rmse - own.folds.rmse, error_of_mean(other.squares - own.squares, fit.table.family) / total


def error_of_mean(values: FloatArray, family: AnyArray) -> float:
    """Standard error of the mean of values (n,) over families of rows; infinite of one family."""
    place = np.unique(family, return_inverse=True)[1]
    means = np.bincount(place, values) / np.bincount(place)
    return float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("inf")
