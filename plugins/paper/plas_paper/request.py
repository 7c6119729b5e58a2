"""The flags of `theory`."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from nas.terminal.flags import DESIGN, OUTPUT, Config, Flag, Given, Json, Keys, Quiet, Settings

New = partial(Flag, group="New hardware", brief=True, bars="--device")


@dataclass(frozen=True)
class TheoryRequest:
    """Budgets to predict the best architecture for; `flags` are keys of the study."""

    width: Annotated[float | None, Flag("--width", "Fix the width; default: free.")] = None
    application: Annotated[
        str | None, Flag("--application", "Budget of one of the study's applications.", show_default=False, brief=True)
    ] = None
    compute: Annotated[str | None, New("--compute", "Dense FP16 peak, '10 TFLOP/s'.", needs="--bandwidth")] = None
    bandwidth: Annotated[str | None, New("--bandwidth", "Memory bandwidth, '50 GB/s'.", needs="--memory")] = None
    memory: Annotated[str | None, New("--memory", "Memory, '4 GB'.", needs="--compute")] = None
    out: Annotated[
        Path | None, Flag("--out", "Candidate file of the designs worth training, .csv or .jsonl.", brief=True)
    ] = None
    flags: Annotated[Given, Keys((*DESIGN, OUTPUT), "name baselines outside residual_sd")] = field(default_factory=dict)
    config: Annotated[str | None, Config] = None
    settings: Annotated[tuple[str, ...], Settings] = ()
    quiet: Annotated[bool, Quiet] = False
    json: Annotated[bool, Json] = False
