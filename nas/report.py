"""Write report.html: a run, a fit, a calibration, a reproduction, or several runs side by side, as one offline page to look at and send."""

from os.path import isfile
from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run folders, or the folder of a reproduction, or of a fit's or a calibration's --report.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write; report.html in the run's folder, of several runs in this one.",
            show_default=False,
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Write an offline page of a run, a fit, a calibration, a reproduction, or of several runs; nothing in the folders is executed."""
    from nas.blocks.recording import is_answer
    from nas.commands.report import TOLD, Request
    from nas.files.report_json import REPRODUCTION

    if len(runs) == 1 and is_answer(runs[0]):
        from nas.blocks.command import report as of_blocks

        of_blocks(Request(tuple(runs), out, quiet))
        return
    holds = [name for name in TOLD if len(runs) == 1 and isfile(runs[0] / name)]  # unlike Path.is_file of any name
    if REPRODUCTION in holds:
        from nas.reproduce.command import report as work
    elif holds:
        from nas.commands.report_from_json import report as work
    else:
        from nas.commands.report import report as work
    work(Request(tuple(runs), out, quiet))


main = o.command(report)
if __name__ == "__main__":
    main()
