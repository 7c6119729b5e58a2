"""What `plas select`, `explain` and `report` do with the folder of an answer; the work is imported only for such a folder."""

from nas.commands.requests import ExplainRequest, ReportRequest, SelectRequest
from plas_blocks.folder_names import recognises as recognises


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
