"""Everything that is said of a fit, as plain content for JSON, Markdown and the terminal."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from objectives.fitting import diagnostics
from objectives.fitting.fit import Fit, Method
from objectives.fitting.intervals import Intervals
from objectives.fitting.law_file import provenance
from objectives.fitting.portability import portability
from objectives.fitting.validation import Validation, rivals, row_of, validated
from objectives.form import Form
from objectives.law import Law

REJECT = 0.01
RIVAL_STARTS = 8


def report(
    fit: Fit, known: Intervals, forms: Mapping[str, Form], given: Law, stage: Callable[[str], None]
) -> dict[str, Any]:
    """The whole report of a fit; `forms` are compared under the same validation, `given` is an older law.

    `stage` hears what begins.
    """
    stage("rows not seen by the fit")
    checked = validated(fit, fit.method.seed)
    carried = portability(given, fit.table)
    shape = diagnostics.lack_of_fit(fit)
    return {
        "form": fit.form_name,
        "data": diagnostics.described(fit.table)
        | {"correlations": diagnostics.correlations(fit.table), "replicates": diagnostics.replicates(fit.table)},
        "coefficients": coefficients(fit, known),
        "terms": terms(fit),
        "identifiability": diagnostics.identifiability(fit, known),
        "alike": diagnostics.alike(fit, known),
        "condition": known.condition,
        "bootstrap": {
            "draws": len(known.draws),
            "restarts_agreeing": known.restarts,
            "restarts_checked": known.checked,
        },
        "quality": diagnostics.quality(fit),
        "lack_of_fit": None if shape is None else asdict(shape) | {"rejected": shape.p_value < REJECT},
        "validation": asdict(checked),
        "influence": diagnostics.influence(fit),
        "forms": compared(fit, checked, forms, stage),
        "given_law": None if carried is None else asdict(carried),
        "provenance": provenance(fit, len(known.draws)),
    }


def coefficients(fit: Fit, known: Intervals) -> dict[str, dict[str, Any]]:
    """Value, standard error and both intervals of each coefficient of the law file."""
    sd = np.sqrt(np.diag(known.covariance))
    return {
        name: {
            "value": value,
            "standard_error": float(sd[i]),
            "linear": known.linear[i].tolist(),
            "bootstrap": known.bootstrap[i].tolist(),
            "fixed": name in fit.model.fixed,
        }
        for i, (name, value) in enumerate(fit.coefficients.items())
    }


def terms(fit: Fit) -> dict[str, dict[str, Any]]:
    """Each term at the reference design, and its range over the data."""
    model = fit.model
    values = fit.vector[: model.count, None] * model.terms(fit.vector[None, model.count :])[0]
    return {
        name: {"at_reference": float(fit.vector[i]), "low": float(values[i].min()), "high": float(values[i].max())}
        for i, name in enumerate(model.form.terms)
    } | {"reference_design": dict(model.reference)}


def compared(fit: Fit, checked: Validation, forms: Mapping[str, Form], stage: Callable[[str], None]) -> dict[str, Any]:
    """Every form's errors under the same validation, or why it cannot be fitted."""
    method = Method(None if not np.isinf(fit.delta) else fit.delta, RIVAL_STARTS, fit.method.seed, {})
    others = {name: form for name, form in forms.items() if name != fit.form_name}
    found: dict[str, Any] = {fit.form_name: row_of(fit, checked)}
    for name, result in rivals(others, fit.table, method, stage).items():
        found[name] = result if isinstance(result, str) else row_of(*result)
    return found
