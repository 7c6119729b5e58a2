"""How far times at datasheet peaks, without a profile, are from the public measurements, by phase and kind of device.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.datasheet

FOLDER holds latency/measured_latency.csv and latency/devices3/m_rk3588.csv, which are not part of the project. A ratio is measured / predicted
under preset device: 1 is right, 2 is a device that takes twice as long as is predicted.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.calibration import calibrations, public_rows
from nas.study.catalogue import load_device, load_law
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrating.group import PHASES, calibrate, groups
from plas_board.calibrating.measurements import read
from search_spaces.arrays import FloatArray

NPU = "rk3588_npu"


def ratios(folder: Path) -> Iterator[tuple[str, str, FloatArray]]:
    """Kind of device, phase and measured / predicted of the rows of a group at batch 1."""
    rows = public_rows(folder)
    lines = (folder / "latency" / "devices3" / "m_rk3588.csv").read_text(encoding="utf-8").splitlines()
    board, law = load_device(NPU), load_law(LAW)
    of_npu = [calibrate(g, board, law, NPU) for g in groups(read(lines, NPU, resolve)[0]).values()]
    for kind, found in (("GPU, SoC", calibrations(rows, lambda m, r: m.batch == 1)), (NPU, of_npu)):
        for group in found:
            device = group.rows[0].device
            for phase in PHASES:
                here = np.array([m.phase == phase for m in group.rows])
                name = "Snapdragon NPU" if device.startswith(("snapdragon", "sa8295p")) else kind
                yield name, phase, (group.terms.ms / group.datasheet)[here]


def main() -> None:
    """Print a line per kind of device and phase."""
    found: dict[tuple[str, str], list[FloatArray]] = {}
    for kind, phase, values in ratios(Path(os.environ["PLAS_EXTERNAL_DATA"])):
        found.setdefault((kind, phase), []).append(values)
    print(
        "measured / predicted at datasheet peaks, batch 1: median (10th to 90th percentile); predicted time too short by, median (p90)"
    )
    for (kind, phase), parts in sorted(found.items()):
        r = np.concatenate(parts)
        if not len(r):
            continue
        low, middle, high = np.quantile(r, (0.1, 0.5, 0.9))
        short = 100 * np.quantile(1.0 - 1.0 / r, (0.5, 0.9))
        print(
            f"{kind:<16}{phase:<9}{len(r):>4} rows  {middle:.2f} ({low:.2f} to {high:.2f})  {short[0]:.0f} % ({short[1]:.0f} %)"
        )


if __name__ == "__main__":
    main()
