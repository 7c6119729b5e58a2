"""The work of `report` for a fit or a calibration: its page, from its report.json alone."""

from pathlib import Path

from nas.calibrate.page import calibration_page
from nas.commands.requests import ReportRequest
from nas.fit.page import fit_page
from nas.pages.page import delivered, page_of

PAGES = {"fit": fit_page, "fit_on_prior": fit_page, "calibration": calibration_page}


def report(request: ReportRequest) -> Path:
    """Write the page of the one folder that was named; where it is.

    Raises:
        UsageError: no report of this kind, or a file that exists.
        PlasError: a damaged report, a folder that cannot be written.
    """
    (folder,) = request.runs
    return delivered(request, lambda: page_of(folder, PAGES))
