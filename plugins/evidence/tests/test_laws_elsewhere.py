"""Figures and records of laws on models that others trained: written from what `plas evidence --json` says, a row where a law says anything."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.append(str(PACKAGE / "benchmarks"))

import laws_elsewhere  # noqa: E402
from laws_elsewhere import COLUMNS, figures, records  # noqa: E402

CSV = PACKAGE.parents[1] / "studies" / "evidence" / "laws-elsewhere.csv"


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


def test_a_row_stands_where_a_law_says_something() -> None:
    said = {"mute": 0.0, "pairs": 8, "of": 10, "order": 0.75, "regret": 0.01234, "error": 0.0456}
    by = {"a": said, "b": said | {"mute": 1.0}, "deeper": said | {"error": None}, "c": None}
    decided = {"decides": True, "pairs": 10, "fitted_to_it": ["a"], "by": by}
    tables = [
        {"name": "one", "questions": {"size": decided}},
        {"name": "two", "questions": {"size": decided | {"decides": False}}},
    ]
    content = {"record": {"size": dict.fromkeys(by)}, "tables": tables}
    assert figures(content).splitlines() == [
        COLUMNS,
        "size,one,10,a,8,75.0,0.0123,0.046,yes",
        "size,one,10,deeper,8,75.0,0.0123,,no",
    ]


def test_the_shipped_figures_have_these_columns() -> None:
    header, *rows = CSV.read_text(encoding="utf-8").splitlines()
    assert header == COLUMNS
    assert {row.count(",") for row in rows} == {COLUMNS.count(",")}
    assert {row.split(",")[0] for row in rows} >= {"size", "shape", "experts", "active", "tokens", "compute"}


def test_records_are_of_the_tables_that_ship_and_count_pairs_without_a_price_half() -> None:
    said = {"mute": 0.0, "pairs": 5, "of": 10, "order": 0.6}
    decided = {"decides": True, "by": {"a": said, "b": None}}
    tables = [
        {"name": "Routing", "questions": {"size": decided}},
        {
            "name": "Morph",
            "questions": {"size": decided | {"by": {"a": said | {"order": 0.8, "pairs": 10}, "b": None}}},
        },
        {"name": "Chinchilla points", "questions": {"size": decided, "compute": decided}},
    ]
    content = {"record": {"size": {"a": {}, "b": {}}, "compute": {"a": {}, "b": {}}}, "tables": tables}
    assert yaml.safe_load(records(content)) == {
        "size": {
            "a": {"order": 0.7, "tables": 2, "mute": 0, "priced": 0.75},
            "b": {"order": 0.5, "tables": 2, "mute": 2, "priced": 0.0},
        }
    }
