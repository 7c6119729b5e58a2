"""Fit a device's achieved share of its datasheet to measured latencies, and say how wrong it is."""

from nas.terminal.parser import command
from plas_board.calibrate.request import CalibrateRequest


def calibrate(request: CalibrateRequest) -> None:
    """Fit a device's achieved share of its datasheet, and its energy, to measured rows."""
    from plas_board.calibrate.command import execute

    execute(request)


main = command(
    calibrate,
    "calibrate measured/measured.csv --device raspberry_pi_5 --out my_pi.yaml --report calibrated",
    "calibrate issue.md bench.json --device rtx_4080 --model 'qwen2 7B=config.json'",
)
if __name__ == "__main__":
    main()
