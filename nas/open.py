"""Open a run's report in the browser."""

from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Quiet, Word
from nas.terminal.parser import command


def open_(
    run: Annotated[Path, Word("Folder with a report.html, or the file.", show_default=True)],
    print_: Annotated[bool, Flag("--print", "Print the address, open nothing.")] = False,
    quiet: Annotated[bool, Quiet] = False,
) -> None:
    """Open the report.html of a run, a comparison, a study, a fit or a calibration in the browser; without one, print its path."""
    from nas.commands.open import show

    show(run, only_print=print_, quiet=quiet)


main = command(open_)
if __name__ == "__main__":
    main()
