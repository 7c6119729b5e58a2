"""Write a commented study to edit."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def init(
    path: Annotated[Path, typer.Argument(help="File to create.")] = Path("study.yaml"),
    study: Annotated[
        str, typer.Option("--from", help="Shipped study to start from; 'plas list studies' names them.")
    ] = "paper",
    quiet: o.Quiet = False,
) -> None:
    """Write a commented study to edit; an existing file is never overwritten."""
    from nas.errors import UsageError
    from nas.files.faults import unknown
    from nas.files.tables import write
    from nas.terminal.console import notice
    from objectives.plugins import documents

    shipped = documents("configs")
    if study not in shipped:
        raise UsageError(f"--from: {unknown('a shipped study', study, shipped)}")
    if path.exists():
        raise UsageError(f"{path}: expected a new file, got an existing one; name another")
    text = shipped[study].read_text(encoding="utf-8")
    write(path, text)
    if not quiet:
        command = "compare" if "\nstudies:" in text else "run"
        notice(f"{path} written. Edit it, then: python -m nas.{command} --config {path}")


main = o.command(init)
if __name__ == "__main__":
    main()
