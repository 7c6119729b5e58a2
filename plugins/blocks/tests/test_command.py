"""The command as it is typed: a library in, the folder out, asked again by select, explain and report."""

import csv
import json
from pathlib import Path

import pytest
from plas_blocks.__main__ import main as blocks
from typed_command import typed

from nas.explain import main as explain
from nas.report import main as report
from nas.select import main as select

LIBRARY = """layer,block,parent,score,memory_mib,runtime_ms,has_attention
0,full,1,0,400,2,1
0,half,0,0.02,250,1.2,1
0,none,0,0.3,100,0.5,0
1,full,1,0,400,2,1
1,half,0,0.01,250,1.2,1
1,none,0,0.05,100,0.5,0
2,full,1,0,400,2,1
2,half,0,0.04,250,1.2,1
2,none,0,0.2,100,0.5,0
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "library.csv").write_text(LIBRARY)
    return Path("library.csv")


def test_a_library_is_answered_and_asked_again(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [str(library), "--pick", "memory_mib=800", "--no-plots", "--out", "answer"]
    assert typed(blocks, monkeypatch, *told) == 0
    said = capsys.readouterr().out
    assert "every optimum of these sums, exactly" in said
    assert "was not tested" in said
    (pick,) = csv.DictReader(open("answer/picks.csv"))  # noqa: SIM115
    assert (float(pick["score"]), float(pick["memory_mib"])) == (0.07, 750.0)
    (told_solution,) = json.loads(Path("answer/solutions.json").read_text())
    assert told_solution["chosen_block_configs"] == [{"block": b} for b in ("half", "none", "full")]
    for name in ("frontier.csv", "layers.csv", "summary.json", "config.yaml"):
        assert (Path("answer") / name).stat().st_size > 0

    assert typed(select, monkeypatch, "answer", "--select", "budget:memory_mib=500", "--json") == 0
    (chosen,) = json.loads(capsys.readouterr().out)
    assert chosen["memory_mib"] <= 500
    assert typed(select, monkeypatch, "answer", "--budget", "has_attention>=3", "--out", "some.csv") == 0
    rows = list(csv.DictReader(open("some.csv")))  # noqa: SIM115
    assert {row[f"layer_{i}"] for row in rows for i in range(3)} == {"full", "half"}
    assert typed(select, monkeypatch, "answer", "--sweep", "memory_mib=300:1200:300") == 0
    assert typed(explain, monkeypatch, "answer", "--select", "budget:memory_mib=800") == 0
    assert "score better by" in capsys.readouterr().out
    assert typed(explain, monkeypatch, "answer", "--device", "raspberry_pi_5") == 2
    assert "expected no device with an answer of plas blocks" in capsys.readouterr().err


@pytest.mark.slow
def test_pictures_and_a_page_that_report_writes_again(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(blocks, monkeypatch, str(library), "--quiet", "--out", "answer") == 0
    for name in ("layers.png", "layers.svg", "frontier.png", "frontier.svg"):
        assert (Path("answer/plots") / name).stat().st_size > 0
    before = Path("answer/report.html").read_bytes()
    assert typed(report, monkeypatch, "answer") == 0
    assert Path("answer/report.html").read_bytes() == before


def test_the_same_bytes_whatever_the_order_of_the_rows(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head, *rows = LIBRARY.splitlines()
    Path("other.csv").write_text("\n".join([head, *reversed(rows)]) + "\n")
    for name, out in ((str(library), "one"), ("other.csv", "two"), ("one", "three")):
        assert typed(blocks, monkeypatch, name, "--out", out, "--no-plots", "--quiet") == 0
    one, two, three = (Path(out, "frontier.csv").read_bytes() for out in ("one", "two", "three"))
    assert one == two == three


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--budget", "memory_mib=100"], 3, "the least that any mixture has is 300"),
        (["--budget", "memory_mib=700", "--budget", "has_attention>=3"], 3, "none is within all at once"),
        (["--budget", "memory=700"], 2, "did you mean memory_mib"),
        (["--budget", "memory_mib=much"], 2, "expected a number"),
        (["--budget", "nonsense"], 2, "expected metric=limit"),
        (["--budget", "memory_mib=1e308"], 2, "expected a number in the library's unit"),
        (["--pick", "runtime_ms=3"], 2, "expected a limit on an objective (score<= or memory_mib<=)"),
        (["--pick", "memory_mib>=800"], 2, "expected a limit on an objective"),
        (["--fix", "2-0=full"], 2, "expected a number such as 7, or 7-9"),
        (["--fix", f"{'1' * 5000}=full"], 2, "expected a number such as 7, or 7-9"),
        (["--objective", "score,size"], 2, "expected a metric"),
        (["--fix", "0=huge"], 2, "layer 0: expected a block"),
        (["--fix", "7=full"], 2, "expected layers up to 2"),
        (["--max-kinds", "0"], 2, "expected at least 1"),
        (["--rest", "memory_mib"], 2, "expected metric=value"),
    ],
)
def test_what_cannot_be_done_is_a_line(
    arguments: list[str],
    code: int,
    said: str,
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed(blocks, monkeypatch, str(library), *arguments, "--no-plots", "--out", "answer") == code
    assert said in capsys.readouterr().err
    assert not Path("answer").exists()


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        (select, ["--out", "x.jsonl"], "expected a file ending in .csv, or in .json"),
        (select, ["--laws", "routed"], "expected no laws"),
        (select, ["--sweep", "memory_mib=1:2:1e-300"], "with 1 to 100,000 limits"),
        (select, ["--sweep", "runtime_ms=1:5:1"], "expected a limit on an objective"),
        (select, ["--select", "budget:runtime_ms=3"], "expected a limit on an objective"),
        (explain, ["--model", "qwen2.5_0.5b"], "expected no model"),
        (explain, ["--index", "99"], "expected a row up to"),
    ],
)
def test_what_an_answer_cannot_be_asked(  # type: ignore[no-untyped-def]
    command,
    arguments: list[str],
    said: str,
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed(blocks, monkeypatch, str(library), "--no-plots", "--quiet", "--out", "answer") == 0
    assert typed(command, monkeypatch, "answer", *arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [blocks, select, explain, report])
def test_a_name_that_no_file_can_have(  # type: ignore[no-untyped-def]
    command, library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(command, monkeypatch, "a" * 5000) == 2
    assert "expected" in capsys.readouterr().err


def test_a_limit_on_the_score_is_met_with_the_least_memory(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [str(library), "--pick", "score=0.07", "--no-plots", "--quiet", "--out", "answer"]
    assert typed(blocks, monkeypatch, *told) == 0
    (pick,) = csv.DictReader(open("answer/picks.csv"))  # noqa: SIM115
    assert (float(pick["score"]), float(pick["memory_mib"])) == (0.07, 750.0)


def test_an_id_within_further_budgets_is_explained_with_them(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(blocks, monkeypatch, str(library), "--no-plots", "--quiet", "--out", "answer") == 0
    within = ["--budget", "memory_mib<=700"]
    assert typed(select, monkeypatch, "answer", *within, "--select", "best") == 0
    said = capsys.readouterr().out
    assert "explain takes one with the same --budget" in said
    assert typed(explain, monkeypatch, "answer", *within, "--index", "0", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["memory_mib"] <= 700
    assert f"{told['score']:.6g}" in said


def test_more_ties_than_a_float_can_count(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    rows = [f"{layer},b{i},{int(i == 0)},0,1\n" for layer in range(400) for i in range(10)]
    library.write_text("layer,block,parent,score,memory_mib\n" + "".join(rows))
    assert typed(blocks, monkeypatch, str(library), "--no-plots", "--quiet", "--out", "answer") == 0
    first, *_ = csv.DictReader(open("answer/picks.csv"))  # noqa: SIM115
    assert first["tied"] == "over 2e+308"


def test_fixed_layers_and_few_kinds(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [str(library), "--fix", "0=parent", "--max-kinds", "2", "--no-plots", "--quiet", "--out", "answer"]
    assert typed(blocks, monkeypatch, *told) == 0
    rows = list(csv.DictReader(open("answer/frontier.csv")))  # noqa: SIM115
    assert {int(row["kinds"]) for row in rows} <= {1, 2}
    assert {row["blocks"].split()[0] for row in rows} == {"0"}
