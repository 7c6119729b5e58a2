"""The flags of `devices`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import DESIGN, OUTPUT, Config, Flag, Given, Json, Keys, Quiet, Settings

CASES, MODELS = "Which cases", "Published models"
OF_CASES = "--as-fast-as --only --space --tokens columns outside"  # of no meaning for published models
OWN = {  # keys of a study of several devices
    "devices": Flag(
        "--devices",
        "Ids, id@mode, id@all (every power mode), YAML files, or all; separated by commas.",
        CASES,
        brief=True,
    ),
    "precisions": Flag("--precisions", "fp16,int8,int4,nvfp4,fp32 or int4_kv8; default fp16.", CASES, brief=True),
    "workloads": Flag(
        "--workloads",
        "INPUT/OUTPUT or BATCH/INPUT/OUTPUT, tokens or bytes of text: 1024/16,8/1024/16,10kB/500B.",
        CASES,
        brief=True,
    ),
    "as_fast_as": Flag(
        "--as-fast-as",
        "Limit total_ms to that of this published model on each device, or none; default qwen2.5_0.5b if a case has no limit.",
        CASES,
    ),
    "models": Flag("--models", "Published models, or all; default all.", MODELS),
}
Applications = Annotated[
    str | None,
    Flag(
        "--applications",
        "Applications whose limits apply: 'smart home,embodied AI', or all (the study's, else the paper's four).",
        CASES,
        brief=True,
    ),
]


@dataclass(frozen=True)
class DevicesRequest:
    """Cases to solve and models to rank: `own` are keys of a study of several devices, `flags` those of the study itself."""

    own: Annotated[Given, Keys(own=OWN)] = field(default_factory=dict)
    applications: Applications = None
    table: Annotated[
        Path | None,
        Flag(
            "--table",
            "CSV, a row per case: case, device, precision, batch, input_tokens, output_tokens, application, budget, …",
            CASES,
        ),
    ] = None
    models_only: Annotated[
        bool,
        Flag(
            "--models-only", "Rank published models alone: speed, memory, what fits.", MODELS, brief=True, bars=OF_CASES
        ),
    ] = False
    flags: Annotated[Given, Keys((*DESIGN, OUTPUT), "device laws residual_sd baselines")] = field(default_factory=dict)
    config: Annotated[str | None, Config] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    out: Annotated[
        Path | None, Flag("--out", "New folder; default runs/devices-NAME, never overwritten.", brief=True)
    ] = None
    plots: Annotated[bool, Flag("--no-plots", "Leave report.html out.")] = True
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
