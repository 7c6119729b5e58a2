"""What `publish` writes of a comparison's folder."""

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
from plas_bench.publish import command as publishing
from plas_bench.publish.command import answer, latex_table
from plas_bench.publish.ranks import can_draw, rank_figure
from plas_bench.publish.request import PublishRequest

from nas.compare import command as comparing
from nas.compare.pictures import strokes
from nas.compare.request import CompareRequest
from nas.compare.result import Ranking
from nas.document.document import table_of
from nas.errors import UsageError


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of two studies, with a picture of none."""
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "small.yaml").write_text(loaded("nas/compare/conftest.py").content(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(comparing, "draw", lambda *_: None)
        comparing.execute(CompareRequest(config=str(folder / "small.yaml"), workers=1, out=folder / "made", quiet=True))
    return folder / "made"


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "processors", lambda: 1)


def published(out: Path, comparison: Path, **keys: Any) -> None:
    """The command, without pictures."""
    answer(PublishRequest(comparison, out=out, **{"pictures": False, **keys}))


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
    assert f"Files: {tmp_path / 'out'}/" in capsys.readouterr().out


def test_runs_that_are_not_there_are_named(comparison: Path, tmp_path: Path) -> None:
    shutil.copytree(comparison, tmp_path / "made")
    shutil.rmtree(tmp_path / "made" / "cells" / "loose" / "nsga2" / "s1")
    published(tmp_path / "out", tmp_path / "made", quiet=True)
    assert "Failed: nsga2 s1 in loose: it is not finished" in (tmp_path / "out" / "report.md").read_text()
    shutil.rmtree(tmp_path / "made" / "cells")
    with pytest.raises(UsageError, match="expected a comparison with finished runs, got none"):
        published(tmp_path / "again", tmp_path / "made")


def test_a_folder_that_is_no_comparison_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a comparison, got no comparison.yaml"):
        published(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_report_shows_the_pictures_that_there_are(comparison: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published(tmp_path / "out", comparison, quiet=True, pictures=True)
    shown = set(re.findall(r"\]\((plots/[^)]*)\)", (tmp_path / "out" / "report.md").read_text(encoding="utf-8")))
    assert shown == {f"plots/{path.name}" for path in (tmp_path / "out" / "plots").glob("*.png")}


def test_numbers_and_files_hold_the_same(comparison: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path / "out", comparison, json=True)
    content = json.loads(capsys.readouterr().out)
    assert len(content["results"]) == len(rows(tmp_path / "out" / "tables" / "results.csv"))


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
