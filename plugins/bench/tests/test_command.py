"""The command: problems listed and shown, a strategy run, logged and scored, traces of several tools side by side, refusals."""

import csv
import json
from pathlib import Path
from typing import Any

import plas_bench
import pytest
from plas_bench.command import answer
from plas_bench.reference import reference_runs, reference_table
from plas_bench.request import BenchRequest, What

from nas.errors import UsageError

NAME = "plas1-paper-loss-tpot-budgets"


def said(capsys: pytest.CaptureFixture[str], what: What, *names: object, **keys: Any) -> str:
    """What the command prints."""
    answer(BenchRequest(what, tuple(map(str, names)), **keys))
    return capsys.readouterr().out


def test_list_names_every_problem(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, What.list)
    assert all(f"{name} " in text for name in plas_bench.names())
    rows = json.loads(said(capsys, What.list, json=True))
    assert [row["problem"] for row in rows] == plas_bench.names()
    assert min(row["designs"] for row in rows) < 100
    assert max(row["designs"] for row in rows) > 10**12
    assert {len(row["objectives"].split(", ")) for row in rows} == {2, 3, 4}


def test_show_says_what_a_problem_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, What.show, NAME)
    assert "prefill_ms <= 150, resident_gb <= 1.5" in text
    shown = json.loads(said(capsys, What.show, "plas1-fine-three", json=True))
    assert shown["designs"] == 1268202600
    assert shown["exact_front"]["members"] == 23777


def test_a_run_is_logged_scored_and_scored_again_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = said(capsys, What.run, NAME, algo="nsga2", seeds=3, evaluations=60, out=tmp_path / "a", quiet=False)
    other = said(capsys, What.run, NAME, algo="random", seeds=3, evaluations=60, out=tmp_path / "b", plots=False)
    assert "gap at 10" in first
    assert f"Files: {tmp_path / 'a'}/" in first
    both = said(capsys, What.score, tmp_path / "a" / "traces", tmp_path / "b" / "traces", out=tmp_path / "c")
    line = next(line for line in first.splitlines() if line.startswith("  nsga2"))
    assert line.split() == next(each for each in both.splitlines() if each.startswith("  nsga2")).split()
    assert next(each for each in other.splitlines() if each.startswith("  random")).split()[-2] in both
    plots = {path.stem for path in (tmp_path / "c" / "plots").glob("*.png")}
    assert plots == {"targets", f"{NAME}-anytime"}
    with (tmp_path / "c" / "scores.csv").open(encoding="utf-8") as file:
        assert {row["strategy"] for row in csv.DictReader(file)} == {"nsga2", "random"}
    assert not (tmp_path / "b" / "plots").exists()
    numbers = json.loads(said(capsys, What.score, tmp_path / "a" / "traces", json=True))
    assert {row["run"] for row in numbers["runs"]} == {"0", "1", "2"}


def test_a_run_folder_scores_where_its_space_is_the_problem_s(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, commands: Any
) -> None:
    ended = commands("run", "--algo", "random", "--evaluations", "40", "--quiet", "--out", "mine", "--no-plots")
    assert ended.returncode == 0, ended.stderr
    text = said(capsys, What.score, tmp_path / "mine", problem="plas1-paper-loss-latency")
    assert next(line for line in text.splitlines() if line.startswith("  random")).split()[1] == "1"
    with pytest.raises(UsageError, match="expected a run in the space of plas1-mixed-rare, got one of paper"):
        said(capsys, What.score, tmp_path / "mine", problem="plas1-mixed-rare")


def test_what_ships_stands_beside_a_score(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = said(capsys, What.run, NAME, seeds=1, evaluations=30, out=tmp_path / "a", plots=False, reference=True)
    assert f"{NAME}: reference results, medians" in text
    found = {each.algorithm: each for each in reference_runs(NAME)}
    assert {"random", "nsga2", "local_search"} <= found.keys()
    assert found["random"].runs >= 3
    assert found["local_search"].median("gap_1000") < found["random"].median("gap_1000")
    assert len(reference_table(NAME).rows) == len(found)


def test_a_strategy_of_ones_own_runs_where_it_is_typed(tmp_path: Path, commands: Any) -> None:
    assert commands("init", "my_search.py").returncode == 0
    ended = commands("bench", "run", NAME, "--algo", "my_search", "--seeds", "1", "--evaluations", "20", "--no-plots")
    assert ended.returncode == 0, ended.stderr
    assert "my_search" in ended.stdout
    assert (tmp_path / "runs" / f"bench-{NAME}-my_search" / "traces" / f"{NAME}--my_search--s0.csv").is_file()


@pytest.mark.parametrize(
    ("what", "names", "keys", "reason"),
    [
        (What.list, ("x",), {}, "bench list: expected nothing after it, got x"),
        (What.show, (), {}, "bench show: expected one problem, got 0"),
        (What.run, ("plas1-paper-rar",), {}, "did you mean plas1-paper-rare"),
        (What.run, ("plas1-paper-rare",), {"algo": "exact"}, "expected a strategy that searches"),
        (What.run, ("plas1-paper-rare",), {"params": ("population",)}, "--param: expected name=value"),
        (What.run, ("plas1-paper-rare",), {"params": ("population=x",)}, "population"),
        (What.score, (), {}, "bench score: expected traces or run folders, got none"),
        (What.score, ("nowhere.csv",), {}, "nowhere.csv: expected a trace"),
    ],
)
def test_what_cannot_be_done_is_refused(
    what: What, names: tuple[str, ...], keys: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=reason):
        said(capsys, what, *names, **keys)


def test_a_trace_says_its_problem_or_is_told_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("depth,width,expert_ffn_ratio,n_kv_heads\n4,768,1,1\n8,768,1,1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine.csv: expected its problem, got none; add --problem"):
        said(capsys, What.score, path)
    assert "mine" in said(capsys, What.score, path, problem=NAME)
    path.with_suffix(".json").write_text(json.dumps({"problem": NAME, "sha256": "0" * 64}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"expected a trace of the .* with the exact front"):
        said(capsys, What.score, path)
    path.with_suffix(".json").write_text(json.dumps({"problem": NAME}), encoding="utf-8")
    with pytest.raises(UsageError, match=f"expected a trace of plas1-paper-rare, got one of {NAME}"):
        said(capsys, What.score, path, problem="plas1-paper-rare")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="expected a folder with traces"):
        said(capsys, What.score, tmp_path / "empty")
