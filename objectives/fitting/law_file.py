"""A fit as a law that every command takes, in full precision, with where it came from."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from objectives.fitting.beyond_rows import BeyondRows
from objectives.fitting.covered_rows import covered
from objectives.fitting.diagnostics import quality
from objectives.fitting.estimate import Fit
from objectives.fitting.form_choice import form_weights
from objectives.fitting.intervals import Intervals, bootstrap
from objectives.fitting.layer_columns import coefficient
from objectives.fitting.trained_models import Table
from objectives.loss_law.coverage import RANGED
from objectives.loss_law.draws import Rival
from objectives.loss_law.form import Form
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES, LayerDeltas
from objectives.plugins import DISTRIBUTION, version_of
from search_spaces.arrays import FloatArray

KEPT = 200  # draws in a law file
PACKAGES = (DISTRIBUTION, "numpy", "scipy")


def law_of(
    fit: Fit,
    known: Intervals,
    name: str,
    form: str | Form,
    tokens: float | None,
    rivals: Mapping[str, Fit] | None = None,
    beyond: BeyondRows | None = None,
) -> Law:
    """The law with its range, residual sd, covariance, draws, deltas of the table's kinds of layers and provenance.

    The draws are shared out over the form and its `rivals` by their weights of evidence, one at least its own. beyond: how
    much wider they are outside the rows.
    """
    usable = {n: r for n, r in (rivals or {}).items() if tokens is not None or "tokens" not in r.model.form.features}
    shared = form_weights(fit, usable)
    total = min(len(known.draws), KEPT)
    counts = {each: round(share * total) for each, share in shared.items()}
    others = {each: n for each, n in counts.items() if n and each != fit.form_name}
    own = known.draws[: min(max(total - sum(others.values()), 1), total)]
    drawn = {fit.form_name: own, **{each: _drawn(usable[each], n) for each, n in others.items()}}
    deltas = deltas_of(fit)
    plain = slice(len(fit.coefficients) - len(deltas))
    return Law(
        name=name,
        description=f"{fit.form_name} fitted to {len(fit.table)} trained models",
        form=form,
        coefficients=dict([*fit.coefficients.items()][plain]),
        **_of_kinds(fit, deltas, [*drawn.values()]),
        fitted_on=_ranges(fit),
        covers=covered([fit.table]),
        tokens=tokens,
        residual_sd=quality(fit)["residual_sd"],
        source="plas fit",
        covariance=rows(known.covariance[plain, plain]),
        draws=rows(_without(own, deltas)),
        rivals=tuple(Rival(form=each, draws=rows(_without(drawn[each], deltas))) for each in others),
        beyond_rows=beyond and beyond.factor,
        provenance=provenance(fit, len(known.draws)),
    )


def _ranges(fit: Fit) -> dict[str, tuple[float, float]]:
    """Least and most of every quantity that the table holds or the form depends on; of dense rows alone one expert, whether the form sees experts or not."""
    table = fit.table
    found = {
        quantity: (float(table.feature(quantity).min()), float(table.feature(quantity).max()))
        for quantity in RANGED
        if quantity in fit.model.form.features or quantity in table.numbers
        if table.has(quantity)
    }
    return found if table.with_experts else {**found, "n_experts": (1.0, 1.0)}


def deltas_of(fit: Fit) -> LayerDeltas:
    """What kinds of layers cost beside a fit's own terms, nats where all layers are of the kind; its last coefficients."""
    return {kind: fit.coefficients[coefficient(kind)] for name, kind in SHARES.items() if name in fit.model.form.terms}


def _drawn(rival: Fit, count: int) -> FloatArray:
    """A rival form's draws, the deltas of kinds last, (count, coefficients)."""
    vectors, _, _ = bootstrap(rival, count, np.random.default_rng(rival.method.seed))
    return rival.model.raw(vectors)


def _without(draws: FloatArray, deltas: LayerDeltas) -> FloatArray:
    return draws[:, : draws.shape[1] - len(deltas)]


def _of_kinds(fit: Fit, deltas: LayerDeltas, draws: list[FloatArray]) -> dict[str, Any]:
    """What a law's file says of kinds of layers; in all draws, those of rivals after the law's own, a row a kind."""
    if not deltas:
        return {}
    last = np.concatenate([each[:, each.shape[1] - len(deltas) :] for each in draws])
    return {
        "layer_deltas": deltas,
        "layer_deltas_source": f"fitted to {len(fit.table)} trained models, with the law",
        "layer_delta_draws": dict(zip(deltas, rows(last.T), strict=True)) if len(last) else {},
    }


def rows(matrix: FloatArray) -> tuple[str, ...]:
    """A matrix as rows of text, every number to its last digit."""
    return tuple(" ".join(repr(number) for number in row) for row in np.asarray(matrix).tolist())


def _ends(table: Table, name: str) -> list[float] | None:
    """The least and the most of a quantity; None where it is not known."""
    return [float(table.feature(name).min()), float(table.feature(name).max())] if table.has(name) else None


def provenance(fit: Fit, bootstraps: int) -> dict[str, object]:
    """Everything that repeating the fit takes: tables, form, settings, seed."""
    return {
        "tables": [asdict(source) for source in fit.table.sources],
        "rows": len(fit.table),
        "tokens": _ends(fit.table, "tokens"),
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
