"""The report of a fit, as plain content for JSON, Markdown and the terminal."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from objectives.fitting import diagnostics
from objectives.fitting.baselines import SIZE_FORM, baselines
from objectives.fitting.beyond_rows import BeyondRows
from objectives.fitting.diagnostics import factors, losses
from objectives.fitting.estimate import Fit
from objectives.fitting.form_choice import excess, shares
from objectives.fitting.formula_text import formulas
from objectives.fitting.intervals import Intervals
from objectives.fitting.law_file import provenance
from objectives.fitting.layer_columns import coefficient
from objectives.fitting.portability import portability
from objectives.fitting.trained_models import Table
from objectives.fitting.validation import Validation, row_of, validated
from objectives.loss_law.form import Form, named_form
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES
from objectives.plugins import importable

BY_ROW = ("predicted", "squares", "largest_predicted")  # of a validation, shown with the rows or not at all


def report(
    fit: Fit,
    known: Intervals,
    rivals: Mapping[str, tuple[Fit, Validation] | str],
    given: Law,
    beyond: BeyondRows | None,
    stage: Callable[[str], None],
) -> dict[str, Any]:
    """The whole report of a fit; `rivals` are other forms fitted to its rows, `given` is an older law.

    beyond: what the largest rows show of the draws. `stage` hears what begins.
    """
    stage("rows not seen by the fit")
    checked = validated(fit, fit.method.seed)
    carried = portability(given, fit.table)
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
        "given_law": None if carried is None else asdict(carried),
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
