"""The work of `fit --scores`: a table of bits per byte and scores in, curves by family and their record on laboratories left out."""

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.files.tables import write
from nas.fit.meaning import refuse_early
from nas.fit.request import FitRequest
from nas.study.catalogue import named
from nas.study.configuration import StudyConfig
from nas.terminal.console import notice, say, say_json
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from objectives.display_text import in_a_command
from objectives.scores.curves import FamilyCurve, Record, Scores, interval
from objectives.scores.fit import LeftOut, fitted, left_out
from objectives.scores.table import ScoreTable, score_table
from objectives.token_curve import TokenCurve
from search_spaces.arrays import FloatArray

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
        found = score_table(path, _curve())
        scores, record = fitted(found, path.stem, request.seed), left_out(found, request.seed)
    except ValueError as error:
        raise UsageError(str(error)) from None
    scores = scores.model_copy(update={"left_out": _by_family(record)})
    if request.out is not None:
        write(request.out, f"# Fitted by plas fit --scores {path.name}\n{yaml_source.dump(scores.mapping())}")
    if request.json:
        say_json({**scores.mapping(), "notes": list(found.notes), "laboratories_left_out": [asdict(r) for r in record]})
        return
    _show(found, scores, record)
    if request.out is not None and not request.quiet:
        notice(
            f"{request.out}: use it with plas select or report --scores, run or explain --set scores={in_a_command(request.out)}"
        )


def _refuse_others(request: FitRequest) -> None:
    """Say which flags are of fits of laws.

    Raises:
        UsageError: one is given.
    """
    given = [
        each.name
        for each in fields(FitRequest)
        if each.name not in TAKEN and getattr(request, each.name) != each.default
    ]
    if given:
        shown = "tables" if given[0] == "runs" else f"--{given[0].replace('_', '-')}"
        raise UsageError(
            f"scores: expected --out, --seed, --quiet and --json alone with it, got {shown}; drop that, or --scores"
        )


def _curve() -> TokenCurve:
    curve = named("token_curve", StudyConfig.model_fields["token_curve"].default, TokenCurve, Faults())
    assert curve is not None
    return curve


def _by_family(record: list[LeftOut]) -> dict[str, Record]:
    """Of each family the record over all laboratories left out."""
    found = {}
    for family in dict.fromkeys(each.family for each in record):
        own = [each for each in record if each.family == family]
        weights = [each.models for each in own]
        squares = {name: [getattr(each, name) ** 2 for each in own] for name in ("rmse", "mean_rmse", "nearest_rmse")}
        roots = {name: float(np.sqrt(np.average(values, weights=weights))) for name, values in squares.items()}
        found[family] = Record(**roots, inside=float(np.average([each.inside for each in own], weights=weights)))
    return found


def _show(found: ScoreTable, scores: Scores, record: list[LeftOut]) -> None:
    labs = scores.laboratories
    many = f"{len(labs)} laboratories" if len(labs) > 1 else labs[0]
    say(
        f"{len(found)} models of {many}, {found.source.name}{f': bits per byte of {scores.text}' if scores.text else ''}"
    )
    for line in found.notes:
        say(f"  {line}")
    low, high = scores.fitted_on
    places = np.array([high, 0.5 * (low + high), low])
    say(Styled("\nScores by bits per byte, 90 % of a new model's", TITLE))
    header = ("family", "tasks", "models", "chance", *(f"at {each:.3f}" for each in places.tolist()))
    table(header, [_row(name, each, places - scores.centre) for name, each in scores.families.items()])
    say(
        "  of a laboratory that is not in the table"
        if scores.new_laboratory
        else f"  of further models of {labs[0]}, the only laboratory"
    )
    if not record:
        say("  no laboratory can be left out: how well another's would be predicted is unknown")
        return
    say(Styled("\nLaboratories left out: root mean square error", TITLE))
    table(
        ("family", "left out", "models", "curve", "mean of the others", "nearest of the others", "inside 90 %"),
        [
            (
                r.family,
                r.laboratory,
                str(r.models),
                *(_figure(v) for v in (r.rmse, r.mean_rmse, r.nearest_rmse)),
                f"{100 * r.inside:.0f} %",
            )
            for r in record
        ],
        left=2,
    )
    for family, own in scores.left_out.items():
        if not own.best:
            say(f"  {family}: no better than a rule without a curve")


def _row(name: str, curve: FamilyCurve, offset: FloatArray) -> tuple[str, ...]:
    value, low, high = interval(curve, offset)
    figures = zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
    cells = (f"{_figure(v)} ({_figure(a)} to {_figure(b)})" for v, a, b in figures)
    return name, ", ".join(curve.tasks), str(curve.models), f"{curve.chance:.3g}", *cells


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) <= 2.0 else f"{value:.1f}"
