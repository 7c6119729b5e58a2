"""The work of `report`: the page of a run beside its files."""

import os
import webbrowser
from collections.abc import Mapping
from os.path import isfile
from pathlib import Path
from typing import Any

from nas.answer.outcome import Outcome
from nas.answer.past_run import RecordedRun, recalled, recorded_run
from nas.commands.requests import ReportRequest
from nas.errors import UsageError
from nas.files import own_files, report_json, yaml_source
from nas.files.tables import write
from nas.pages.page import FILE, delivered, name_of
from nas.pages.run_page import run_page
from nas.record.folder import current
from nas.terminal.console import notice, say
from objectives.display_text import in_a_command

COMPARISON = "comparison.yaml"


def report(request: ReportRequest) -> Path:
    """Write the page; where it is.

    Raises:
        UsageError: not a folder that it knows, or a file that exists.
        PlasError: a damaged run, a folder that cannot be written.
    """
    return delivered(request, lambda: _page(request.run))


def made_from_report(folder: Path) -> bool:
    """Return True if the folder holds the report of a fit or a calibration."""
    return isfile(folder / report_json.FILE)  # unlike Path.is_file of any name


def _page(path: Path) -> str:
    if isfile(path / COMPARISON):
        raise UsageError(
            f"{path}: expected a run folder, got a comparison; its page is written by 'plas compare --resume {in_a_command(path)}'"
        )
    run = recorded_run(path)
    return run_page(recalled(run), name_of(run.run.path), _resolved(run), _versions(run.run.path))


def write_report(outcome: Outcome, folder: Path) -> None:
    """The page of a run that has just ended, in its folder.

    Raises:
        PlasError: the folder cannot be written.
    """
    write(folder / FILE, run_page(outcome, name_of(folder), outcome.study.resolved(), _versions(folder)))


def _resolved(run: RecordedRun) -> Mapping[str, Any]:
    """The run's configuration with the limits of its last call."""
    try:
        return current(run.run)
    except UsageError:
        return run.run.resolved


def _versions(folder: Path) -> dict[str, str]:
    """Versions and machine of a run by its manifest; empty where it has none."""
    try:
        content = yaml_source.read(folder / "manifest.json", own=True)[0]
    except UsageError:
        return {}
    found = content.get("versions") if isinstance(content, dict) else None
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def page_of(request: ReportRequest) -> Path | None:
    """The page that is there already where the request would write it; None where it must be written.

    Raises:
        UsageError: a link stands in its place.
    """
    place = request.out or request.run / FILE
    if place.is_symlink():
        raise UsageError(f"{place}: expected a page, got a link; open what it points to, if you trust it")
    return place.absolute() if os.path.isfile(place) else None


def open_page(request: ReportRequest) -> None:
    """Open the page, or print where it is: without a browser with a window."""
    page = page_of(request)
    assert page is not None
    if not opened(page):
        say(str(page))
    elif not request.quiet:
        notice(f"{page} opened in the browser")


def opened(page: Path) -> bool:
    """Whether a browser opened it; a text browser would take the terminal over, so it is not used."""
    if os.name == "posix" and os.uname().sysname != "Darwin" and not any(map(os.environ.get, DISPLAYS)):
        return False
    try:
        return webbrowser.open(page.as_uri())
    except (webbrowser.Error, OSError):
        return False


def draw(outcome: Outcome, folder: Path) -> None:
    """The pictures of a run that has just ended and its page, in its folder."""
    from nas.answer.pictures import draw_all

    with own_files.drawing(folder) as plots:
        draw_all(outcome, plots)
    write_report(outcome, folder)
