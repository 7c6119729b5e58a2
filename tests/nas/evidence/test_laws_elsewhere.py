"""The figures and the records are written from what `plas evidence --json` says."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import laws_elsewhere


def test_figures_and_records_are_those_of_the_command(
    inside: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evidence.json").write_text(inside("evidence", "--question", "active", "--json").out)
    monkeypatch.setattr(laws_elsewhere, "FIGURES", tmp_path / "figures.csv")
    monkeypatch.setattr(laws_elsewhere, "RECORDS", tmp_path / "records.yaml")
    monkeypatch.setattr(sys, "argv", ["laws_elsewhere.py", str(tmp_path / "evidence.json")])
    laws_elsewhere.main()
    content = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    routing = next(table for table in content["tables"] if table["name"] == "Routing")["questions"]["active"]["by"]
    said = routing["hw_codesign"]
    rows = (tmp_path / "figures.csv").read_text(encoding="utf-8").splitlines()
    (row,) = (row for row in rows if row.startswith("active,Routing,") and ",hw_codesign," in row)
    assert f"{100 * said['order']:.1f},{said['regret']:.4f},{said['error']:.3f}" in row
    found = yaml.safe_load((tmp_path / "records.yaml").read_text(encoding="utf-8"))
    mean = content["record"]["active"]["sparsity_iso"]["order"]
    assert abs(found["active"]["sparsity_iso"]["order"] - mean) < 1e-4
