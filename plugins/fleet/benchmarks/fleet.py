"""Fleets of twelve cases: seconds, memory, and what one to four models have, over `paper` and over `fine`.

    python benchmarks/fleet.py [paper] [fine]

Four shipped devices in three precisions, each precision with a workload and each device with a limit on total_ms of its own, by
the paper's conventions. docs/fleet.md has the figures.
"""

import resource
import sys
import time
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from plas_fleet.answers import FleetAnswer
from plas_fleet.command import answer_of
from plas_fleet.inputs import asked_for
from plas_fleet.request import FleetRequest

from plas_range.cases import priced_cases

LIMITS = {
    "raspberry_pi_5": 6000,
    "snapdragon_8_elite": 800,
    "jetson_orin_nano_super_8gb": 500,
    "rtx_4090": 60,
}  # total_ms
WORKLOADS = {"fp16": (1024, 16), "int8": (512, 32), "int4": (2048, 64)}
QUESTIONS: dict[str, dict[str, str]] = {"loss": {}, "regret": {"minimise": "regret"}}


def table(folder: Path) -> Path:
    """The twelve cases, units sold falling from the smallest board to the largest."""
    lines = ["case,device,precision,input_tokens,output_tokens,budget,units"]
    for (place, (device, limit)), (precision, (read, written)) in product(enumerate(LIMITS.items()), WORKLOADS.items()):
        lines.append(f"{device} {precision},{device},{precision},{read},{written},total_ms={limit},{2 ** (4 - place)}")
    path = folder / "cases.csv"
    path.write_text("\n".join(lines))
    return path


def measured(space: str, asked: dict[str, str], folder: Path) -> tuple[FleetAnswer, float]:
    """The answer and its seconds."""
    begin = time.perf_counter()
    flags = {"space": space, "preset": "paper"}
    request = FleetRequest(None, {"models": "1..4", **asked}, table=table(folder), flags=flags, quiet=True)
    wanted, question = asked_for(request)
    found = answer_of(priced_cases(wanted), question)
    return found, time.perf_counter() - begin


def main(spaces: list[str]) -> None:
    """A row per space and question."""
    print("| space | minimise | 1 to 4 models | patterns | s |\n|---|---|---|---|---|")
    for space, (name, asked) in product(spaces, QUESTIONS.items()):
        with TemporaryDirectory() as folder:
            found, seconds = measured(space, asked, Path(folder))
        values = ", ".join(f"{fleet.value:.4f}" if fleet.found else "none" for fleet in found.fleets.fleets)
        print(
            f"| {space} | {name} | {values} | {len(found.fleets.designs.known):,} | {seconds:.2f} |",
            flush=True,
        )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:] or ["paper", "fine"])
