"""Stages `measure` and `search` of the miniature headline: this machine's times, a calibrated device, picks that were measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from nas.search.assembly import assemble
from nas.study.layers import layered
from search_spaces.arrays import FloatArray
from search_spaces.columns import SHAPE
from studies.headline.files import BASELINE, LISTS, STUDY, Folder, Row, plas, rows, write_rows
from studies.headline.fitting import architectures_of
from studies.headline.training import measured_times

WORKLOAD = (
    *("--precision", "fp32", "--threads", 1, "--vocabulary", 257),
    *("--input-tokens", 256, "--output-tokens", 16, "--device", "board"),
)
LEAST, MOST, STEP = 0.70, 1.30, 0.05  # of the baseline's predicted time: how far the latency model may be off
QUESTIONS = {  # pick: its law, and whether it may have no more parameters than the baseline
    "equal_latency": ("law.yaml", False),
    "equal_latency_memory": ("law.yaml", True),
    "largest": ("size_law.yaml", False),
}


def measure(folder: Folder) -> None:
    """The machine's rates, the times of every listed architecture, and the device calibrated on those of `training`."""
    listed = [row for part in ("training", "held_out") for row in rows(LISTS / f"{part}.csv")]
    write_rows(folder.made("lists") / "measured.csv", listed)
    board = folder / "board.yaml"
    if not board.exists():
        plas("measure", "--hardware", "--precision", "fp32", "--threads", 1, "--out", board)
    timed(folder, "measured", "lists", 2)
    own = [row for row in rows(folder / "measured" / "lists" / "measured.csv") if row["model"].startswith("t-")]
    write_rows(folder / "calibrate.csv", own)
    if not (folder / "calibrated.yaml").exists():
        told = folder / "calibration.json"
        plas(
            "calibrate",
            folder / "calibrate.csv",
            "--device",
            board,
            "--out",
            folder / "calibrated.yaml",
            "--json",
            output=told,
        )


def timed(folder: Folder, candidates: str, record: str, rounds: int) -> None:
    """A list through `plas measure`, all of it together; continues where it was stopped."""
    out = folder.made("measured") / record
    plas("measure", folder / "lists" / f"{candidates}.csv", *WORKLOAD, "--rounds", rounds, "--out", out)


def predicted_times(folder: Folder, found: Sequence[Row]) -> dict[str, FloatArray]:
    """Times under the calibrated device, ms: prefill_ms, tpot_ms, total_ms, each (n,)."""
    problem = assemble(*layered({"device": str(folder / "calibrated.yaml")}, [], str(STUDY))).problem
    assessed = problem.assess(problem.headed(architectures_of(found)))
    return {name: np.asarray(assessed[name]) for name in ("prefill_ms", "tpot_ms", "total_ms")}


def baseline_of(folder: Folder) -> tuple[float, float]:
    """Predicted total time, ms, and parameters of the baseline."""
    problem = assemble(*layered({"device": str(folder / "calibrated.yaml")}, [], str(STUDY))).problem
    assessed = problem.assess(problem.headed(architectures_of(rows(BASELINE))))
    return float(assessed["total_ms"][0]), float(assessed["params_total"][0])


def search(folder: Folder) -> None:
    """For each question a shortlist, all of them measured together with the baseline, and the picks."""
    total, parameters = baseline_of(folder)
    shortlists = {name: shortlist(folder, name, total, parameters) for name in QUESTIONS}
    together = {shape(row): row for found in shortlists.values() for row in found}
    named = [{"id": f"s-{i:02}", **{name: row[name] for name in SHAPE}} for i, row in enumerate(together.values())]
    write_rows(folder.made("lists") / "shortlist.csv", [*rows(BASELINE), *named])
    timed(folder, "shortlist", "shortlist", 3)
    times = measured_times(folder / "measured" / "shortlist")
    totals = {shape(row): float(times[row["id"]]["total_ms"]) for row in named if row["id"] in times}
    limit = float(times[rows(BASELINE)[0]["id"]]["total_ms"])
    picks = {name: pick(found, totals, limit) for name, found in shortlists.items()}
    write_rows(folder / "picks.csv", merged(picks))


def shortlist(folder: Folder, name: str, total: float, parameters: float) -> list[Row]:
    """The picks of one question at ever larger limits of the predicted time."""
    law, small = QUESTIONS[name]
    out = folder.made("search") / name
    if not out.exists():
        within = ["--budget", f"params_total={parameters:.0f}"] if small else []
        asked = ["--config", STUDY, "--device", folder / "calibrated.yaml", "--law", folder / law, *within]
        plas("run", "--algo", "exact", *asked, "--out", out, "--no-plots", "--quiet")
    sweep = f"total_ms={LEAST * total!r}:{MOST * total!r}:{STEP * total!r}"
    found = out / "shortlist.csv"
    if not found.exists():
        plas("select", out, "--sweep", sweep, "--out", found, "--quiet")
    return rows(found)


def pick(found: Sequence[Row], totals: Mapping[tuple[str, ...], float], limit: float) -> Row | None:
    """Of a shortlist the lowest predicted loss whose measured total time is within the limit, ms; None where none is."""
    fast = [row for row in found if totals.get(shape(row), np.inf) <= limit]
    return min(fast, key=lambda row: float(row["loss"]), default=None)


def merged(picks: Mapping[str, Row | None]) -> list[Row]:
    """A row per architecture with the questions that it answers; its id is the first of them."""
    answers: dict[tuple[str, ...], list[str]] = {}
    for name, row in picks.items():
        if row is not None:
            answers.setdefault(shape(row), []).append(name)
    shapes = [dict(zip(SHAPE, each, strict=True)) for each in answers]
    return [
        {"id": names[0], **each, "questions": " ".join(names)}
        for each, names in zip(shapes, answers.values(), strict=True)
    ]


def final_times(folder: Folder) -> None:
    """Baseline and picks measured together once more."""
    timed(folder, "head_to_head", "final", 5)


def shape(row: Row) -> tuple[str, ...]:
    """What makes two rows the same architecture."""
    return tuple(row[name] for name in SHAPE)
