"""The work of `report` for a fit or a calibration: its page, from its report.json alone."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas.errors import PlasError
from nas.files import report_json
from nas.files.tables import write
from nas.reporting.calibration_page import calibration_page
from nas.reporting.fit_page import fit_page
from nas.work.report import FILE, Request, delivered, name_of

PAGES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {"fit": fit_page, "calibration": calibration_page}
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what content that was changed ends in


def report(request: Request) -> Path:
    """Write the page of the one folder that was named; where it is.

    Raises:
        UsageError: no report of this kind, or a file that exists.
        PlasError: a damaged report, a folder that cannot be written.
    """
    (folder,) = request.runs
    return delivered(request, lambda: told_page(folder))


def told_page(folder: Path) -> str:
    """The page of a fit or a calibration.

    Raises:
        UsageError: there is none.
        PlasError: it is damaged.
    """
    content = report_json.read_report(folder)
    try:
        return PAGES[content["kind"]](name_of(folder), content)
    except DAMAGE as error:
        place = folder / report_json.FILE
        raise PlasError(
            f"{place}: expected what PLAS writes, got changed content ({type(error).__name__}: {error}); make it again"
        ) from None


def write_told(folder: Path) -> Path:
    """The page of a fit or a calibration that has just ended, in its folder.

    Raises:
        PlasError: the folder cannot be written.
    """
    write(folder / FILE, told_page(folder))
    return folder / FILE
