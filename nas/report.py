"""Write report.html: a run, several side by side, or a reproduction, as one offline page to look at, explore and send."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders, or the folder of a reproduction.", show_default=False),
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
    """Write an offline page of a run, or of several side by side; nothing in the folders is executed."""
    if len(runs) == 1 and (runs[0] / "reproduction.json").is_file():
        from nas.work.reproduce import report as again

        again(runs[0], out, quiet=quiet)
        return
    from nas.work.report import Request
    from nas.work.report import report as work

    work(Request(tuple(runs), out, quiet))


main = o.command(report)
if __name__ == "__main__":
    main()
