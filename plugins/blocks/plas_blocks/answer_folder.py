"""What `plas select`, `explain` and `report` do with the folder of an answer; the work is imported only for such a folder."""

from os.path import isfile, join
from pathlib import Path

from nas.commands.requests import ExplainRequest, ReportRequest, SelectRequest

TABLE, CONFIG = "library.csv", "config.yaml"


def recognises(folder: Path) -> bool:
    """Return True if a folder holds an answer of `blocks`, by the names of its files alone."""
    return all(isfile(join(folder, name)) for name in (CONFIG, TABLE))  # unlike Path.is_file of any name


def select(request: SelectRequest) -> None:
    """Choose mixtures of the folder's frontier."""
    from plas_blocks.command import select as work

    work(request)


def explain(request: ExplainRequest) -> None:
    """Explain one mixture of the folder's frontier."""
    from plas_blocks.command import explain as work

    work(request)


def report(request: ReportRequest) -> None:
    """Write the folder's page again."""
    from plas_blocks.command import report as work

    work(request)
