"""What `publish` writes of a comparison's folder, and of other tools' traces beside it or alone."""

import csv
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_tests import loaded
from plas_bench.publish.command import answer
from plas_bench.publish.latex import latex_table
from plas_bench.publish.ranks import can_draw, rank_figure
from plas_bench.publish.request import PublishRequest

from nas import read_run
from nas.compare import command as comparing
from nas.compare.pictures import strokes
from nas.compare.request import CompareRequest
from nas.compare.result import Ranking
from nas.document.document import table_of
from nas.errors import UsageError

TRACE = "run,study,evaluation,loss,total_ms,violation\n"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of two studies, with a picture of none."""
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "small.yaml").write_text(loaded("nas/compare/conftest.py").content(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(comparing, "draw", lambda *_: None)
        comparing.execute(CompareRequest(config=str(folder / "small.yaml"), workers=1, out=folder / "made", quiet=True))
    return folder / "made"


def published(out: Path, comparison: Path | None = None, *traces: Path, **keys: Any) -> None:
    """The command in this process, without pictures."""
    answer(PublishRequest(comparison, traces, workers=1, out=out, **{"pictures": False, **keys}))


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_comparison_stays_as_it_is_and_its_tables_are_the_same(
    comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = files(comparison)
    published(tmp_path / "out", comparison)
    assert files(comparison) == kept
    made = files(tmp_path / "out")
    for name in ("results", "targets", "pairs", "anytime", "runs", "reached", "ranks"):
        assert made[f"tables/{name}.csv"] == kept[f"tables/{name}.csv"], name
    assert b"\\toprule" in made["tables/results.tex"]
    power = {row["study"]: row for row in rows(tmp_path / "out" / "tables" / "power.csv")}
    assert power.keys() == {"loose", "tight"}
    assert f"Files: {tmp_path / 'out'}/" in capsys.readouterr().out


def test_our_own_run_scores_the_same_as_a_foreign_trace(comparison: Path, tmp_path: Path) -> None:
    frame = read_run(comparison / "cells" / "tight" / "nsga2" / "s1").evaluations
    lines = [
        f"7,tight,{i},{row.loss!r},{row.total_ms!r},{0 if row.feasible else 1}"
        for i, row in enumerate(frame.itertuples())
    ]
    (tmp_path / "theirs.csv").write_text(TRACE + "\n".join(lines), encoding="utf-8")
    published(tmp_path / "out", comparison, tmp_path / "theirs.csv", quiet=True)
    scored = {
        row["strategy"]: row
        for row in rows(tmp_path / "out" / "tables" / "runs.csv")
        if row["study"] == "tight"
        and row["evaluations"] == "40"
        and (row["strategy"], row["run"]) in (("nsga2", "s1"), ("theirs", "7"))
    }
    for name in ("gap", "share", "igd_plus", "epsilon", "regret"):
        assert float(scored["theirs"][name]) == pytest.approx(float(scored["nsga2"][name]), rel=1e-12, abs=1e-12), name
    tests = {row["test"] for row in rows(tmp_path / "out" / "tables" / "pairs.csv") if "theirs" in row.values()}
    assert tests == {"Mann-Whitney"}


def test_rows_of_other_studies_are_named_and_left_out(
    comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs.csv").write_text(f"{TRACE}0,tight,0,3.9,30,0\n0,thight,0,3.8,30,0\n", encoding="utf-8")
    published(tmp_path / "out", comparison, tmp_path / "theirs.csv")
    assert "rows of other studies than the comparison's are left out: thight" in capsys.readouterr().err


def test_runs_that_are_not_there_are_named(comparison: Path, tmp_path: Path) -> None:
    shutil.copytree(comparison, tmp_path / "made")
    shutil.rmtree(tmp_path / "made" / "cells" / "loose" / "nsga2" / "s1")
    published(tmp_path / "out", tmp_path / "made", quiet=True)
    assert "Failed: nsga2 s1 in loose: it is not finished" in (tmp_path / "out" / "report.md").read_text()
    shutil.rmtree(tmp_path / "made" / "cells")
    with pytest.raises(UsageError, match="expected a comparison with finished runs, got none"):
        published(tmp_path / "again", tmp_path / "made")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,loss\n0,1\n", "expected a column study with loose or tight"),
        ("run,study,loss\n0,tight,1\n", "expected a column total_ms"),
        ("run,study,loss,total_ms\n0,tight,1,x\n", "theirs.csv:2: total_ms"),
        ("run,study,strategy,loss,total_ms\n0,tight,nsga2,1,2\n", "names of strategies that are not ours"),
    ],
)
def test_traces_that_do_not_fit_are_refused(comparison: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "theirs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        published(tmp_path / "out", comparison, tmp_path / "theirs.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "expected a comparison's folder or --traces, got neither"),
        ({"columns": ("run=seed",)}, "--column: expected --traces with it|got neither"),
        ({"comparison": Path("nothing")}, "expected a comparison, got no comparison.yaml"),
        ({"traces": (Path("nothing.csv"),)}, "No such file"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        answer(PublishRequest(**keys, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_files_of_the_same_objectives_are_compared_and_their_studies_are_not_mixed(tmp_path: Path) -> None:
    for tool, worse in (("ours", 0), ("$theirs|\\x", 3)):
        lines = [
            f"{study},{run},{1 + step + run + worse + 1000 * far},{20 - step + worse}"
            for far, study in enumerate(("near", "far"))
            for run in range(5)
            for step in range(9)
        ]
        (tmp_path / f"{tool}.csv").write_text("\n".join(["study,run,a,b", *lines]), encoding="utf-8")
    published(tmp_path / "out", None, *sorted(tmp_path.glob("*.csv")), quiet=True)
    results = [row for row in rows(tmp_path / "out" / "tables" / "results.csv") if row["measure"] == "gap"]
    assert len({row["study"] for row in results}) == 2
    medians = {(row["study"][-4:], row["strategy"]): float(row["median"]) for row in results}
    assert medians["near", "ours"] == medians["-far", "ours"] < medians["near", "$theirs|\\x"]
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| $theirs\\|\\x |" in page


def test_published_traces_from_file_to_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shift in (("linas", 0), ("nsga2", 3)):
        lines = [f"{i},n{i},{40 + i + shift},{20 + 0.2 * i}" for i in range(25)]
        (tmp_path / f"{name}_theirs.csv").write_text("\n".join(["index,net,Latency,BLEU", *lines]), encoding="utf-8")
    columns = ("evaluation=index", "key=net", "minimize:Latency", "maximize:BLEU")
    traces, point = sorted(tmp_path.glob("*.csv")), ("Latency=70", "BLEU=20")
    published(tmp_path / "out", None, *traces, columns=columns, reference=point)
    shown = " ".join(capsys.readouterr().out.split())
    assert "minimise Latency; maximise BLEU" in shown
    assert "against the union of all runs" in shown
    assert (
        "1 run each cannot show a difference between any two of 2 strategies (1 pair): at least 4 are needed." in shown
    )
    volume = sum((70 - (40 + i)) * 0.2 for i in range(1, 25))
    assert f"linas_theirs {volume:.6g}, nsga2_theirs" in shown
    found = {
        row["strategy"]: float(row["hypervolume"]) for row in rows(tmp_path / "out" / "tables" / "hypervolume.csv")
    }
    assert found["linas_theirs"] == pytest.approx(volume)
    with pytest.raises(UsageError, match="--reference: expected one for each of Latency, BLEU"):
        published(tmp_path / "again", None, *traces, columns=columns, reference=point[:1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["run,a\n0,1\n", "run,a,b\n0,1,2\n", "strategy,run,a,b,c\nx,0,1,2,3\n$y\\</script><b>,0,3,2,1\n"]
)
def test_the_report_shows_the_pictures_that_there_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "tool.csv").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published(tmp_path / "out", None, tmp_path / "tool.csv", quiet=True, pictures=True)
    shown = set(re.findall(r"\]\((plots/[^)]*)\)", (tmp_path / "out" / "report.md").read_text(encoding="utf-8")))
    assert shown == {f"plots/{path.name}" for path in (tmp_path / "out" / "plots").glob("*.png")}
    assert "</script><b>" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_numbers_and_files_hold_the_same(comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path / "out", comparison, json=True)
    content = json.loads(capsys.readouterr().out)
    assert len(content["results"]) == len(rows(tmp_path / "out" / "tables" / "results.csv"))
    assert len(content["power"]) == len(rows(tmp_path / "out" / "tables" / "power.csv"))


def test_ranks_are_drawn_from_ten_studies_on_and_with_the_extra_only() -> None:
    names = ("a", "b", "c")
    gaps = np.random.default_rng(1).random((12, 3)) + np.arange(3)
    few, enough = (Ranking("", names, of, (), 100, frozenset()) for of in (gaps[:9], gaps))
    assert rank_figure(few, strokes(names)) is None
    assert (rank_figure(enough, strokes(names)) is not None) is can_draw()


def test_latex_holds_what_it_would_obey_as_text() -> None:
    table = table_of(("strategy", "gap (%)"), [("a_b & $c$", "<= 5 %")], "50 % of {runs}^2")
    assert latex_table(table).splitlines() == [
        r"\begin{table}",
        r"\caption{50 \% of \{runs\}\^{}2}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"strategy & gap (\%) \\",
        r"\midrule",
        r"a\_b \& \$c\$ & $\le$ 5 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
