"""Predicted before, after three rows and after eight, against what was measured: medians of errors, and how many lie in the ranges."""

import csv
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nas.files import yaml_source
from nas.search.assembly import assemble
from nas.study.layers import layered
from plas_stacks.engine import engines
from search_spaces.architectures import one
from studies.four_engines.cases import FORMATS, HERE, READ, WRITTEN, designs

HEAD_DIM = 64
METRICS = {"prefill": "prefill_ms", "decode": "tpot_ms", "memory": "resident_gb"}
AIMS = {"prefill": 0.25, "decode": 0.15, "memory": 0.12}
ROWS = (0, 3, 8)
Row = dict[str, Any]


def architecture(design: Mapping[str, str]) -> Any:
    """A design with heads of 64, its tables tied."""
    columns = {name: int(value) for name, value in design.items() if name != "id"}
    return one({**columns, "head_dim": HEAD_DIM, "n_heads": columns["width"] // HEAD_DIM, "tied": True})


def predicted(device: Any, engine: str, kind: str, design: Mapping[str, str]) -> Row:
    """Times and memory with the ends of their 80 % ranges, NaN where none is claimed."""
    keys = {"preset": "device", "device": device, "engine": engines()[engine].label, "precision": kind}
    problem = assemble(
        *layered(
            {**keys, "vocabulary": int(design["vocabulary"]), "input_tokens": READ, "output_tokens": WRITTEN}, (), None
        )
    ).problem
    found = problem.assess(architecture(design))
    row: Row = {}
    for name, metric in METRICS.items():
        row[name] = float(found[metric][0])
        for end in ("q10", "q90") if name != "memory" else ():
            try:
                row[f"{name}@{end}"] = float(found[f"{metric}@{end}"][0])
            except ValueError:
                row[f"{name}@{end}"] = float("nan")
    return row


def predictions(device: Path) -> dict[str, Row]:
    """Every case before anything was measured, by its name: typical of processors, at the rates of the device file."""
    content = device_content(device)
    return {
        f"{engine}-{kind}-{design['id']}": predicted(content, engine, kind, design)
        for engine, kinds in FORMATS.items()
        for kind in kinds
        for design in designs()
    }


def device_content(path: Path) -> dict[str, Any]:
    """The device file of `measure --hardware`, of which it is said what it is: times at its rates alone have no range."""
    content, _ = yaml_source.read(path)
    return {name: value for name, value in content.items() if name != "confidence"} | {"chip": "cpu"}


def rows_of(root: Path, engine: str, kind: str) -> Iterator[tuple[str, dict[str, float], list[dict[str, str]]]]:
    """Designs that were measured: quantities, and the rows that `calibrate` reads."""
    for design in designs():
        name = f"{engine}-{kind}-{design['id']}"
        result = root / "results" / f"{name}.json"
        if not result.is_file() or (content := json.loads(result.read_text()))["state"] != "ok":
            continue
        with (root / "cases" / name / "measured" / "measured.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["memory_gb"] = str(content["memory_gb"]) if row["metric"] == "tpot_ms" else ""
        of = {row["metric"]: float(row["value"]) for row in rows}
        yield design["id"], {"prefill": of["prefill_ms"], "decode": of["tpot_ms"], "memory": content["memory_gb"]}, rows


def calibrated(root: Path, device: Path, label: str, rows: list[dict[str, str]]) -> Any:
    """The device file after so many rows."""
    folder = root / "calibrated" / label
    folder.mkdir(parents=True, exist_ok=True)
    table, base, out = (folder / name for name in ("rows.csv", f"{rows[0]['device']}.yaml", "calibrated.yaml"))
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    base.write_text(yaml_source.dump(device_content(device)), encoding="utf-8")
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "nas", "calibrate", str(table), "doubtful=write"]
    command += ["--device", str(base), "--out", str(out)]
    subprocess.run([*command, "--contended", "median"], check=True, capture_output=True)
    return yaml_source.read(out)[0]


def table(root: Path) -> None:
    """Write every case: measured, and as predicted before."""
    before = json.loads((root / "predicted.json").read_text())
    rows = [
        {"design": design, "engine": engine, "format": kind}
        | {name: f"{value:.4g}" for name, value in real.items()}
        | {f"predicted_{name}": f"{value:.4g}" for name, value in before[f"{engine}-{kind}-{design}"].items()}
        for engine, kinds in FORMATS.items()
        for kind in kinds
        for design, real, _ in rows_of(root, engine, kind)
    ]
    with (HERE / "measured.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def judged(root: Path, device: Path) -> str:
    """The tables of the page."""
    before = json.loads((root / "predicted.json").read_text())
    by_id = {design["id"]: design for design in designs()}
    errors: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    inside: dict[tuple[str, int, str], list[bool]] = defaultdict(list)
    for engine, kinds in FORMATS.items():
        for kind in kinds:
            found = list(rows_of(root, engine, kind))
            for count in ROWS if len(found) > 3 else ROWS[:1]:
                if len(found) <= count:
                    continue
                chosen = (
                    {found[i][0] for i in np.linspace(0, len(found) - 1, count).round().astype(int)} if count else set()
                )
                rows = [row for name, _, of in found if name in chosen for row in of]
                content = calibrated(root, device, f"{engine}-{kind}-{count}", rows) if rows else None
                for name, real, _ in found:
                    if name in chosen:
                        continue
                    said = (
                        before[f"{engine}-{kind}-{name}"]
                        if content is None
                        else predicted(content, engine, kind, by_id[name])
                    )
                    for what, value in real.items():
                        for group in (engine, "all"):
                            errors[group, count, what].append(said[what] / value - 1.0)
                            low, high = said.get(f"{what}@q10", np.nan), said.get(f"{what}@q90", np.nan)
                            if np.isfinite(low) and np.isfinite(high):
                                inside[group, count, what].append(low <= value <= high)
    lines = [
        "| engine | rows | quantity | n | median error | median ratio | in the 80 % range |",
        "|---|---|---|---|---|---|---|",
    ]
    for (group, count, what), off in errors.items():
        held = inside[group, count, what]
        share = f"{100 * np.mean(held):.0f} % of {len(held)}" if held else "no range"
        ratio, median = 1.0 + np.median(off), np.median(np.abs(off))
        lines.append(f"| {group} | {count} | {what} | {len(off)} | {100 * median:.1f} % | {ratio:.2f} | {share} |")
    return "\n".join(lines)
