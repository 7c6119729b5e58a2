"""The folder of a reproduction, as `plas report` meets it: known by its record, its page made again from that alone."""

from os.path import isfile, join
from pathlib import Path

from nas.commands.requests import ReportRequest
from plas_paper.reproduce import FILE


def recognises(folder: Path) -> bool:
    """Return True if a folder holds a reproduction's record."""
    return isfile(join(folder, FILE))  # unlike Path.is_file of any name


def report(request: ReportRequest) -> Path:
    """Write the page of the one folder that was named; where it is.

    Raises:
        UsageError: no record of this version, or a file that exists.
        PlasError: the folder cannot be written.
    """
    from nas.pages.page import delivered
    from plas_paper.reproduce import record
    from plas_paper.reproduce.page import reproduction_page

    (folder,) = request.runs
    return delivered(request, lambda: reproduction_page(record.read(folder)))
