"""Do curves from bits per byte to task scores say more than simple rules? A table in, curves by family and every laboratory left out.

    python -m studies.scores TABLE [--out scores.yaml] [--seed 0]

The table's columns: results.md.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

from nas.document.document import Cell, Document, Part, Section, table_of
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import refuse_existing, write
from nas.study.catalogue import named
from nas.study.configuration import StudyConfig
from nas.terminal.tables import show
from objectives.token_curve import TokenCurve
from search_spaces.arrays import FloatArray
from studies.scores.curve_fit import LeftOut, fitted, left_out
from studies.scores.curves import FamilyCurve, Record, Scores, interval
from studies.scores.score_table import ScoreTable, score_table

ERRORS = ("rmse", "mean_rmse", "nearest_rmse")


def main() -> None:
    """Fit the curves, show and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.out is not None:
        refuse_existing("--out", given.out)
    models = score_table(given.table, _curve())
    scores, record = fitted(models, given.table.stem, given.seed), left_out(models, given.seed)
    scores = scores.model_copy(update={"left_out": _by_family(record)})
    if given.out is not None:
        write(given.out, f"# Fitted by studies.scores to {given.table.name}\n{yaml_source.dump(scores.mapping())}")
    show(_document(models, scores, record))


def _curve() -> TokenCurve:
    curve = named("token_curve", StudyConfig.model_fields["token_curve"].default, TokenCurve, Faults())
    assert curve is not None
    return curve


def _by_family(record: list[LeftOut]) -> dict[str, Record]:
    """Of each family the record over all laboratories left out."""
    records = {}
    for family in dict.fromkeys(row.family for row in record):
        own = [row for row in record if row.family == family]
        weights = [row.models for row in own]
        squares = {name: [getattr(row, name) ** 2 for row in own] for name in ERRORS}
        roots = {name: float(np.sqrt(np.average(values, weights=weights))) for name, values in squares.items()}
        records[family] = Record(**roots, inside=float(np.average([row.inside for row in own], weights=weights)))
    return records


def _document(models: ScoreTable, scores: Scores, record: list[LeftOut]) -> Document:
    """The curves of each family of tasks, and how laboratories left out are predicted."""
    labs, (low, high) = scores.laboratories, scores.fitted_on
    of = f"{len(labs)} laboratories" if len(labs) > 1 else labs[0]
    text = f": bits per byte of {scores.text}" if scores.text else ""
    places = np.array([high, 0.5 * (low + high), low])
    header = ("family", "tasks", "models", "chance", *(f"at {place:.3f}" for place in places.tolist()))
    curves = [_row(name, curve, places - scores.centre) for name, curve in scores.families.items()]
    whose = "a laboratory that is not in the table"
    if not scores.new_laboratory:
        whose = f"further models of {labs[0]}, the only laboratory"
    unseen: tuple[Part, ...] = ("No laboratory can be left out: how well another's is predicted is unknown.",)
    if record:
        errors = ("curve", "mean of the others", "nearest of the others", "inside 90 %")
        rows: list[tuple[Cell, ...]] = [
            (
                r.family,
                r.laboratory,
                r.models,
                *(_figure(getattr(r, name)) for name in ERRORS),
                f"{100 * r.inside:.0f} %",
            )
            for r in record
        ]
        useless = [
            f"{name}: no better than a rule without a curve." for name, own in scores.left_out.items() if not own.best
        ]
        unseen = (table_of(("family", "laboratory", "models", *errors), rows), *useless)
    return Document(
        "Scores",
        (
            Section("", (f"{len(models)} models of {of}, {models.source.name}{text}", *models.notes)),
            Section("Scores by bits per byte, 90 % of a new model's", (table_of(header, curves), f"Of {whose}.")),
            Section("Laboratories left out: root mean square error", unseen),
        ),
        {**scores.mapping(), "notes": list(models.notes), "laboratories_left_out": [asdict(row) for row in record]},
    )


def _row(name: str, curve: FamilyCurve, offset: FloatArray) -> tuple[Cell, ...]:
    figures = zip(*(ends.tolist() for ends in interval(curve, offset)), strict=True)
    cells = (f"{_figure(value)} ({_figure(low)} to {_figure(high)})" for value, low, high in figures)
    return name, ", ".join(curve.tasks), curve.models, curve.chance, *cells


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) <= 2.0 else f"{value:.1f}"


if __name__ == "__main__":
    main()
