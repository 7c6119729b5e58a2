"""The work of `fit --scores`: a table of bits per byte and scores in, curves by family and their record on laboratories left out."""

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from nas.document.document import Cell, Document, Part, Section, table_of
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import write
from nas.fit.meaning import refuse_early
from nas.fit.request import FitRequest
from nas.study.catalogue import named
from nas.study.configuration import StudyConfig
from nas.terminal.console import notice, say_json
from nas.terminal.tables import show
from objectives.display_text import in_a_command
from objectives.scores.curves import FamilyCurve, Record, Scores, interval
from objectives.scores.fit import LeftOut, fitted, left_out
from objectives.scores.table import ScoreTable, score_table
from objectives.token_curve import TokenCurve
from search_spaces.arrays import FloatArray

ERRORS = ("rmse", "mean_rmse", "nearest_rmse")
TAKEN = ("scores", "out", "seed", "quiet", "json")


def execute(request: FitRequest) -> None:
    """Fit the curves, show and write them.

    Raises:
        UsageError: a table that cannot be read or fitted, or a flag that belongs to laws.
    """
    _refuse_others(request)
    refuse_early(request)
    path = Path(str(request.scores))
    try:
        models = score_table(path, _curve())
        scores, record = fitted(models, path.stem, request.seed), left_out(models, request.seed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    scores = scores.model_copy(update={"left_out": _by_family(record)})
    if request.out is not None:
        write(request.out, f"# Fitted by plas fit --scores {path.name}\n{yaml_source.dump(scores.mapping())}")
    document = _document(models, scores, record)
    say_json(document.data) if request.json else show(document)
    if request.out is not None and not request.quiet and not request.json:
        name = in_a_command(request.out)
        notice(f"{request.out}: use it with plas select or report --scores, run or explain --set scores={name}")


def _refuse_others(request: FitRequest) -> None:
    """Say which flags are of fits of laws.

    Raises:
        UsageError: one is given.
    """
    given = (field.name for field in fields(FitRequest) if getattr(request, field.name) != field.default)
    if (other := next((name for name in given if name not in TAKEN), None)) is not None:
        shown = "tables" if other == "runs" else f"--{other.replace('_', '-')}"
        raise UsageError(
            f"scores: expected --out, --seed, --quiet and --json alone, got {shown}; drop that, or --scores"
        )


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
