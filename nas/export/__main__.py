"""Export candidates to training and inference stacks; check what was exported."""

from nas.export.request import ExportRequest
from nas.terminal.parser import command


def export(request: ExportRequest) -> None:
    """Export candidates to training and inference stacks, or check an export."""
    if request.verify is None:
        from nas.export.command import export as work
    else:
        from nas.export.verification import check as work
    work(request)


main = command(export, "export runs/paper-nsga2-s0 --select diverse:3 --out exported", "export --verify exported")
if __name__ == "__main__":
    main()
