"""A page that is made from a folder's report.json alone, as `fit` and `calibrate` write theirs and `report` makes them again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from nas.errors import PlasError, UsageError
from nas.files import report_json
from nas.files.tables import refuse_existing, write
from nas.terminal.console import notice

FILE = "report.html"
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what content that was changed ends in
Page = Callable[[str, Mapping[str, Any]], str]


class Delivery(Protocol):
    """Folders of which a page is made, and what its command was asked to do with it."""

    @property
    def runs(self) -> tuple[Path, ...]:
        """The folders."""

    @property
    def out(self) -> Path | None:
        """The file to write."""

    @property
    def scores(self) -> str | None:
        """The scores to show."""

    @property
    def quiet(self) -> bool:
        """Say nothing."""


def delivered(request: Delivery, page: Callable[[], str], *, scored: bool = False) -> Path:
    """Write a page to the given place, else beside the files of the one folder; returns where it is. scored: whether it shows scores.

    Raises:
        UsageError: a file that exists, or scores for a page that has none.
        PlasError: a folder that cannot be written.
    """
    if request.scores is not None and not scored:
        raise UsageError("scores: expected the folder of one run, whose page shows them, got another; drop --scores")
    target = request.out or (request.runs[0] / FILE if len(request.runs) == 1 else Path(FILE))
    if request.out is not None or len(request.runs) > 1:
        refuse_existing("--out", target)
    write(target, page())
    if not request.quiet:
        notice(f"{target}: open it in a browser; it needs no network")
    return target


def page_of(folder: Path, pages: Mapping[str, Page]) -> str:
    """The page of a folder with a report.json.

    Raises:
        UsageError: there is none.
        PlasError: it is damaged.
    """
    content = report_json.read_report(folder)
    try:
        return pages[content["kind"]](name_of(folder), content)
    except DAMAGE as error:
        place = folder / report_json.FILE
        raise PlasError(
            f"{place}: expected what PLAS writes, got changed content ({type(error).__name__}: {error}); make it again"
        ) from None


def write_page(folder: Path, kind: str, page: Page) -> Path:
    """Write the page of a fit or a calibration that has just ended into its folder.

    Raises:
        PlasError: the folder cannot be written.
    """
    write(folder / FILE, page_of(folder, {kind: page}))
    return folder / FILE


def name_of(folder: Path) -> str:
    """A folder's own name, also of `.`."""
    return folder.resolve().name
