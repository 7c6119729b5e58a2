"""Stages `train` and `head-to-head` of the miniature headline, and the table of all trainings."""

import sys
from collections.abc import Mapping
from pathlib import Path

from studies.headline.files import BASELINE, LISTS, LONGER, RECIPE, TOKENS, Folder, Row, plas, rows, write_rows

WORKERS, THREADS = 2, 1
OUTPUT_TOKENS = 16  # of the study
SEEDS = "0,1,2"  # of baseline and picks
PARTS: Mapping[str, tuple[int, str]] = {  # tokens and seeds of each list
    "training": (TOKENS, "0"),
    "held_out": (TOKENS, "0"),
    "repeated": (TOKENS, "1,2"),
    "longer": (LONGER, "0"),
}
LAW_ROWS = ("training", "repeated")
HEAD, SETTINGS = "head_to_head", "settings.json"
SHOWN = (
    *("part", "id", "depth", "width", "head_dim", "n_heads", "n_kv_heads", "n_experts", "top_k", "expert_size"),
    *("tokens", "seed", "status", "loss", "bits_per_byte", "learning_rate", "parameters", "active_parameters"),
)
TIMES = ("prefill_ms", "tpot_ms", "total_ms")


def train(folder: Folder, seconds: int) -> None:
    """Every list into one folder, which holds that all share data and recipe; continues where it was stopped."""
    asked = 0
    for part, (tokens, seeds) in PARTS.items():
        asked += len(rows(LISTS / f"{part}.csv")) * len(seeds.split(","))
        trained(folder / "train", LISTS / f"{part}.csv", tokens, seeds, asked, seconds)


def head_to_head(folder: Folder, seconds: int) -> None:
    """Baseline and picks on the same tokens, with several seeds; a folder of their own, since a pick may be of a list."""
    path = folder.made("lists") / f"{HEAD}.csv"
    contenders = [*rows(BASELINE), *rows(folder / "picks.csv")]
    write_rows(path, contenders)
    trained(folder / HEAD, path, TOKENS, SEEDS, len(contenders) * len(SEEDS.split(",")), seconds)
    if (folder / "train" / SETTINGS).read_bytes() != (folder / HEAD / SETTINGS).read_bytes():
        sys.exit(
            f"{folder / HEAD}: expected the data and recipe of {folder / 'train'}, got others; use that Python again"
        )


def trained(out: Path, candidates: Path, tokens: int, seeds: str, asked: int, seconds: int) -> None:
    """One list through `plas train`, in pieces of at most `seconds`, until the folder holds all that was asked for."""
    how = ["--tokens", tokens, "--seeds", seeds, "--recipe", RECIPE, "--last-steps", 1]
    place = ["--workers", WORKERS, "--threads", THREADS, "--time-limit", seconds, "--out", out, "--resume"]
    while len(rows(out / "trainings.csv")) < asked:
        plas("train", candidates, "--data", "stdlib", *how, *place)


def part_of(row: Row) -> str:
    """The list that a training of the folder `train` belongs to."""
    if row["id"].startswith("h-"):
        return "held_out"
    if int(row["tokens"]) == LONGER:
        return "longer"
    return "training" if row["seed"] == "0" else "repeated"


def table(folder: Folder) -> list[Row]:
    """A row per training, in the lists' order, with the measured times of its architecture where there are any."""
    times = measured(folder)
    lists = [{**row, "part": part_of(row)} for row in rows(folder / "train" / "trainings.csv")]
    lists.sort(key=lambda row: (list(PARTS).index(row["part"]), row["id"], int(row["seed"])))
    heads = [{**row, "part": HEAD} for row in rows(folder / HEAD / "trainings.csv")]
    found = [{**row, **times.get(row["id"], {})} for row in (*lists, *heads)]
    return [{name: row.get(name, "") for name in (*SHOWN, *TIMES)} for row in found]


def measured(folder: Folder) -> dict[str, Row]:
    """Measured times by id: of all lists, and of baseline and picks from their last measurement together."""
    return {**measured_times(folder / "measured" / "lists"), **measured_times(folder / "measured" / "final")}


def measured_times(record: Path) -> dict[str, Row]:
    """Medians of one measurement by id, ms: prefill_ms, tpot_ms and their total for the study's workload."""
    found: dict[str, Row] = {}
    for row in rows(record / "measured.csv"):
        found.setdefault(row["model"], {})[row["metric"]] = row["value"]
    for times in found.values():
        times["total_ms"] = repr(float(times["prefill_ms"]) + OUTPUT_TOKENS * float(times["tpot_ms"]))
    return found
