"""Held-out errors of calibrated times by group of the public measurements, and the rows that fit nothing.

    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.held_out            a line per set of rows
    PLAS_EXTERNAL_DATA=FOLDER python -m benchmarks.held_out --groups   and one per device, mode, engine, format and batch

FOLDER holds latency/measured_latency.csv and latency/llamacpp_cpu_two_cores.csv, which are not part of the project.
Sets are judged by model; rows of a single model at several lengths by length, each length over 1,024 tokens in turn.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.calibration import BENCH, RUNTIME, Chosen, calibrations, dense, device, measurements, public_rows
from nas.study.catalogue import load_law
from objectives.device import Device
from plas_board.calibrate.command import LAW, resolve
from plas_board.calibrating.group import PHASES, calibrate, groups
from plas_board.calibrating.held_out import Group, leave_one_out
from plas_board.calibrating.measurements import Measurement, read
from plas_board.calibrating.terms import terms
from search_spaces.arrays import FloatArray

FITS_NOTHING = 0.25  # held-out error from which a row is named
SHORT = 1024
#: Two virtual cores of a Xeon with AMX, of which no document states a share: efficiencies above 1 only say that these
#: figures are too low. The cache is the whole processor's.
CPU = Device.model_validate(
    {"name": "two CPU cores", "fp16": 0.3, "int8": 0.6, "bandwidth": 20, "memory": 16, "confidence": "estimate"}
    | {"cache": "105 MB", "cache_bandwidth": "40 GB/s"}
)


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows of one group with their times and what was predicted without their model (or length), ms, (n,)."""

    device: str
    rows: Sequence[Measurement]
    predicted: FloatArray

    @property
    def errors(self) -> FloatArray:
        """predicted / measured − 1, NaN where nothing was predicted."""
        return self.predicted / np.array([m.ms for m in self.rows]) - 1.0

    def of(self, phase: str) -> FloatArray:
        """|error| of one phase over the rows that were predicted."""
        found: FloatArray = np.abs(self.errors[[m.phase == phase for m in self.rows]])
        return found[np.isfinite(found)]


@dataclass(frozen=True)
class Set:
    """Rows of the public table, and what (median, p90) of prefill and of decode must stay within."""

    name: str
    chosen: Chosen
    prefill: tuple[float, float]
    decode: tuple[float, float]


SETS = (
    Set("NVIDIA edge, dense, 2,048 tokens, batch 1", lambda m, r: r["source"] == BENCH and m.batch == 1 and dense(m), (0.055, 0.15), (0.02, 0.05)),
    Set("the same with MoE", lambda m, r: r["source"] == BENCH and m.batch == 1, (0.08, 0.15), (0.02, 0.065)),
    Set("Thor, batch 8, dense", lambda m, r: r["source"] == BENCH and m.batch == 8 and dense(m), (0.06, 0.15), (0.015, 0.06)),
    Set("the same with MoE", lambda m, r: r["source"] == BENCH and m.batch == 8, (0.07, 0.14), (0.015, 0.06)),
    Set("51 to 61 tokens, dense, batch 1", lambda m, r: r["source"] == RUNTIME and m.batch == 1 and dense(m), (0.07, 0.18), (0.03, 0.10)),
    Set("the same with MoE", lambda m, r: r["source"] == RUNTIME and m.batch == 1, (0.06, 0.26), (0.035, 0.14)),
    Set("51 to 61 tokens, batch 8", lambda m, r: r["source"] == RUNTIME and m.batch == 8, (0.07, 0.22), (0.1, 0.3)),
    Set("Thor, 0.4.0, 360 tokens, batch 1 and 8", lambda m, r: r["source"] == "trt-edge-llm-0.4.0", (0.04, 0.11), (0.09, 0.21)),
    Set("Orin Nano Super, llama.cpp, 3 power modes", lambda m, r: r["source"] == "smolperf-orin-nano", (0.09, 0.17), (0.08, 0.26)),
    Set("Qualcomm Genie, w4a16", lambda m, r: m.engine == "Genie" and r["precision"] == "w4a16", (0.09, 0.19), (0.08, 0.18)),
)  # fmt: skip
LONG = Set(
    "one model, a long row, by length", lambda m, r: m.engine == "llama-bench May-2024", (0.03, 0.10), (0.03, 0.06)
)
CPU_SETS = (
    Set("llama.cpp, two CPU cores, dense", lambda m, r: dense(m), (0.11, 0.27), (0.07, 0.13)),
    Set("the same with MoE", lambda m, r: True, (0.105, 0.24), (0.11, 0.2)),
)


def by_model(rows: Sequence[dict[str, str]], chosen: Chosen) -> list[Judged]:
    """Every group of the chosen rows, each model predicted from the others."""
    return [Judged(g.rows[0].device, g.rows, g.held_out) for g in calibrations(rows, chosen)]


def by_length(rows: Sequence[dict[str, str]], chosen: Chosen) -> list[Judged]:
    """Every group of the chosen rows, each length over `SHORT` predicted from the others, one long row among them."""
    done = []
    for name, members in measurements(rows, chosen).items():
        board = device(name)
        for group in groups(members).values() if board else ():
            assert board is not None
            table = Group(terms(group, board, load_law(LAW)), np.array([m.model for m in group]), board)
            lengths = np.array([max(m.prompt, m.generated) for m in group])
            long = np.unique(lengths[lengths > SHORT])
            done.append(Judged(name, group, leave_one_out(table, by=lengths, which=long)))
    return done


@cache
def cpu_rows(folder: Path) -> list[Measurement]:
    """llama.cpp on two CPU cores, 12 small models."""
    lines = (folder / "latency" / "llamacpp_cpu_two_cores.csv").read_text(encoding="utf-8").splitlines()
    return read(lines, "two_cpu_cores", resolve)[0]


def on_cpu(folder: Path, chosen: Chosen) -> list[Judged]:
    """The chosen models on two CPU cores, each predicted from the others."""
    rows = [m for m in cpu_rows(folder) if chosen(m, {})]
    done = calibrate(rows, CPU, load_law(LAW), "llama.cpp")
    return [Judged("two_cpu_cores", rows, done.held_out)]


def judged(folder: Path) -> Iterator[tuple[Set, list[Judged]]]:
    """Every set with its groups."""
    rows = public_rows(folder)
    for each in SETS:
        yield each, by_model(rows, each.chosen)
    yield LONG, by_length(rows, LONG.chosen)
    for each in CPU_SETS:
        yield each, on_cpu(folder, each.chosen)


def line(name: str, done: Sequence[Judged]) -> str:
    """`name   prefill 4.4 % (23.8 %), n 18   decode 1.8 % (5.0 %), n 18`."""
    cells = []
    for phase in PHASES:
        e = np.concatenate([each.of(phase) for each in done])
        said = f"{100 * np.median(e):.1f} % ({100 * np.quantile(e, 0.9):.1f} %), n {len(e)}" if len(e) else "-"
        cells.append(f"{phase} {said:<24}")
    return f"{name:<58}{''.join(cells)}".rstrip()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", action="store_true", help="a line per group, and the rows that fit nothing")
    every = parser.parse_args().groups
    print("Held out: median (90th percentile)")
    for each, done in judged(Path(os.environ["PLAS_EXTERNAL_DATA"])):
        print(line(each.name, done))
        for group in done if every else ():
            first = group.rows[0]
            print(line(f"  {group.device}, {first.format.family}, batch {first.batch}", [group]))
            for m, error in zip(group.rows, group.errors, strict=True):
                if abs(error) > FITS_NOTHING:
                    print(f"    fits nothing: {m.place}: {100 * error:+.0f} %")


if __name__ == "__main__":
    main()
