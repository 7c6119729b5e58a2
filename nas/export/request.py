"""The flags of `export`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import DESIGN, Config, Flag, Given, Json, Keys, Quiet, Selected, Settings, Word

HOW, EXPORTED = "How to train", "all but --to --quiet --json"


@dataclass(frozen=True)
class ExportRequest:
    """Candidates and stacks to write them for, or an export to check; `flags` are keys of the study."""

    source: Annotated[Path | None, Word("Run folder or candidate file (.csv, .jsonl).")] = None
    how: Annotated[str | None, Selected] = None
    stacks: Annotated[
        str | None,
        Flag("--to", "Stacks, by comma; 'plas list stacks'. hf is always there.", show_default=False, brief=True),
    ] = None
    out: Annotated[Path | None, Flag("--out", "New folder to write.", show_default=False, brief=True)] = None
    recipe: Annotated[str, Flag("--recipe", "paper, scaled, or a YAML file.", HOW, brief=True)] = "paper"
    weights: Annotated[
        bool, Flag("--weights", "Write random weights, initialised as the recipe says.", HOW, brief=True)
    ] = False
    gguf: Annotated[
        str | None,
        Flag(
            "--gguf",
            "Weight format of llama-bench's files: f16, q8_0, q6_k, q5_k_m, q4_k_m, q4_0 or mxfp4; default the study's if it is one of these, else f16.",
            HOW,
            needs="--to llama-bench",
        ),
    ] = None
    seed: Annotated[int, Flag("--seed", "Seed of the weights.", HOW, least=0, needs="--weights")] = 0
    tokenizer: Annotated[
        str,
        Flag(
            "--tokenizer",
            "bytes, a folder with a tokenizer.json, or a folder of such folders named by size.",
            HOW,
            brief=True,
        ),
    ] = "bytes"
    multiple: Annotated[int, Flag("--expert-multiple", "Round expert sizes to a multiple.", HOW, least=1)] = 1
    verify: Annotated[
        Path | None, Flag("--verify", "Read an export back and compare every field.", brief=True, bars=EXPORTED)
    ] = None
    flags: Annotated[Given, Keys(DESIGN, "only laws default_budget")] = field(default_factory=dict)
    config: Annotated[str | None, Config] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
