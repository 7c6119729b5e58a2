"""The work of `scores`: a table of bits per byte and scores in, curves by family and their record on laboratories left out."""

from dataclasses import asdict

import numpy as np

from nas.document.document import Cell, Document, Part, Section, table_of
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import refuse_existing, write
from nas.study.catalogue import named
from nas.study.configuration import StudyConfig
from nas.terminal.console import notice, say_json
from nas.terminal.tables import show
from objectives.display_text import in_a_command
from objectives.scores import FamilyCurve, Record, Scores, interval
from objectives.token_curve import TokenCurve
from plas_evidence.scores.curve_fit import LeftOut, fitted, left_out
from plas_evidence.scores.request import ScoresRequest
from plas_evidence.scores.score_table import ScoreTable, score_table
from search_spaces.arrays import FloatArray

ERRORS = ("rmse", "mean_rmse", "nearest_rmse")


def execute(request: ScoresRequest) -> None:
    """Fit the curves, show and write them.

    Raises:
        UsageError: a table that cannot be read or fitted, a wrong ending, a missing folder, a file that exists.
    """
    path = request.table
    if request.out is not None:
        if request.out.suffix not in (".yaml", ".yml"):
            raise UsageError(f"out: expected a .yaml or .yml file, got {request.out}; change its ending")
        if not request.out.parent.is_dir():
            raise UsageError(f"out: expected a folder that exists, got {request.out.parent}; make it first")
        refuse_existing("--out", request.out)
    try:
        models = score_table(path, _curve())
        scores, record = fitted(models, path.stem, request.seed), left_out(models, request.seed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    scores = scores.model_copy(update={"left_out": _by_family(record)})
    if request.out is not None:
        write(request.out, f"# Fitted by plas scores {path.name}\n{yaml_source.dump(scores.mapping())}")
    document = _document(models, scores, record)
    say_json(document.data) if request.json else show(document)
    if request.out is not None and not request.quiet and not request.json:
        name = in_a_command(request.out)
        notice(f"{request.out}: use it with plas select or report --scores, run or explain --set scores={name}")


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
