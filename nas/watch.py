"""Watch a run or a comparison in progress, from any terminal; read-only."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def watch(
    run: Annotated[Path, typer.Argument(help="Folder of a run or of a comparison; it may not exist yet.")],
    every: Annotated[float, typer.Option("--every", min=0.1, max=86_400, help="Seconds between two looks.")] = 2.0,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", min=0, max=86_400, help="Seconds to wait for a folder that is not there, or empty, yet."
        ),
    ] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and do not wait.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Watch a run or a comparison until it ends: how far, how fast, the best so far. Nothing in it is changed.

    Ctrl-C ends the watching, never the run.
    """
    from nas.commands.watch import Request
    from nas.commands.watch import watch as look

    look(Request(run, every, wait, once, json, quiet))


main = o.command(watch)
if __name__ == "__main__":
    main()
