"""The work of `report`: the page of a run beside its files, or a page of several runs."""

import os
import webbrowser
from collections.abc import Mapping, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any

from nas.answer.outcome import Outcome
from nas.answer.past_run import RecordedRun, recalled, recorded_run
from nas.commands.answer_folders import work_of
from nas.commands.requests import ReportRequest
from nas.errors import UsageError
from nas.files import own_files, report_json, yaml_source
from nas.files.tables import write
from nas.pages.page import FILE, delivered, name_of
from nas.pages.run_page import run_page
from nas.pages.runs_page import NamedRun, distinct_names, runs_page
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

    def made() -> str:
        for path in request.runs:
            refuse_other_pages(path)
        return _page([recorded_run(path) for path in request.runs])

    return delivered(request, made)


def made_from_report(runs: Sequence[Path]) -> bool:
    """Return True if the one folder that is named holds the report of a fit or a calibration; of several False."""
    return len(runs) == 1 and isfile(runs[0] / report_json.FILE)  # unlike Path.is_file of any name


def refuse_other_pages(path: Path) -> None:
    """Say who writes a comparison's page, and that a page of its own stands beside no other.

    Raises:
        UsageError: the folder is a comparison's, or holds the report of a fit, a calibration or an installed package.
    """
    if isfile(path / COMPARISON):  # unlike Path.is_file of any name
        raise UsageError(
            f"{path}: expected a run folder, got a comparison; its page is written by 'plas compare --resume {in_a_command(path)}'"
        )
    if isfile(path / report_json.FILE) or work_of("report", path) is not None:
        raise UsageError(f"{path}: expected a run folder beside others, got a page of its own; report it alone")


def _page(runs: list[RecordedRun]) -> str:
    if len(runs) > 1:
        names = distinct_names([name_of(run.run.path) for run in runs])
        return runs_page([NamedRun(n, recalled(run), _resolved(run)) for n, run in zip(names, runs, strict=True)])
    (run,) = runs
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
    place = request.out or (request.runs[0] / FILE if len(request.runs) == 1 else Path(FILE))
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
