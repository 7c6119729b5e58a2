"""A fit as a law that every command takes, in full precision, with where it came from."""

import numpy as np

from objectives.fitting.diagnostics import quality
from objectives.fitting.fit import Fit
from objectives.fitting.intervals import Intervals
from objectives.form import Form
from objectives.installed import DISTRIBUTION, version_of
from objectives.law import RANGED, Law
from search_spaces.arrays import FloatArray

KEPT = 200  # draws in a law file
PACKAGES = (DISTRIBUTION, "numpy", "scipy")


def law_of(fit: Fit, known: Intervals, name: str, form: str | Form, tokens: float | None) -> Law:
    """The law with its range, residual sd, covariance, draws and provenance."""
    table = fit.table
    ranges = {
        quantity: (float(table.feature(quantity).min()), float(table.feature(quantity).max()))
        for quantity in RANGED
        if quantity in fit.model.form.features or quantity in table.numbers
        if table.has(quantity)
    }
    return Law(
        name=name,
        description=f"{fit.form_name} fitted to {len(table)} trained models",
        form=form,
        coefficients=fit.coefficients,
        fitted_on=ranges,
        tokens=tokens,
        residual_sd=quality(fit)["residual_sd"],
        source="plas fit",
        covariance=rows(known.covariance),
        draws=rows(known.draws[:KEPT]),
        provenance=provenance(fit, len(known.draws)),
    )


def rows(matrix: FloatArray) -> tuple[str, ...]:
    """A matrix as rows of text, every number to its last digit."""
    return tuple(" ".join(repr(number) for number in row) for row in np.asarray(matrix).tolist())


def provenance(fit: Fit, bootstraps: int) -> dict[str, object]:
    """What repeats the fit."""
    return {
        "data_sha256": fit.table.digest,
        "rows": len(fit.table),
        "form": fit.form_name,
        "residuals": fit.model.form.residuals,
        "delta": "least squares" if np.isinf(fit.delta) else fit.delta,
        "objective": fit.objective,
        "starts": fit.method.starts,
        "starts_agreeing": fit.agreeing,
        "seed": fit.method.seed,
        "fixed": dict(fit.method.fixed),
        "bounds": {name: list(fit.model.form.bound(name)) for name in fit.model.free},
        "bootstraps": bootstraps,
        "versions": {package: version_of(package) for package in PACKAGES},
    }
