"""Failed evaluations: recorded with their reason, evaluated again when asked, and what the strategy was told replays."""

import csv
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.record.store import FILE
from nas.search.discovery import strategy_module
from objectives.plugins import importable

Inside = Callable[..., Any]
Rows = list[dict[str, str]]
STUDY: dict[str, Any] = {
    "preset": "paper",
    "name": "flaky",
    "space": {
        "name": "some",
        "axes": {
            "depth": [4, 8, 12],
            "width": [768, 1024],
            "n_experts": [1, 8],
            "expert_ffn_ratio": [0.5, 1, 2, 4],
            "n_kv_heads": [1, 2, "n_heads"],
        },
    },
    "budgets": {"total_ms": 90},
    "applications": {"robot": {"decode_ms": 20}},
    "baselines": [],
}
FLAKY = """\
import pathlib
import numpy as np

def fn(a):
    with open("calls", "a") as file:
        file.write("x" * len(a))
    values = a.depth * a.width / 1e4 + 1 / a.n_kv_heads
    broken = pathlib.Path("broken").read_text().split() if pathlib.Path("broken").exists() else []
    for depth in broken:
        values = np.where((a.depth == int(depth)) & (a.expert_size >= a.width), np.nan, values)
    return values
"""
FILES = ("evaluations.csv", "frontier.csv", "picks.csv")
FEW, MANY = 40, 80


@pytest.fixture
def name(tmp_path: Path, user_module: Callable[[str], str]) -> str:
    """A study whose objective fails for the depths that a file names."""
    name = f"{user_module(FLAKY)}:fn"
    (tmp_path / "study.yaml").write_text(dump({**STUDY, "objectives": ["loss", name]}))
    broken(tmp_path, "8 12")
    return name


def few(algos: list[str], default: str) -> list[Any]:
    """All of them in the full run, one in the fast one."""
    return [algo if algo == default else pytest.param(algo, marks=pytest.mark.slow) for algo in algos]


def broken(folder: Path, depths: str) -> None:
    """What fails from now on."""
    (folder / "broken").write_text(depths)


def calls(folder: Path) -> int:
    """Architectures that the objective has seen."""
    path = folder / "calls"
    return path.stat().st_size if path.exists() else 0


def line(algo: str, out: str, evaluations: int | None = FEW) -> list[object]:
    """A run of a strategy in small batches."""
    module = strategy_module(algo)
    small = [f"--param={key}=10" for key in ("population", "batch", "initial") if key in module.Parameters.model_fields]
    count = [f"--evaluations={evaluations}"] if evaluations is not None and module.TRAITS.takes_evaluations else []
    return ["--config", "study.yaml", "--algo", algo, *small, *count, "--out", out, "--quiet"]


def table(folder: Path, file: str = "evaluations.csv") -> Rows:
    """A file of a run, row by row."""
    with (folder / file).open(newline="") as text:
        return list(csv.DictReader(text))


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files that must not differ."""
    return {file: (folder / file).read_bytes() for file in FILES}


def logged(folder: Path) -> list[tuple[Any, ...]]:
    """The log of evaluations as the store holds it."""
    with sqlite3.connect(folder / FILE) as connection:
        rows = connection.execute('SELECT * FROM evaluations ORDER BY "index"').fetchall()
    connection.close()
    return rows


def ran(inside: Inside, *arguments: object) -> None:
    """A run that ends well."""
    answer = inside("run", *arguments)
    assert answer.code == 0, answer


def failed(rows: Rows) -> Rows:
    """The rows that failed."""
    return [row for row in rows if row["state"] == "failed"]


def architecture(row: dict[str, str]) -> tuple[str, ...]:
    """What identifies a row."""
    return tuple(row[key] for key in ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads"))


def test_only_failed_rows_are_evaluated_again_and_the_log_keeps_what_happened(
    name: str, inside: Inside, tmp_path: Path
) -> None:
    ran(inside, *line("nsga2", "run"))
    before, log, count = table(tmp_path / "run"), logged(tmp_path / "run"), calls(tmp_path)
    assert {row["reason"] for row in failed(before)} == {f"{name}: nan"}
    assert 0 < len(failed(before)) < len(before) == count == FEW
    assert all(row["params_total"].isdigit() or row in failed(before) for row in before)
    broken(tmp_path, "12")
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    assert calls(tmp_path) - count == len(failed(before))
    after = table(tmp_path / "run")
    assert logged(tmp_path / "run") == log
    assert {row["depth"] for row in failed(after)} == {"12"}
    for old, new in zip(before, after, strict=True):
        if old["state"] == "ok" or new["state"] == "failed":
            assert new == old
        else:
            assert float(new[name]) == int(new["depth"]) * int(new["width"]) / 1e4 + 1 / int(new["n_kv_heads"])
            assert new["reason"] == ""
            assert float(new["loss"]) > 0
            assert new["violation_total_ms"]


@pytest.mark.parametrize("algo", few(importable("nas.strategies"), "random"))
def test_a_retried_run_is_the_run_of_one_that_never_failed_where_the_strategy_does_not_mind(
    algo: str, name: str, inside: Inside, tmp_path: Path
) -> None:
    """Whatever is asked, the final values are those of the function as it is now."""
    ran(inside, *line(algo, "run"))
    broken(tmp_path, "")
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    found = table(tmp_path / "run")
    assert not failed(found)
    ran(inside, *line("exact", "whole", None))
    truth = {architecture(row): row for row in table(tmp_path / "whole")}
    for row in found:
        expected = truth[architecture(row)]
        assert {k: v for k, v in row.items() if k not in ("index", "batch")} == {
            k: v for k, v in expected.items() if k not in ("index", "batch")
        }
    if algo in ("random", "lhs", "sobol"):
        ran(inside, *line(algo, "well"))
        assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "well")


def test_a_retried_run_resumes_to_the_same_bytes_without_calling_the_function(
    name: str, inside: Inside, tmp_path: Path
) -> None:
    ran(inside, *line("nsga2", "run"))
    broken(tmp_path, "12")
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    expected, count = bytes_of(tmp_path / "run"), calls(tmp_path)
    ran(inside, "--resume", "run", "--quiet")
    assert bytes_of(tmp_path / "run") == expected
    assert calls(tmp_path) == count
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")  # what still fails is tried once more
    assert calls(tmp_path) - count == len(failed(table(tmp_path / "run")))
    assert bytes_of(tmp_path / "run") == expected


def test_select_and_explain_read_the_new_values(name: str, inside: Inside, tmp_path: Path) -> None:
    broken(tmp_path, "4 8 12")
    ran(inside, *line("random", "run"))
    broken(tmp_path, "")
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    ran(inside, *line("random", "well"))
    for command in (["select", "--select", "frontier", "--json"], ["explain", "--index", "7", "--json"]):
        answers = [inside(command[0], folder, *command[1:]) for folder in ("run", "well")]
        assert answers[0].code == answers[1].code == 0, answers
        assert answers[0].out.replace("run", "") == answers[1].out.replace("well", "")


@pytest.mark.parametrize("algo", few(["nsga2", "local_search", "random"], "nsga2"))
def test_an_extended_run_with_failures_is_the_longer_run(algo: str, name: str, inside: Inside, tmp_path: Path) -> None:
    ran(inside, *line(algo, "long", MANY))
    ran(inside, *line(algo, "run"))
    ran(inside, "--resume", "run", "--evaluations", MANY, "--quiet")
    assert failed(table(tmp_path / "run"))
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "long")


@pytest.mark.parametrize(
    "together", [pytest.param(True, marks=pytest.mark.slow), False], ids=["in one go", "one after the other"]
)
@pytest.mark.parametrize("algo", few(["nsga2", "local_search", "random"], "nsga2"))
def test_retrying_before_during_and_after_an_extension_ends_in_the_same_bytes(
    algo: str, together: bool, name: str, inside: Inside, tmp_path: Path
) -> None:
    """The strategy keeps what it was told, so it does not matter when the failures are tried again."""
    broken(tmp_path, "8")
    ran(inside, *line(algo, "after", MANY))
    count = len(failed(table(tmp_path / "after")))
    ran(inside, *line(algo, "run"))
    tried = len(failed(table(tmp_path / "run")))
    assert 0 < tried < count
    if not together:
        ran(inside, "--resume", "run", "--evaluations", MANY, "--quiet")
    broken(tmp_path, "")
    ran(inside, "--resume", "after", "--retry-failed", "--quiet")
    ran(inside, "--resume", "run", "--retry-failed", "--evaluations", MANY, "--quiet")
    assert not failed(table(tmp_path / "after"))
    assert not failed(table(tmp_path / "run"))
    if not together or algo == "random":
        assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "after")


@pytest.mark.slow
def test_workers_retry_with_the_same_bytes(name: str, inside: Inside, tmp_path: Path) -> None:
    for workers in ("none", 2):
        broken(tmp_path, "8 12")
        ran(inside, *line("nsga2", f"of {workers}"), "--set", f"workers={workers}")
        broken(tmp_path, "12")
        ran(inside, "--resume", f"of {workers}", "--retry-failed", "--quiet")
    assert bytes_of(tmp_path / "of none") == bytes_of(tmp_path / "of 2")
    assert failed(table(tmp_path / "of 2"))


def test_nothing_failed_nothing_is_retried(name: str, inside: Inside, tmp_path: Path) -> None:
    broken(tmp_path, "")
    ran(inside, *line("random", "run"))
    expected, count = bytes_of(tmp_path / "run"), calls(tmp_path)
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    assert bytes_of(tmp_path / "run") == expected
    assert calls(tmp_path) == count


def test_a_new_run_has_nothing_to_retry(name: str, inside: Inside, tmp_path: Path) -> None:
    answer = inside("run", *line("random", "run"), "--retry-failed")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "--retry-failed: expected --resume with it, got none" in answer.err
    assert not (tmp_path / "run").exists()


ALTERED = {
    "another value": 'UPDATE retried SET loss = loss * 1.0001 WHERE "index" = (SELECT MIN("index") FROM retried)',
    "another reason": 'UPDATE retried SET reason = "x"',
    "another row": 'UPDATE retried SET "index" = "index" + 1000',
}


@pytest.mark.parametrize("statement", ALTERED.values(), ids=ALTERED)
def test_an_altered_retry_is_refused(statement: str, name: str, inside: Inside, tmp_path: Path) -> None:
    ran(inside, *line("random", "run"))
    broken(tmp_path, "")
    ran(inside, "--resume", "run", "--retry-failed", "--quiet")
    with sqlite3.connect(tmp_path / "run" / FILE) as connection:
        connection.execute(statement)
    connection.close()
    for command in (["run", "--resume", "run"], ["select", "run"]):
        answer = inside(*command)
        assert (answer.code, len(answer.err.splitlines())) == (1, 1), answer
        assert "start a new run" in answer.err
