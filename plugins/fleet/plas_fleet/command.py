"""The work of `fleet`: cases solved together, printed and kept in a folder."""

import shutil
import time
from pathlib import Path
from typing import Any

from nas.errors import InfeasibleError
from nas.files import yaml_source
from nas.files.tables import write
from nas.record import folder as run_folder
from nas.record.folder import Manifest
from nas.terminal.console import Stages, Ticker, notice, say
from nas.terminal.tables import show
from plas_fleet.answers import FleetAnswer, answered
from plas_fleet.fleet_document import fleet_document, none_serves
from plas_fleet.inputs import asked_for
from plas_fleet.page import fleet_page
from plas_fleet.question import FleetConfig
from plas_fleet.request import FleetRequest
from plas_fleet.solution import solved
from plas_fleet.tables import write_tables
from plas_range.cases import Cases, priced_cases
from plas_range.command import resolved
from plas_range.device_document import warnings


def answer(request: FleetRequest) -> None:
    """Solve, write, print.

    Raises:
        UsageError: what was asked for cannot be done.
        InfeasibleError: no fleet serves the cases.
        PlasError: the folder cannot be written.
    """
    begin, stage = time.monotonic(), Stages(quiet=request.quiet)
    wanted, asked = asked_for(request)
    cases = priced_cases(wanted)
    if not request.quiet:
        on_cases = warnings(cases.cases, designs=True, letters=False)
        for text in [*(f"Warning: {said}" for said in wanted.notices), *on_cases]:
            notice(text)
    folder = run_folder.create(f"fleet-{cases.base.config.name}", request.out)
    try:
        found = answer_of(cases, asked, quiet=request.quiet)
    except BaseException:
        run_folder.discard(folder)
        raise
    content = resolved(wanted, cases) | {"fleet": asked.mapping()}
    try:
        _keep(folder, request, content, found, stage, begin)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)  # it was empty before
        raise
    stage.close()
    _say(request, found, folder)
    if not found.described:
        raise InfeasibleError(
            f"fleet: {none_serves(found)[0].lower()}{none_serves(found)[1:-1]}; summary.json says what is known"
        )


def answer_of(cases: Cases, asked: FleetConfig, *, quiet: bool = True) -> FleetAnswer:
    """The fleets of cases, in full."""
    ticker = Ticker(None, quiet=quiet)
    found = solved(cases.cases, asked, ticker.settled)
    ticker.close()
    return answered(found)


def _keep(
    folder: Path, request: FleetRequest, content: dict[str, Any], found: FleetAnswer, stage: Stages, begin: float
) -> None:
    """Configuration, tables, page, manifest."""
    manifest = Manifest(folder, {"command": "fleet", "state": "running", "started": run_folder.now()})
    manifest.update(versions=run_folder.versions(), cases=len(found.fleets.cases))
    write(folder / "config.yaml", yaml_source.dump(content))
    stage("writing tables")
    write_tables(folder, found)
    if request.plots:
        stage("writing the page")
        write(folder / "report.html", fleet_page(folder.resolve().name, found, content))
    manifest.update(state="finished", ended=run_folder.now(), seconds=round(time.monotonic() - begin, 3))


def _say(request: FleetRequest, found: FleetAnswer, folder: Path) -> None:
    if request.json or not request.quiet:
        show(fleet_document(found, folder), as_json=request.json)
    if not request.json and not request.quiet:
        page = "report.html, " if request.plots else ""
        say(f"Files: {folder}/ (fleet.csv, models.csv, candidates.csv, {page}config.yaml that repeats it)")
