"""The work of `open`: a folder's report in the default browser."""

import os
import webbrowser
from pathlib import Path

from nas.commands.answer_folders import work_of
from nas.compare.progress import PLAN
from nas.errors import UsageError
from nas.record.store import FILE, begun
from nas.terminal.console import notice, say
from nas.terminal.program import command
from objectives.display_text import in_a_command

REPORT = "report.html"
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def show(path: Path, *, only_print: bool, quiet: bool) -> None:
    """Open the report, or print where it is: with --print, and where there is no browser with a window.

    Raises:
        UsageError: there is none.
    """
    report = report_of(path)
    if only_print or not opened(report):
        say(str(report))
    elif not quiet:
        notice(f"{report} opened in the browser")


def report_of(path: Path) -> Path:
    """The absolute path of a folder's report.

    Raises:
        UsageError: there is none, or it is a link.
    """
    report = path / REPORT if path.is_dir() else path
    if report.is_symlink():
        raise UsageError(f"{report}: expected a report, got a link; open what it points to, if you trust it")
    if report.is_file() and report.suffix == ".html":
        return report.absolute()
    if path.is_dir():
        raise UsageError(f"{path}: expected a {REPORT} in it, got none; {_remedy(path)}")
    raise UsageError(f"{path}: expected a folder with a {REPORT}, got {'another file' if path.exists() else 'nothing'}")


def _remedy(path: Path) -> str:
    """The command that writes the report that a folder lacks."""
    if (path / PLAN).is_file():
        return f"{command('compare')} --resume {in_a_command(path)} makes it"
    if begun(path / FILE) or work_of("report", path) is not None:
        return f"{command('report')} {in_a_command(path)} makes it"
    return "name the folder of a run, a comparison or a study of devices"


def opened(report: Path) -> bool:
    """Whether a browser opened it; a text browser would take the terminal over, so it is not used."""
    if os.name == "posix" and os.uname().sysname != "Darwin" and not any(map(os.environ.get, DISPLAYS)):
        return False
    try:
        return webbrowser.open(report.as_uri())
    except (webbrowser.Error, OSError):
        return False
