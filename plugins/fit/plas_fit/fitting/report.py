"""The report of a fit, its formulas and simple baselines, as plain content for JSON, Markdown and the terminal."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from objectives.loss_law.form import Form, Term, named_form
from objectives.loss_law.layer_deltas import SHARES
from objectives.plugins import importable
from plas_fit.fitting import diagnostics
from plas_fit.fitting.columns import coefficient
from plas_fit.fitting.diagnostics import factors, losses, quadratic
from plas_fit.fitting.estimate import Fit
from plas_fit.fitting.intervals import Intervals
from plas_fit.fitting.law_file import BeyondRows, provenance
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import (
    Order,
    Validation,
    error_of_mean,
    excess,
    folds,
    largest,
    row_of,
    shares,
    validated,
)
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


Factor = Callable[[str], str]


def formulas(fit: Fit) -> dict[str, str]:
    """The same formula three times: `names` of coefficients, `raw` (the law file's numbers), `reference`.

    The last has each quantity over its value at the reference design, so that a scale is its term's contribution there.
    """
    form, model, raw = fit.model.form, fit.model, fit.coefficients
    scales = dict(zip(form.scales, fit.vector[: model.count].tolist(), strict=True))
    return {
        "names": _sum(form, lambda term: term.scale, lambda name: name, lambda name: name),
        "raw": _sum(form, lambda term: f"{raw[term.scale]:.4g}", _numbers(raw), lambda name: name),
        "reference": _sum(
            form,
            lambda term: f"{scales[term.scale]:.4g}",
            _numbers(raw),
            lambda name: f"({name}/{model.reference[name]:.4g})",
        ),
    }


def _numbers(coefficients: Mapping[str, float]) -> Factor:
    return lambda name: f"{coefficients[name]:.4g}"


def _sum(form: Form, scale: Callable[[Term], str], exponent: Factor, quantity: Factor) -> str:
    """`loss = a · b^-c + …`; a term's own sign stands before it."""
    said = "ln loss" if form.of == "log_loss" else "loss"
    terms = [
        (term.sign, " · ".join([scale(term), *_factors(term, exponent, quantity), *([name] if name in SHARES else [])]))
        for name, term in form.terms.items()
    ]
    first, *others = terms
    return f"{said} = {'−' * (first[0] < 0)}{first[1]}" + "".join(f" {'−' if s < 0 else '+'} {t}" for s, t in others)


def _factors(term: Term, exponent: Factor, quantity: Factor) -> list[str]:
    exponents = {name: _signed(written, exponent) for name, written in term.powers.items()}
    powers = [f"{quantity(name)}^{written}" for name, written in exponents.items() if written not in ("0", "-0")]
    return powers + [f"ln({name}/{at:g})" for name, at in term.logs.items()]


def _signed(written: str, exponent: Factor) -> str:
    """An exponent with its sign, two of them taken together."""
    value = exponent(written.removeprefix("-"))
    if not written.startswith("-"):
        return value
    return value[1:] if value.startswith("-") else f"-{value}"


BY_ROW = ("predicted", "squares", "largest_predicted")  # of a validation, shown with the rows or not at all


def report(
    fit: Fit,
    known: Intervals,
    rivals: Mapping[str, tuple[Fit, Validation] | str],
    beyond: BeyondRows | None,
    stage: Callable[[str], None],
) -> dict[str, Any]:
    """The whole report of a fit; `rivals` are other forms fitted to its rows.

    beyond: what the largest rows show of the draws. `stage` hears what begins.
    """
    stage("rows not seen by the fit")
    checked = validated(fit, fit.method.seed)
    shape = diagnostics.lack_of_fit(fit)
    return {
        "form": fit.form_name,
        "formula": formulas(fit),
        "adds_up_to": fit.model.form.of,
        "data": described(fit),
        "coefficients": coefficients(fit, known),
        "kinds": kinds(fit, known),
        "terms": terms(fit, known),
        "determined": diagnostics.determined(fit, known),
        "identifiability": diagnostics.identifiability(fit, known),
        "alike": diagnostics.alike(fit, known),
        "condition": known.condition,
        "bootstrap": _resampled(known),
        "quality": diagnostics.quality(fit),
        "lack_of_fit": None if shape is None else asdict(shape) | {"rejected": shape.p_value < diagnostics.REJECT},
        "validation": {name: value for name, value in asdict(checked).items() if name not in BY_ROW},
        "baselines": asdict(baselines(fit, checked, rivals.get(SIZE_FORM))),
        "beyond_rows": None if beyond is None else asdict(beyond),
        "influence": diagnostics.influence(fit),
        "forms": compared(fit, checked, rivals),
        "rows": row_by_row(fit, checked),
        "provenance": provenance(fit, len(known.draws)),
    }


def _resampled(known: Intervals) -> dict[str, int]:
    return {"draws": len(known.draws), "restarts_agreeing": known.restarts, "restarts_checked": known.checked}


def described(fit: Fit) -> dict[str, Any]:
    """The rows: ranges, factors that move together, replicates, sweeps, tokens that vary unseen by the form."""
    return diagnostics.described(fit.table) | {
        "correlations": diagnostics.correlations(fit.table),
        "replicates": diagnostics.replicates(fit.table),
        "sweep": diagnostics.sweep(fit.table),
        "tokens": unseen_tokens(fit.table, fit.model.form),
        "mixture": diagnostics.mixture(fit),
    }


def coefficients(fit: Fit, known: Intervals) -> dict[str, dict[str, Any]]:
    """Value, standard error and both intervals of each coefficient of the law file, and what it is."""
    means = meanings(fit.model.form)
    sd, unknown = np.sqrt(np.diag(known.covariance)), np.array(fit.model.names)[known.together]
    return {
        name: {
            "value": value,
            "standard_error": float("nan") if name in unknown else float(sd[i]),
            "linear": known.linear[i].tolist(),
            "bootstrap": known.bootstrap[i].tolist(),
            "fixed": name in fit.model.fixed,
            "means": means.get(name, ""),
        }
        for i, (name, value) in enumerate(fit.coefficients.items())
    }


def meanings(form: Form) -> dict[str, str]:
    """What the coefficients of a form are: `size of the term sparsity`, `exponent of ffn_ratio`."""
    found = {term.scale: f"size of the term {name}" for name, term in form.terms.items()}
    for term in form.terms.values():
        for quantity, exponent in term.powers.items():
            found.setdefault(exponent.removeprefix("-"), f"exponent of {quantity}")
    return found


def kinds(fit: Fit, known: Intervals) -> dict[str, Any]:
    """What kinds of layers cost, nats where all layers are of the kind, and what the rows cannot tell of them; nothing without rows of any."""
    shares, said = fit.table.kinds, coefficients(fit, known)
    if not shares:
        return {}
    sure = diagnostics.determined(fit, known)
    deltas = {
        kind: said[coefficient(kind)]
        | {"rows": int((share > 0).sum()), "least": float(share.min()), "most": float(share.max())}
        | {"determined": sure[coefficient(kind)]}
        for kind, share in shares.items()
    }
    windows = np.unique(fit.table.numbers.get("window", np.zeros(1)))
    return {
        "deltas": deltas,
        "unseen": [kind for kind in SHARES.values() if kind not in shares],
        "windows": windows[windows > 0].tolist(),
    }


def terms(fit: Fit, known: Intervals) -> dict[str, dict[str, Any]]:
    """Each term at the reference design with its standard error, and its range over the data."""
    model = fit.model
    values = fit.vector[: model.count, None] * model.terms(fit.vector[None, model.count :])[0]
    return {
        name: {
            "at_reference": float(fit.vector[i]),
            "standard_error": float(known.sd[i]),
            "low": float(values[i].min()),
            "high": float(values[i].max()),
        }
        for i, name in enumerate(model.form.terms)
    } | {"reference_design": dict(model.reference)}


def compared(
    fit: Fit, checked: Validation, rivals: Mapping[str, tuple[Fit, Validation] | str]
) -> dict[str, dict[str, float | None] | str]:
    """Every form's errors under the same validation and its share of the evidence, or why it cannot be fitted."""
    fits = {fit.form_name: (fit, checked)} | {name: r for name, r in rivals.items() if not isinstance(r, str)}
    rows = {name: row_of(*result) for name, result in fits.items()}
    weights = shares({name: float(row["bic"] or 0.0) for name, row in rows.items()})
    found: dict[str, dict[str, float | None] | str] = {}
    for name, row in rows.items():
        apart, error = excess(fit, checked, fits[name][1])
        own: dict[str, float | None] = {"weight": weights[name], "folds_excess": apart, "folds_excess_error": error}
        found[name] = row | own
    return found | {name: reason for name, reason in rivals.items() if isinstance(reason, str)}


def row_by_row(fit: Fit, checked: Validation) -> dict[str, Any]:
    """Columns of equal length, in the table's order.

    observed, predicted, unseen (by the fit to the other folds): nats. residual: observed minus predicted in the scale
    of the residuals. design: rows of one number are replicates. factors: quantities that vary. terms: what adds up to the loss, nats, or
    to its logarithm.
    """
    model, table = fit.model, fit.table
    values = fit.vector[: model.count, None] * model.terms(fit.vector[None, model.count :])[0]
    named = [] if table.names is None else table.names.tolist()
    return {
        "line": np.asarray(table.lines).tolist(),
        "name": named,
        "design": table.design.tolist(),
        "observed": table.loss.tolist(),
        "predicted": losses(fit, fit.predicted).tolist(),
        "unseen": checked.predicted.tolist(),
        "residual": fit.residuals.tolist(),
        "factors": {name: table.feature(name).tolist() for name in factors(table)},
        "terms": {name: row.tolist() for name, row in zip(model.form.terms, values, strict=True)},
    }


ALIKE = 0.1  # relative difference up to which counts of tokens are one


def unseen_tokens(table: Table, form: Form) -> str | None:
    """What to do where training tokens vary and the form does not depend on them; None where neither is so."""
    if "tokens" in form.features or not table.has("tokens"):
        return None
    tokens = table.feature("tokens")
    if float(np.ptp(tokens)) <= ALIKE * float(tokens.min()):
        return None
    with_tokens = [name for name in importable("objectives.law_forms") if "tokens" in named_form(name).features]
    counts, rows = np.unique(tokens, return_counts=True)
    most = int(np.argmax(rows[::-1])) if len(rows) else 0  # of equally frequent ones the largest
    count, kept = float(counts[::-1][most]), int(rows[::-1][most])
    keep = f"--where tokens={count:.17g} keeps {kept} of {len(table)} rows of one count, or " if kept > 1 else ""
    return (
        f"tokens vary, {tokens.min():.3g} to {tokens.max():.3g}, and this form has no term for them: what they do is read as the "
        f"architecture's doing; {keep}choose a form with tokens ({', '.join(with_tokens)}, or one of your own with --form FILE.yaml)"
    )
