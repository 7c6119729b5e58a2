"""The flags of `calibrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from nas.terminal.flags import Flag, Json, Word


@dataclass(frozen=True)
class CalibrateRequest:
    """Measurements, and the device that they are of."""

    measured: Annotated[
        tuple[Path, ...],
        Word(
            "A CSV of measured latencies and energies, an export whose bench.sh ran, or logs: llama-bench (json, jsonl, csv, "
            "Markdown tables), llama-batched-bench, llama-server, MLX, and what installed "
            "packages read. Each by example: docs/calibrate.md.",
            "FILE...",
        ),
    ]
    device: Annotated[str, Flag("--device", "Device id, id@mode, or YAML file.", show_default=False)]
    out: Annotated[Path | None, Flag("--out", "Device file to write.", show_default=False)] = None
    report: Annotated[
        Path | None,
        Flag("--report", "New folder for report.html and report.json.", metavar="FOLDER", show_default=False),
    ] = None
    request: Annotated[bool, Flag("--request-overhead", "Also fit a constant per request (times from a server).")] = (
        False
    )
    contended: Annotated[
        Literal["median", "minimum"] | None,
        Flag(
            "--contended",
            "Also use rows measured while other programs ran: their median, or the minimum of their repetitions.",
            show_default=False,
        ),
    ] = None
    models: Annotated[
        tuple[str, ...],
        Flag(
            "--model",
            "NAME=MODEL: the model of a log that has this name, a published one or a config.json; repeats. MODEL alone: of logs without names.",
            metavar="NAME=MODEL",
            show_default=False,
        ),
    ] = ()
    precision: Annotated[
        str, Flag("--precision", "Weight format, for logs that do not state it.", show_default=False)
    ] = ""
    measured_on: Annotated[
        str, Flag("--measured-on", "Name of the device in a log that has several.", show_default=False)
    ] = ""
    json: Annotated[bool, Json] = False
