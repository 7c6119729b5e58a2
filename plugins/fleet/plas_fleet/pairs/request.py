"""The flags of `pairs`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import DESIGN, OUTPUT, Config, Flag, Given, Json, Keys, Quiet, Settings

DRAFTS = "What drafts"


@dataclass(frozen=True, eq=False, repr=False)
class PairsRequest:
    """A study of targets, the space of drafts, and how many of their tokens are accepted; `flags` are keys of the study."""

    acceptance: Annotated[
        str | None,
        Flag(
            "--acceptance",
            "Probability that a draft's first token is accepted, 0.7, or of measured drafts by their perplexity or name, 20=0.8,40=0.55.",
            DRAFTS,
            "SHARE",
        ),
    ] = None
    draft_space: Annotated[
        str, Flag("--draft-space", "Search space of drafts: name or YAML file; same: the study's.", DRAFTS)
    ] = "drafts"
    drafted: Annotated[str, Flag("--drafted", "Numbers of tokens drafted in a step.", DRAFTS, "N[,N…]")] = "1,2,4,6"
    flags: Annotated[Given, Keys(DESIGN, "laws residual_sd columns")] = field(default_factory=dict)
    config: Annotated[str | None, Config] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    out: Annotated[Path | None, Flag("--out", "Folder to create for the tables; left out: none.", OUTPUT)] = None
    shown: Annotated[int, Flag("--rows", "Rows shown on the screen; files hold all.", OUTPUT, least=1)] = 12
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
