"""`report --open`: a page in the default browser."""

import os
import webbrowser
from pathlib import Path

from nas.commands.requests import ReportRequest
from nas.errors import UsageError
from nas.pages.page import FILE
from nas.terminal.console import notice, say

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
