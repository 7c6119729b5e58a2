"""The flags of `reproduce`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet


@dataclass(frozen=True)
class ReproduceRequest:
    """The page to write."""

    out: Annotated[Path, Flag("--out", "Page to write.")] = Path("reproduction.md")
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
