"""A page that is made from a folder's report.json alone, as `fit` and `calibrate` write theirs and `report` makes them again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas.errors import PlasError
from nas.files import report_json
from nas.files.tables import write

FILE = "report.html"
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what content that was changed ends in
Page = Callable[[str, Mapping[str, Any]], str]


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
