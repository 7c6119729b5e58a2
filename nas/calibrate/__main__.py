"""Fit a device's achieved share of its datasheet to measured latencies, and say how wrong it is."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def calibrate(
    measured: Annotated[
        list[Path],
        typer.Argument(
            help="A CSV of measured latencies and energies, an export whose bench.sh ran, or logs: llama-bench (json, jsonl, csv, "
            "Markdown tables), LocalScore, vLLM bench, AI Hub perf.yaml, aiconfigurator. Each by example: docs/calibrate.md.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    device: Annotated[str, typer.Option("--device", help="Device id, id@mode, or YAML file.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Device file to write.", show_default=False)] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="New folder for report.html and report.json.", metavar="FOLDER", show_default=False
        ),
    ] = None,
    request: Annotated[
        bool, typer.Option("--request-overhead", help="Fit a constant per request too (times from a server).")
    ] = False,
    contended: Annotated[
        bool, typer.Option("--contended", help="Use rows too that were measured while others had the processor.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="NAME=MODEL: what a log calls NAME is MODEL, a published model or a config.json; repeats. MODEL alone: of logs without names.",
            metavar="NAME=MODEL",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", help="Weight format of logs that do not state it.", show_default=False)
    ] = "",
    measured_on: Annotated[
        str,
        typer.Option("--measured-on", help="The device as the log calls it, where it has several.", show_default=False),
    ] = "",
    json: o.Json = False,
) -> None:
    """Fit a device's achieved share of its datasheet, and its energy, to measured rows."""
    from nas.calibrate.command import execute
    from nas.calibrate.request import Request

    execute(
        Request(
            tuple(measured),
            device,
            out,
            report,
            request=request,
            contended=contended,
            json=json,
            models=tuple(model or ()),
            precision=precision,
            measured_on=measured_on,
        )
    )


main = o.command(
    calibrate,
    "calibrate measured/measured.csv --device raspberry_pi_5 --out my_pi.yaml --report calibrated",
    "calibrate issue.md bench.json --device rtx_4080 --model 'qwen2 7B=config.json'",
)
if __name__ == "__main__":
    main()
