"""A fit row by row: observed, predicted with and without the row, residual, quantities, the share of each term."""

from typing import Any

import numpy as np

from objectives.fitting.diagnostics import factors, losses
from objectives.fitting.estimate import Fit
from objectives.fitting.validation import Validation


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
