"""The GPU table from what the run left, and what the paper's law and the roofline are worth on it."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from nas.search.assembly import assemble
from nas.study.layers import layered
from search_spaces.columns import SHAPE
from studies.gpu_table.lists import DESIGNS, MEASUREMENTS, ORDER, STUDY, TRAININGS, designs, rows_of

TABLE = Path(__file__).resolve().parents[2] / "docs" / "data" / "gpu_table.csv"
BATCHES = {"called_b1": 1, "graphs_b1": 1, "graphs_b16": 16}
PHASES = {
    "prefill_ms": "prefill_ms",
    "decode_ms": "tpot_ms",
}  # as measured: the metric of the study; of decoding a step
CALIBRATIONS = ("datasheet", "typical")
TRAINED = ("parameters", "active_parameters", "params_total", "tokens", "steps", "status", "loss", "bits_per_byte")
HOW = ("learning_rate", "training_flops", "seconds", "engine", "device")


def judge(folder: Path, *, docs: bool = False) -> None:
    """Write the table, and print what it says of law, roofline, fewer tokens and seeds."""
    table = table_of(lines_of(folder / TRAININGS), lines_of(folder / MEASUREMENTS))
    place = TABLE if docs else folder / TABLE.name
    table.to_csv(place, index=False, float_format="%.7g", lineterminator="\n")
    print(f"{place}: {len(table)} rows")
    print(*said(table), sep="\n")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Whole lines of a record; the half of one that a kill left is left out."""
    if not path.is_file():
        sys.exit(f"{path}: expected the record of a run, got none; name the folder that the run wrote")
    content = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in content[: content.rfind("\n") + 1].splitlines()]


def table_of(trainings: list[dict[str, Any]], measurements: list[dict[str, Any]]) -> pd.DataFrame:
    """A row for each design and seed, in the order of the designs; what was not trained has no loss."""
    ended = {(line["id"], int(line["seed"])): line for line in trainings}
    times, order = times_of(measurements), rows_of(ORDER)
    part = {(row["id"], int(row["seed"])): row["part"] for row in order}
    shapes = {row["id"]: row for row in rows_of(DESIGNS)}
    rows = [
        {
            "id": key[0],
            **{name: int(shapes[key[0]][name]) for name in SHAPE},
            "part": part[key],
            "seed": key[1],
            **trained(ended.get(key, {"status": "not trained"})),
            **times.get(key[0], {}),
        }
        for key in sorted(part)
    ]
    return pd.DataFrame(rows)


def trained(line: Mapping[str, Any]) -> dict[str, Any]:
    """What the table keeps of one training; losses on the way by their share of the tokens."""
    between = {
        int(name.removeprefix("loss_after_")): loss for name, loss in line.items() if name.startswith("loss_after_")
    }
    quarter, half = (between.get(round(line.get("tokens", 0) / n)) for n in (4, 2))
    found = {name: line.get(name) for name in TRAINED} | {"loss_at_quarter": quarter, "loss_at_half": half}
    memory = line.get("peak_bytes")
    how = {f"training_{name.removeprefix('training_')}": line.get(name) for name in HOW if name != "learning_rate"}
    return found | {"learning_rate": line.get("learning_rate")} | how | {"training_peak_mb": memory and memory / 1e6}


def times_of(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each design the median over all rounds' repetitions of each mode and phase, ms, and the most memory, MB."""
    samples: dict[tuple[str, str, str], list[float]] = {}
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        result, mode = line.get("result", {}), line["mode"]
        for phase in PHASES:
            samples.setdefault((line["id"], mode, phase), []).extend(result.get(phase, ()))
        if "peak_bytes" in result:
            found.setdefault(line["id"], {})[f"peak_mb_{mode}"] = result["peak_bytes"] / 1e6
        if "engine" in result:
            found.setdefault(line["id"], {})[f"engine_{mode}"] = result["engine"]
    for (name, mode, phase), values in samples.items():
        if values:
            found.setdefault(name, {})[f"{phase}_{mode}"] = float(np.median(values))
    return found


def said(table: pd.DataFrame) -> list[str]:
    """The answers to what was to be judged, as lines of Markdown."""
    first = table[(table["seed"] == 0)].set_index("id")
    good = first[first["status"] == "ok"]
    states = ", ".join(f"{count} {name}" for name, count in table["status"].value_counts().items())
    lines = [f"{len(first)} designs; trainings: {states}", "", "| what | of | Spearman | n |", "|---|---|---|---|"]
    lines += [f"| {what} | {of} | {rank:.3f} | {n} |" for what, of, rank, n in correlations(first, good)]
    return [*lines, "", *noise(table), *spread(first)]


def correlations(first: pd.DataFrame, good: pd.DataFrame) -> Iterator[tuple[str, str, float, int]]:
    """Rank correlations: the law with the loss, fewer tokens with all, the roofline with each time."""
    _, ids = designs()
    law = pd.Series(predicted(1, "datasheet")["loss"], ids)
    yield "the paper's law", "loss", *rank(law, good["loss"])
    yield "−parameters", "loss", *rank(-good["params_total"], good["loss"])
    yield "−active parameters", "loss", *rank(-good["active_parameters"], good["loss"])
    for name in ("loss_at_quarter", "loss_at_half"):
        yield name, "loss", *rank(good[name], good["loss"])
    for mode, batch in BATCHES.items():
        for phase, metric in PHASES.items():
            column = f"{phase}_{mode}"
            for calibration in CALIBRATIONS if column in first else ():
                times = pd.Series(predicted(batch, calibration)[metric], ids)
                yield f"roofline, {calibration}", column, *rank(times, first[column])


def predicted(batch: int, calibration: str) -> Any:
    """What the study predicts of every design: metrics by name."""
    problem = assemble(*layered({"batch": batch, "calibration": calibration}, [], str(STUDY))).problem
    return problem.assess(problem.headed(designs()[0]))


def rank(prediction: pd.Series, truth: pd.Series) -> tuple[float, int]:
    """Spearman's rank correlation over what both have, and of how many."""
    both = pd.concat([prediction, truth], axis=1, join="inner").astype(float).dropna()
    return (float(spearmanr(both.iloc[:, 0], both.iloc[:, 1]).statistic) if len(both) > 2 else math.nan), len(both)


def noise(table: pd.DataFrame) -> list[str]:
    """The deviation of a loss between seeds beside the deviation between designs, nats."""
    losses = table[table["status"] == "ok"].pivot_table(index="id", columns="seed", values="loss")
    pairs = losses.dropna() if losses.shape[1] == 2 else losses.iloc[:0]
    if len(pairs) < 2:
        return ["fewer than two designs with two seeds"]
    seeds = float(np.sqrt(((pairs[0] - pairs[1]) ** 2 / 2).mean()))
    return [
        f"deviation of a loss between seeds {seeds:.4f} nats ({len(pairs)} designs twice), between designs {losses[0].std():.4f}; "
        f"least {losses[0].min():.4f}, most {losses[0].max():.4f}"
    ]


def spread(first: pd.DataFrame) -> list[str]:
    """The range of each time, ms."""
    columns = [f"{phase}_{mode}" for mode in BATCHES for phase in PHASES]
    return [
        f"{name}: {first[name].min():.4g} to {first[name].max():.4g}, {first[name].notna().sum()} designs"
        for name in columns
        if name in first
    ]
