"""A fit as a law that every command takes, in full precision, with where it came from, what rows cover and errors beyond them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from objectives.loss_law.coverage import RANGED, DesignKind, Region, ends_of, region_of
from objectives.loss_law.draws import Rival, mixed
from objectives.loss_law.form import Form, named_form
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES, LayerDeltas
from objectives.plugins import DISTRIBUTION, version_of
from plas_fit.fitting.columns import coefficient
from plas_fit.fitting.diagnostics import losses, quality
from plas_fit.fitting.estimate import Fit
from plas_fit.fitting.intervals import Intervals, bootstrap, resampled
from plas_fit.fitting.robust import minimised
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import form_weights, largest
from search_spaces.arrays import BoolArray, FloatArray

HELD = 0.9  # share of unseen rows that an interval is to hold
DRAWS = 200
STEPS = 150


@dataclass(frozen=True)
class BeyondRows:
    """The largest fifth, by size or by training compute (`by`), under the draws of a fit to the other rows.

    rows: how many; covered: share inside the draws' 90 % interval; factor: on the draws' spread about the prediction, at
    least 1, with which nine of ten are inside.
    """

    by: str
    rows: int
    covered: float
    factor: float


def beyond_rows(fit: Fit, seed: int = 0) -> BeyondRows | None:
    """What leaving the largest rows out shows of the draws; None where size is unknown or too few rows are left.

    The factor is the conformal one: of n distances |observed - predicted| / half-width the ceil(0.9 (n + 1))-th, the largest
    where there are fewer.
    """
    found = largest(fit.table)
    if found is None or (~found[1]).sum() <= len(fit.vector):
        return None
    by, out = found
    vector, draws = _of_the_rest(fit, ~out, seed)
    low, high = np.quantile(draws[:, out], ((1 - HELD) / 2, (1 + HELD) / 2), axis=0)
    half, error = (high - low) / 2, np.abs(vector[out] - fit.table.loss[out])
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sort(np.where(error > 0, error / half, 0.0))
    place = min(int(np.ceil(HELD * (len(distance) + 1))), len(distance)) - 1
    covered = float(((fit.table.loss[out] >= low) & (fit.table.loss[out] <= high)).mean())
    factor = float(distance[place])
    return BeyondRows(by, int(out.sum()), covered, max(factor, 1.0)) if np.isfinite(factor) else None


def _of_the_rest(fit: Fit, kept: BoolArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Losses of all rows by the fit to the kept ones, (n,), and by its resamplings, (draws, n), nats."""
    drawn = resampled(fit.table.family, DRAWS, np.random.default_rng(seed))
    weights = np.concatenate([np.ones((1, len(kept))), drawn]) * fit.model.weight * kept
    vectors, _ = minimised(fit.model, np.repeat(fit.vector[None], len(weights), 0), fit.delta, weights, STEPS)
    first, *others = losses(fit, fit.model.predict(vectors))
    return first, np.array(others)


def covered(tables: Sequence[Table]) -> dict[DesignKind, Region]:
    """What the rows of tables cover, of dense designs and of those with experts; a table that says nothing of experts is dense."""
    found: dict[DesignKind, Region] = {}
    kinds: tuple[tuple[DesignKind, bool], ...] = (("dense", False), ("sparse", True))
    for kind, wanted in kinds:
        rows = [np.flatnonzero(table.sparse == wanted) for table in tables]
        of = [table[some] for table, some in zip(tables, rows, strict=True) if len(some)]
        if of:
            found[kind] = region_of(partial(_column, of), kind).within(**_layers(of))
    return found


def ranges_of(tables: Sequence[Table]) -> dict[str, tuple[float, float]]:
    """Return the range of each quantity over the rows of tables; of one that says nothing of experts they have none."""
    found = {name: column for name in (*RANGED, "tokens") if (column := _column(tables, name)) is not None}
    return {name: ends_of(values) for name, values in found.items() if np.isfinite(values).any()}


def _column(tables: Sequence[Table], name: str) -> FloatArray | None:
    """A quantity of every row, NaN in tables that do not say it; None where none does."""
    if not any(table.has(name) for table in tables):
        return None
    return np.concatenate([table.feature(name) if table.has(name) else np.full(len(table), np.nan) for table in tables])


def _layers(tables: Sequence[Table]) -> dict[str, tuple[float, float]]:
    """The range of the share of layers of each kind; a table that names none has full attention in all of them."""
    most = {
        name: max(float(table.kinds.get(kind, np.zeros(1)).max()) for table in tables) for name, kind in SHARES.items()
    }
    return {name: (0.0, share) for name, share in most.items()}


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
    law = Law(
        name=name,
        description=f"{fit.form_name} fitted to {len(fit.table)} trained models",
        form=form,
        coefficients=dict([*fit.coefficients.items()][plain]),
        fitted_on=_ranges(fit),
        covers=covered([fit.table]),
        tokens=tokens,
        residual_sd=quality(fit)["residual_sd"],
        source="plas fit",
        covariance=rows(known.covariance[plain, plain]),
        beyond_rows=beyond and beyond.factor,
        provenance=provenance(fit, len(known.draws)),
    )
    sound = {
        each: _sound(law, named_form(form if each == fit.form_name else each), deltas, of) for each, of in drawn.items()
    }
    return law.model_copy(
        update={
            **_of_kinds(fit, deltas, [*sound.values()]),
            "draws": rows(_without(sound[fit.form_name], deltas)),
            "rivals": tuple(
                Rival(form=each, draws=rows(_without(sound[each], deltas)))
                for each in others
                if len(sound[each]) and len(sound[fit.form_name])
            ),
        }
    )


def _sound(law: Law, form: Form, deltas: LayerDeltas, draws: FloatArray) -> FloatArray:
    """Those draws of a form that trainings support."""
    own = mixed([(form, rows(_without(draws, deltas)))], {}, {})
    return draws[[not fault for fault in law.faults_of(own)]]


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
