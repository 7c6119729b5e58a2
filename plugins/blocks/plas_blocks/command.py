"""Runs `blocks`: reads and solves a library, prints, draws and keeps the answer, and answers again from the folder."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.commands.requests import ExplainRequest, ReportRequest, SelectRequest
from nas.errors import InfeasibleError, UsageError
from nas.exact.sweeps import FORM
from nas.exact.sweeps import MOST as MOST_LIMITS
from nas.files.own_files import drawing
from nas.files.tables import csv_text, refuse_existing, refuse_used, write, write_json
from nas.pages.page import FILE, delivered, name_of
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.study.metrics import check_form, diverse, knee
from nas.terminal.console import Stages, notice, say, say_json
from nas.terminal.screen_text import TITLE, Styled
from nas.terminal.tables import table
from plas_blocks import recording, screen
from plas_blocks.answers import best, best_within, picks, scaled
from plas_blocks.checking import Meaning
from plas_blocks.files import read_library
from plas_blocks.folder_names import recognises
from plas_blocks.library import Library
from plas_blocks.page import blocks_page
from plas_blocks.query import BlocksQuery, answered
from plas_blocks.request import BlocksRequest
from plas_blocks.study import UNTESTED, Study
from search_spaces.arrays import python_value


def answer(request: BlocksRequest) -> None:
    """Read, solve, write, print.

    Raises:
        UsageError: a broken library, or what cannot be done.
        InfeasibleError: no mixture is within the budgets.
        PlasError: the folder cannot be written.
    """
    begin, stage = time.monotonic(), Stages(quiet=request.quiet)
    if request.out is not None:
        refuse_used("--out", request.out)
    stage("reading the library")
    asked, meaning = BlocksQuery.typed(request), Meaning.typed(request)
    if recognises(request.library) and asked == BlocksQuery():
        asked = recording.read_config(request.library)[0]
    library = read_library(request.library, meaning)
    study = studied(library, asked, stage)
    folder = run_folder.create(f"blocks-{_stem(request.library)}", request.out)
    manifest = Manifest(folder, {"command": "blocks", "state": "running", "started": run_folder.now()})
    manifest.update(versions=run_folder.versions())
    stage("writing tables")
    recording.write_tables(folder, study)
    content = recording.write_config(folder, library.source, asked)
    if request.plots:
        stage("drawing pictures and page")
        _draw(folder, study, content)
    manifest.update(state="finished", ended=run_folder.now(), seconds=round(time.monotonic() - begin, 3))
    stage.close()
    _say(request, study, folder)


def _stem(path: Path) -> str:
    name = path.resolve().stem if path.suffix else path.resolve().name
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)[:60].strip(".") or "library"


def studied(library: Library, asked: BlocksQuery, stage: Stages) -> Study:
    """The whole answer."""
    for text in asked.picks:
        asked.answerable(library, text)
    stage("solving")
    frontier = answered(library, asked, stage)
    return Study(library, asked, frontier, picks(frontier, asked))


def _draw(folder: Path, study: Study, content: Mapping[str, Any]) -> None:
    from plas_blocks.pictures import draw_all, pngs

    with drawing(folder, "tables") as plots:
        draw_all(study, plots)
    write(folder / FILE, blocks_page(name_of(folder), study, content, pngs(study)))


def _say(request: BlocksRequest, study: Study, folder: Path) -> None:
    if request.json:
        say_json({"folder": str(folder), **study.summary(), "picks": study.pick_rows()})
        return
    if request.quiet:
        return
    screen.show(study)
    say(f"Tables, Puzzletron's solutions.json{', pictures, report.html' if request.plots else ''}: {folder}")


def reopened(path: Path, budgets: Sequence[str]) -> Study:
    """A folder's answer found again, under further budgets."""
    asked, _ = recording.read_config(path)
    library = read_library(path, Meaning())
    asked = replace(asked, budgets=(*asked.budgets, *budgets))
    return studied(library, asked, Stages(quiet=True))


def report(request: ReportRequest) -> Path:
    """The page of a folder, written again.

    Raises:
        UsageError: another folder, or a file that exists.
    """
    from plas_blocks.pictures import pngs

    path = request.run
    study = reopened(path, [])
    content = recording.read_config(path)[1]
    return delivered(request, lambda: blocks_page(name_of(path), study, content, pngs(study)))


def select(request: SelectRequest) -> None:
    """Mixtures of a folder's frontier: within budgets, knees, a diverse few, a sweep.

    Raises:
        UsageError: an unknown form or metric, settings of a study, or a file that exists.
        InfeasibleError: no mixture is within the budgets.
    """
    check_form(request.how)
    _refuse_settings(request.run, [*(["laws"] if request.laws is not None else []), *request.formats])
    if request.out is not None:
        _refuse_suffix(request.out)
        refuse_existing("--out", request.out)
    study = reopened(request.run, request.budgets)
    if request.sweep is not None:
        chosen = _sweep(study, request.sweep)
    else:
        rows = _rows(study, request.how)
        chosen = [(None, row) for row in rows]
    if not chosen:
        raise InfeasibleError(f"select: no mixture within {request.sweep or request.how}; move the limit")
    rows = [row for _, row in chosen]
    columns = recording.candidate_columns(study, rows)
    if request.out is not None:
        _keep(request.out, study, rows, columns)
    if request.json:
        say_json([{name: python_value(column[i]) for name, column in columns.items()} for i in range(len(rows))])
    elif not request.quiet:
        screen.show_head(study)
        screen.show_rows(study, chosen, request.shown)
        if request.budgets:
            say("These ids are of the mixtures within these budgets: explain takes one with the same --budget.")
        say(UNTESTED)
    if request.out is not None and not request.quiet:
        notice(f"{len(rows):,} mixtures written to {request.out}")


def _refuse_settings(path: Path, given: Sequence[str]) -> None:
    """Refuse what only a study has."""
    if given:
        raise UsageError(
            f"{path}: expected no {', '.join(given)} with an answer of plas blocks, which has no study; leave it out"
        )


def _rows(study: Study, how: str) -> list[int]:
    kind, _, rest = how.partition(":")
    frontier = study.frontier
    if kind == "budget":
        row = best_within(frontier, study.asked.answerable(study.library, rest))
        return [] if row is None else [row]
    if how == "best":
        row = best(frontier)
        return [] if row is None else [row]
    if how == "frontier":
        return list(range(len(frontier)))
    points = scaled(frontier)
    return [knee(points)] if how == "knee" else np.sort(diverse(points, int(rest))).tolist()


def _sweep(study: Study, text: str) -> list[tuple[str | None, int]]:
    """The pick at each limit of metric=first:last:step."""
    metric, _, numbers = text.partition("=")
    try:
        first, last, step = (float(part) for part in numbers.split(":"))
        count = (last - first) / step + 1.0 + 1e-9
    except (ValueError, ZeroDivisionError):
        count = 0.0
    if not 1 <= count < MOST_LIMITS:
        raise UsageError(
            f"sweep: expected {FORM} with 1 to {MOST_LIMITS:,} limits, got {text!r}; write memory_mib=8000:30000:1000"
        )
    found = list[tuple[str | None, int]]()
    for value in (first + step * np.arange(int(count))).tolist():
        row = best_within(study.frontier, study.asked.answerable(study.library, f"{metric}={value!r}"))
        found += [] if row is None else [(f"{value:.10g}", row)]
    return found


def _keep(out: Path, study: Study, rows: list[int], columns: Mapping[str, Any]) -> None:
    """A table, or Puzzletron's solutions."""
    if out.suffix == ".json":
        write_json(out, recording.solutions(study, rows))
    else:
        write(out, csv_text(columns))


def _refuse_suffix(out: Path) -> None:
    if out.suffix not in (".csv", ".json"):
        raise UsageError(
            f"--out: expected a file ending in .csv, or in .json for Puzzletron's solutions, got {out}; rename it"
        )


def explain(request: ExplainRequest) -> None:
    """One mixture of a folder's frontier, layer by layer: what each block adds and saves, and what a step more buys.

    Raises:
        UsageError: no such row, a form that chooses several, or settings of a study.
        InfeasibleError: no mixture is within the limit.
    """
    path, how, index = request.run or Path(), request.how, request.index
    check_form(how)
    _refuse_settings(path, study_options(request))
    if how.partition(":")[0] in ("frontier", "diverse"):
        raise UsageError(f"--select: expected best, knee or budget:metric=limit, got {how!r}; one mixture is explained")
    study = reopened(path, request.flags.get("budgets", []))
    rows = _rows(study, how) if index is None else [index]
    if not rows:
        raise InfeasibleError(f"--select: no mixture within {how}; move the limit")
    if rows[0] >= len(study.frontier):
        raise UsageError(
            f"--index: expected a row up to {len(study.frontier) - 1}, got {rows[0]}; choose one of frontier.csv"
        )
    layers = screen.layer_table(study, rows[0])
    if request.json:
        totals = {name: float(study.frontier.metric(name)[rows[0]]) for name in study.library.metrics}
        say_json({"id": rows[0], **totals, "layers": layers, "block_configs": recording.block_configs(study, rows[0])})
        return
    screen.show_head(study)
    screen.show_rows(study, [(None, rows[0])], 1)
    say(Styled("\nLayers that are not the parent's", TITLE))
    names = [name for name in layers[0] if name != "parent"]
    changed = [layer for layer in layers if not layer["parent"]]
    table(names, [[_cell(layer[name]) for name in names] for layer in changed], below=("block",))
    say(f"A step more: {study.buys(rows[0])}.")
    say(UNTESTED)


def study_options(request: ExplainRequest) -> list[str]:
    """Options that only an answer of a study can honour."""
    others = {"model": request.model, "architecture": request.architecture, "config": request.config}
    named = [name for name, value in others.items() if value is not None]
    keys = [key for key in request.flags if key != "budgets"]
    return [*keys, *named, *["contexts"] * request.contexts, *request.settings]


def _cell(value: Any) -> str:
    return f"{value:+.5g}" if isinstance(value, float) else str(value)
