"""Fit a device's achieved share of its datasheet to measured latencies, and say how wrong it is."""

from pathlib import Path
from typing import Annotated

import typer

from nas.terminal import options as o


def calibrate(
    measured: Annotated[
        Path,
        typer.Argument(
            help="CSV of measured latencies and energies, or an export whose bench.sh ran.", show_default=False
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
    json: o.Json = False,
) -> None:
    """Fit a device's achieved share of its datasheet, and its energy, to measured rows."""
    from nas.work.calibrate import Request, execute

    execute(Request(measured, device, out, report, request=request, contended=contended, json=json))


main = o.command(
    calibrate, "calibrate measured/measured.csv --device raspberry_pi_5 --out my_pi.yaml --report calibrated"
)
if __name__ == "__main__":
    main()
