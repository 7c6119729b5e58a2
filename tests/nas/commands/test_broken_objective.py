"""A fault in a user's metric is called one: the run stops early, keeps what it has, and goes on when it is mended."""

import importlib
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.record.store import FILE

Inside = Callable[..., Any]
READING = """\
from pathlib import Path

def fn(a):
    scope = {}
    exec(Path("code.py").read_text(), scope)
    return scope["fn"](a)
"""
MENDED = "def fn(a):\n    return a.depth / a.width\n"
BROKEN = {
    "a typo": ("def fn(a):\n    return a.dept\n", "AttributeError: 'Architectures' object has no attribute 'dept'"),
    "never a number": ("def fn(a):\n    return a.depth * float('nan')\n", "nan"),
    "it exits": ("import sys\ndef fn(a):\n    sys.exit('no licence')\n", "SystemExit: no licence"),
}


@pytest.fixture
def name(tiny: dict[str, Any], tmp_path: Path, user_module: Callable[[str], str]) -> str:
    """A study whose metric is read from a file at every call, so that it can be mended between two sessions."""
    found = f"{user_module(READING)}:fn"
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "objectives": ["loss", found], "baselines": []}))
    return found


def recorded(folder: str = "run") -> int:
    """Rows in the store."""
    with closing(sqlite3.connect(Path(folder, FILE))) as store:
        count: int = store.execute("select count(*) from evaluations").fetchone()[0]
    return count


@pytest.mark.parametrize("algo", ["nsga2", "random", "local_search", "exact", "optuna_tpe"])
def test_a_metric_that_always_fails_for_one_reason_stops_the_run(algo: str, name: str, inside: Inside) -> None:
    Path("code.py").write_text(BROKEN["a typo"][0])
    answer = inside("run", "--algo", algo, "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert BROKEN["a typo"][1] in answer.err
    assert "--resume run --retry-failed" in answer.err
    assert "relax a budget" not in answer.out + answer.err
    assert 10 <= recorded() < 40
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert manifest["state"] == "failed"
    assert BROKEN["a typo"][1] in manifest["stop_reason"]


@pytest.mark.parametrize("how", BROKEN)
def test_when_it_is_mended_the_run_goes_on_and_loses_nothing(how: str, name: str, inside: Inside) -> None:
    text, reason = BROKEN[how]
    Path("code.py").write_text(text)
    answer = inside("run", "--algo", "nsga2", "--evaluations", 60, "--config", "study.yaml", "--out", "run")
    assert (answer.code, reason in answer.err) == (2, True), answer
    first = recorded()
    answer = inside("run", "--resume", "run", "--retry-failed")
    assert (answer.code, reason in answer.err) == (2, True), answer
    assert recorded() == first, "nothing new is evaluated while nothing works"
    Path("code.py").write_text(MENDED)
    answer = inside("run", "--resume", "run", "--retry-failed")
    assert answer.code == 0, answer.err
    assert recorded() == 60
    assert ",failed," not in Path("run/evaluations.csv").read_text()


def test_a_run_too_short_to_tell_is_a_failure_all_the_same(name: str, inside: Inside) -> None:
    Path("code.py").write_text(BROKEN["a typo"][0])
    answer = inside("run", "--algo", "random", "--evaluations", 4, "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert "4 failures, 4 times" in answer.err
    assert "relax" not in answer.out + answer.err


def test_failures_for_different_reasons_run_to_the_end_and_are_no_matter_of_budgets(name: str, inside: Inside) -> None:
    Path("code.py").write_text("def fn(a):\n    raise ValueError(str(a.depth) + str(a.width))\n")
    answer = inside("run", "--algo", "random", "--evaluations", 30, "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert "30 failures" in answer.err
    assert "ValueError" in answer.err
    assert recorded() == 30
    assert Path("run/evaluations.csv").read_text().count(",failed,") == 30


def test_one_design_that_works_is_enough_to_go_on(name: str, inside: Inside) -> None:
    Path("code.py").write_text("import numpy as np\ndef fn(a):\n    return np.where(a.depth == 12, 1.0, np.nan)\n")
    answer = inside("run", "--algo", "random", "--evaluations", 60, "--config", "study.yaml", "--out", "run")
    assert answer.code == 0, answer.err
    assert recorded() == 60


@pytest.mark.slow
def test_workers_stop_alike(commands: Any, refused: Callable[..., str], tiny: dict[str, Any]) -> None:
    commands.write("mine.py", BROKEN["a typo"][0])
    commands.write("study.yaml", dump({"space": tiny, "objectives": ["loss", "mine:fn"], "baselines": []}))
    result = commands("run", "--algo", "nsga2", "--config", "study.yaml", "--out", "run", "--workers", 2)
    assert BROKEN["a typo"][1] in refused(result)


def test_a_function_that_changed_since_the_run_began_is_said(
    tiny: dict[str, Any], tmp_path: Path, user_module: Callable[[str], str], inside: Inside
) -> None:
    module = user_module("def fn(a):\n    return a.depth / a.width\n")
    (tmp_path / "study.yaml").write_text(dump({"space": tiny, "objectives": ["loss", f"{module}:fn"], "baselines": []}))
    first = inside("run", "--algo", "random", "--evaluations", 20, "--config", "study.yaml", "--out", "run")
    assert first.code == 0, first
    same = inside("run", "--resume", "run", "--evaluations", 25)
    assert (same.code, "has changed" in same.err) == (0, False), same
    (tmp_path / f"{module}.py").write_text("def fn(a):\n    return 2.0 * a.depth / a.width\n")
    sys.modules.pop(module)
    importlib.invalidate_caches()
    changed = inside("run", "--resume", "run", "--evaluations", 30)
    assert changed.code == 0, changed
    assert f"Warning: {module}.py has changed since the run began" in changed.err
    assert "run --config run evaluates all anew" in changed.err


def test_a_law_that_prices_few_designs_stops_no_search(tiny: dict[str, Any], tmp_path: Path, inside: Inside) -> None:
    """Its silence is no fault of a metric: later designs may be priced, and asking again gives the same."""
    sparse = {**tiny, "axes": {**tiny["axes"], "n_experts": [8, 16], "top_k": [1, 2]}}
    (tmp_path / "study.yaml").write_text(dump({"space": sparse, "law": "chinchilla_epoch", "baselines": []}))
    answer = inside("run", "--algo", "random", "--evaluations", 25, "--config", "study.yaml", "--out", "run")
    assert answer.code == 2
    assert recorded() == 25
    assert "25 times loss: inf, chinchilla_epoch prices designs of n_experts 1 alone; choose another law" in answer.err
    assert "--retry-failed" not in answer.err
    assert "--algo exact, which finds them where they are few" in answer.err
    whole = inside("run", "--algo", "exact", "--config", "study.yaml", "--out", "whole")
    assert whole.code == 2
    assert "choose another law or a space of such designs\n" in whole.err
