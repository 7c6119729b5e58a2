"""Recompute every claim of the paper, with a verdict each: a Markdown page with pictures."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def reproduce(
    out: Annotated[Path, typer.Option("--out", help="Page to write; its pictures go to images/ beside it.")] = Path(
        "reproduction.md"
    ),
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Recompute every claim of the paper and give each a verdict."""
    from nas.files.tables import write
    from nas.reproduction.drawing import draw
    from nas.reproduction.page import as_json, page, reproduction
    from nas.terminal.console import notice, say, say_json

    found = reproduction()
    if json:
        say_json(as_json(found))
        return
    write(out, page(found, draw(out.parent / "images"), "images"))
    for verdict, count in found.verdicts.items():
        say(f"{count:3d}  {verdict}")
    if not quiet:
        notice(f"{out} and its pictures in {out.parent / 'images'} written")


main = o.command(reproduce, "reproduce", "reproduce --out docs/reproduction.md")
if __name__ == "__main__":
    main()
