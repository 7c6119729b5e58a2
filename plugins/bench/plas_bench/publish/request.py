"""The flags of `publish`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import OUTPUT, Flag, Json, NoPlots, Quiet, Word


@dataclass(frozen=True)
class PublishRequest:
    """A finished comparison."""

    comparison: Annotated[Path, Word("A comparison's folder.", "FOLDER")]
    algos: Annotated[
        str | None, Flag("--algos", "Strategies of your own in the comparison, named again: package.module.")
    ] = None
    out: Annotated[Path | None, Flag("--out", "Folder to create; default runs/publish-<name>.", OUTPUT)] = None
    pictures: Annotated[bool, NoPlots] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
