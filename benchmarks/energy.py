"""Energy judged on public measurements of published models, each model left out in turn.

    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/energy.py            the table
    PLAS_EXTERNAL_DATA=FOLDER python benchmarks/energy.py --profiles the coefficients that ship, as YAML

FOLDER holds energy/orin_nano_super.csv, which is not part of the project; the rows of 25 W are studies/accuracy/orin_nano_super_25w.csv.
"""

import argparse
import csv
import os
from pathlib import Path

import numpy as np

from nas.files import yaml_source
from plas_board.calibrate.command import calibrated
from plas_board.calibrating.energy import EnergyGroup

BOARD = "jetson_orin_nano_super_8gb"
MODES = {"7w": f"{BOARD}@7w", "15w": f"{BOARD}@15w", "25w": f"{BOARD}@25w", "maxn": BOARD}
HERE = Path(__file__).parents[1] / "studies" / "accuracy"
Q8 = ("smollm2_360m", "qwen3_0.6b")  # whose file sizes and time rows are Q8_0's; the others are Q4_K_M
HEADER = "device,engine,model,precision,batch,prompt_len,gen_len,metric,value,power_w,rail"
SOURCE = "YuvrajSingh-mist/SmolHub-Website, table 15"


def energy_lines(folder: Path, mode: str) -> list[str]:
    """The public table of one power mode as a measured CSV: prefill, step, and the request of 256 tokens with its power.

    Power is the mean over a request. Three models stopped before 256 tokens, so that theirs is of a shorter one.
    """
    own = HERE / f"orin_nano_super_{mode}.csv"
    with (own if own.exists() else folder / "energy" / "orin_nano_super.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] == mode]
    lines = [HEADER]
    for row in rows:
        steps = int(row["max_output_tokens"]) - 1  # the prefill gives the first token
        request = float(row["ttft_ms"]) + steps * float(row["itl_ms"])
        shape = f"{MODES[mode]},llama.cpp CUDA server,{row['model']},{'q8_0' if row['model'] in Q8 else 'q4_k_m'}"
        lines += [
            f"{shape},1,{row['input_tokens']},{steps},{metric},{value},{power},VDD_CPU_GPU_CV"
            for metric, value, power in (
                ("ttft_ms", row["ttft_ms"], ""),
                ("tpot_ms", row["itl_ms"], ""),
                ("total_ms", request, row["power_w"]),
            )
        ]
    return lines


def energy_of(folder: Path, mode: str) -> EnergyGroup:
    """The coefficients of a power mode."""
    (group,) = calibrated(energy_lines(folder, mode), MODES[mode], SOURCE).energies
    return group


def main() -> None:
    """Print the table, or the coefficients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", action="store_true", help="print the coefficients that ship")
    profiles, folder = parser.parse_args().profiles, Path(os.environ["PLAS_EXTERNAL_DATA"])
    found = {mode: energy_of(folder, mode) for mode in MODES}
    if profiles:
        content = [group.energy.model_dump(mode="json", exclude_defaults=True) for group in found.values()]
        print(yaml_source.dump({"energy": content}))
        return
    print("mode   in-sample, held out, its time predicted too: median (worst)")
    for mode, group in found.items():
        cells = [group.errors(joules) for joules in (group.in_sample, group.held_out, group.from_times)]
        said = (f"{100 * cell[0]:.1f} % ({100 * cell[1]:.1f} %)" for cell in cells if cell[2])
        print(f"{mode:<6} {', '.join(said)}, n {len(group.rows)}")
    together = [np.abs(group.from_times / group.measured - 1.0) for group in found.values()]
    print(f"all modes, its time predicted too: median {100 * np.median(np.concatenate(together)):.1f} %")


if __name__ == "__main__":
    main()
