"""Files that others shared: read to the last digit, several at once, faults with their lines."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from plas_board.calibrate.inputs import read_input
from plas_board.calibrate.request import CalibrateRequest

ROW = {
    "model": "design-1",
    "architecture": {"depth": 2, "width": 256, "head_dim": 64, "n_heads": 4, "n_kv_heads": 2, "n_experts": 1, "top_k": 1,
                     "expert_size": 512, "vocabulary": 1000, "tied": True},
    "engine": "torch 2.11.0 cpu", "precision": "fp32", "batch": 1, "prompt_len": 8, "gen_len": 0,
    "metric": "prefill_ms", "value": 4.25, "samples": 6, "contended": True,
}  # fmt: skip
FILE: dict[str, Any] = {
    "kind": "plas_measurements", "version": 1, "tool": "plas-codesign 3.0", "month": "2026-11",
    "device": {"processor": "Example CPU", "cores": 8, "system": "Linux", "power_mode": "MAXN", "governor": "performance"}, "rows": [ROW],
}  # fmt: skip


def written(place: Path, content: Any, name: str = "shared.json") -> Path:
    (place / name).write_text(json.dumps(content, indent=1))
    return place / name


def test_rows_of_several_files(tmp_path: Path) -> None:
    step = ROW | {"metric": "tpot_ms", "gen_len": 16, "contended": False}
    paths = (written(tmp_path, FILE), written(tmp_path, FILE | {"rows": [step]}, "more.json"))
    lines, told = read_input(CalibrateRequest(paths, device="raspberry_pi_5"))
    found = list(csv.DictReader(lines))
    assert [(row["metric"], row["value"], row["contended"], row["depth"]) for row in found] == [
        ("prefill_ms", "4.25", "yes", "2"), ("tpot_ms", "4.25", "no", "2")
    ]  # fmt: skip
    assert told == [
        "Shared measurements of Example CPU, 8 processors, Linux, power mode MAXN, governor performance, 2026-11"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FILE | {"version": 2}, "expected version 1 of shared measurements, got 2"),
        (FILE | {"host": "annas-laptop"}, "host: unknown key"),
        (FILE | {"rows": [ROW | {"value": -1, "batch": 0}]}, "shared.json:"),
        (FILE | {"rows": []}, "rows: expected"),
    ],
)
def test_other_content_is_refused(content: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_input(CalibrateRequest((written(tmp_path, content),), device="raspberry_pi_5"))
    assert said in str(caught.value)


def test_what_only_logs_need_and_other_files_beside_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    (tmp_path / "measured.csv").write_text("metric,value\n")
    with pytest.raises(UsageError, match="--precision: expected a log of another program"):
        read_input(CalibrateRequest((path,), device="raspberry_pi_5", precision="fp16"))
    with pytest.raises(UsageError, match=r"measured\.csv: expected shared measurements beside the others"):
        read_input(CalibrateRequest((path, tmp_path / "measured.csv"), device="raspberry_pi_5"))
