"""Open a run's report in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def open_(
    run: Annotated[Path, typer.Argument(help="Folder with a report.html, or the file.")],
    print_: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Open the report.html of a run, a comparison, a study, a fit or a calibration in the browser; without one, print its path."""
    from nas.commands.open import show

    show(run, only_print=print_, quiet=quiet)


main = o.command(open_)
if __name__ == "__main__":
    main()
