"""The page and the records are written from what `plas evidence --json` says."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "benchmarks"))

import laws_elsewhere  # noqa: E402

from nas.study.law_records import records  # noqa: E402


def test_page_and_records_are_those_of_the_command(
    inside: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "evidence.json").write_text(inside("evidence", "--question", "active", "--json").out)
    (tmp_path / "page.md").write_text(f"before\n{laws_elsewhere.BEGIN}\nold\n{laws_elsewhere.END}\nafter\n")
    monkeypatch.setattr(laws_elsewhere, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(laws_elsewhere, "RECORDS", tmp_path / "records.yaml")
    monkeypatch.setattr(sys, "argv", ["laws_elsewhere.py", str(tmp_path / "evidence.json")])
    laws_elsewhere.main()
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    routing = next(table for table in content["tables"] if table["name"] == "Routing")["questions"]["active"]["by"]
    said = routing["hw_codesign"]
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
    assert f"{100 * said['order']:.1f}, {said['regret']:.4f}, {said['error']:.3f}" in page
    found = yaml.safe_load((tmp_path / "records.yaml").read_text(encoding="utf-8"))
    mean = content["record"]["active"]["sparsity_iso"]["order"]
    assert abs(found["active"]["sparsity_iso"]["order"] - mean) < 1e-4


def test_the_shipped_page_has_the_questions_of_the_shipped_records() -> None:
    page = laws_elsewhere.PAGE.read_text(encoding="utf-8")
    figures = page.partition(laws_elsewhere.BEGIN)[2].partition(laws_elsewhere.END)[0]
    assert [line[3:].lower() for line in figures.splitlines() if line.startswith("## ")] == list(records())
