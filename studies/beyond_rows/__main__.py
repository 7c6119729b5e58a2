"""Do a fit's draws cover models larger than its rows? Coverage of the largest fifth, before and after they are spread.

    PLAS_EXTERNAL_DATA=FOLDER python -m studies.beyond_rows [--tables chinchilla,farseer] [--forms chinchilla,hw_codesign]

Of each table of FOLDER/evidence (no part of the project) the fifth with the most training compute is put away; a form is
fitted to the rest as `plas fit` does, with its draws and with the factor that the rest's own largest fifth gives
(`plas_fit.fitting.law_file`), and 90 % intervals of the draws are held against what was put away. Nothing of the rows
that judge is seen by the factor.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives.loss_law.form import named_form
from objectives.plugins import importable
from plas_fit.fitting.diagnostics import quality
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import bootstrap
from plas_fit.fitting.law_file import HELD, beyond_rows
from plas_fit.fitting.several_tables import read_tables
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import largest
from search_spaces.arrays import FloatArray

DRAWS, STARTS = 200, 16
LEFT_OUT = ("layer_kinds_marin", "vocabulary")  # no tables of trained models in one convention


@dataclass(frozen=True)
class Row:
    """One form on one table: rows put away; what the draws cover of them, as they are, with the residual sd, and spread; the factor."""

    table: str
    form: str
    rows: int
    alone: float
    with_sd: float
    spread: float
    factor: float


def judged(name: str, table: Table) -> Iterator[Row]:
    """Every form that fits the rest of a table."""
    found = largest(table)
    if found is None:
        return
    out = np.flatnonzero(found[1])
    rest = table[np.flatnonzero(~found[1])]
    for form in importable("objectives.law_forms"):
        if not named_form(form).fitted:
            continue
        try:
            fit = fitted(form, named_form(form), rest, Method(None, STARTS, 0, {}))
        except ValueError:
            continue
        known = beyond_rows(fit)
        if known is not None:
            yield _row(name, form, fit, table[out], known.factor)


def predicted(fit: Fit, vectors: FloatArray, table: Table) -> FloatArray:
    """Losses of a table's rows by each vector of a fit, nats, (vectors, n)."""
    form, names = fit.model.form, list(fit.coefficients)
    known = [dict(zip(names, row, strict=True)) for row in fit.model.raw(vectors).tolist()]
    zero = np.zeros(len(table))
    return np.array([form.loss(sum(form.values(table.feature, each).values(), zero)) for each in known])


def _row(name: str, form: str, fit: Fit, away: Table, factor: float) -> Row:
    """Coverage of the rows put away."""
    draws, _, _ = bootstrap(fit, DRAWS, np.random.default_rng(0))
    centre, *others = predicted(fit, np.concatenate([fit.vector[None], draws]), away)
    drawn, seen, sd = np.array(others), away.loss, quality(fit)["residual_sd"]
    noise = np.random.default_rng(1).normal(size=drawn.shape) * sd
    return Row(
        name, form, len(away), covered(drawn, seen), covered(drawn + noise, seen), covered(centre + factor * (drawn - centre), seen), factor
    )  # fmt: skip


def covered(draws: FloatArray, seen: FloatArray) -> float:
    """Share of the losses (n,) inside the 90 % intervals of draws (d, n)."""
    low, high = np.quantile(draws, ((1 - HELD) / 2, (1 + HELD) / 2), axis=0)
    return float(((seen >= low) & (seen <= high)).mean())


def main() -> None:
    """Print the table as CSV, studies/beyond_rows/beyond-rows.csv; the medians go to the other stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="")
    parser.add_argument("--forms", default="")
    given = parser.parse_args()
    folder = Path(os.environ["PLAS_EXTERNAL_DATA"]) / "evidence"
    paths = [path for path in sorted(folder.glob("*.csv")) if path.stem not in LEFT_OUT]
    print("table,form,rows_put_away,draws_percent,draws_and_residual_sd_percent,spread_draws_percent,factor")
    every = []
    for path in paths:
        if given.tables and path.stem not in given.tables.split(","):
            continue
        for row in judged(path.stem, read_tables([path], {}, [], last=None, unit=None)):
            every.append(row)
            shares = ",".join(f"{100 * share:.0f}" for share in (row.alone, row.with_sd, row.spread))
            print(f"{row.table},{row.form},{row.rows},{shares},{row.factor:.2g}", flush=True)
    for what in ("alone", "with_sd", "spread"):
        values = [getattr(row, what) for row in every]
        print(
            f"{what}: median {np.median(values):.0%}, at least nine of ten in {np.mean(np.array(values) >= 0.9):.0%} of {len(values)} cells",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
