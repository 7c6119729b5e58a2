"""Recompute every claim of the paper, with a verdict each: a Markdown page with pictures, and one to explore."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def reproduce(
    out: Annotated[
        Path, typer.Option("--out", help="Page to write; images/, reproduction.json and report.html go beside it.")
    ] = Path("reproduction.md"),
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Recompute every claim of the paper and give each a verdict."""
    from nas.reproduce.command import Request
    from nas.reproduce.command import reproduce as work

    work(Request(out, quiet, json))


main = o.command(reproduce, "reproduce", "reproduce --out claims/reproduction.md")
if __name__ == "__main__":
    main()
