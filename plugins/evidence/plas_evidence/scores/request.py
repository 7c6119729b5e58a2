"""The flags of `scores`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import Flag, Json, Quiet, Word


@dataclass(frozen=True)
class ScoresRequest:
    """A table of models with bits per byte and scores, and the file of curves to write."""

    table: Annotated[Path, Word("CSV of bits per byte (or a loss) and task scores, a row per model.", "TABLE")]
    out: Annotated[Path | None, Flag("--out", "File of curves to write, .yaml.")] = None
    seed: Annotated[int, Flag("--seed", "Seed of the draws.", least=0)] = 0
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
