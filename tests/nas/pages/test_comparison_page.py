"""The page of a comparison: the report's sentences and tables, curves of its runs, the same bytes again."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source

Inside = Callable[..., Any]


def written(folder: Path, tiny: dict[str, Any], **keys: Any) -> str:
    """A comparison of three strategies over two studies in a file."""
    content = {
        "name": "small",
        "algos": ["nsga2", "sobol", "random"],
        "params": {"nsga2": {"population": 10}},
        "seeds": 2,
        "evaluations": 30,
    }
    studies = {"loose": {}, "tight": {"budgets": {"total_ms": 40}, "objectives": ["loss", "total_ms", "memory_gb"]}}
    path = folder / "small.yaml"
    path.write_text(
        yaml_source.dump(
            {**content, "study": {"preset": "paper", "space": tiny, "baselines": []}, "studies": studies, **keys}
        )
    )
    return str(path)


@pytest.fixture
def compared(
    tmp_path: Path, tiny: dict[str, Any], inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """The folder of a comparison with its page, without pictures."""
    monkeypatch.setattr("nas.compare.pictures.draw_all", lambda *_: None)

    def run(**keys: Any) -> Path:
        answer = inside("compare", "--config", written(tmp_path, tiny, **keys), "--out", tmp_path / "run", "--quiet")
        assert answer.code in (0, 3), answer.err
        return tmp_path / "run"

    return run


@pytest.mark.slow
def test_the_page_holds_what_the_report_says(compared: Callable[..., Path]) -> None:
    folder = compared()
    page = re.sub(r"<script.*?</script>", "", (folder / "report.html").read_text(), flags=re.DOTALL)
    plain = (
        re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#x27;", "'")
    )
    for line in (folder / "report.md").read_text().splitlines():
        if line.startswith(("|---", "![")) or not line.strip():
            continue
        for part in line.strip("#|- ").split("|"):
            assert re.sub(r"\s+", " ", part).strip(" .") in plain, line


@pytest.mark.slow
def test_a_comparison_resumed_has_the_same_page(compared: Callable[..., Path], inside: Inside) -> None:
    folder = compared()
    first = (folder / "report.html").read_bytes()
    assert inside("compare", "--resume", folder, "--quiet").code == 0
    assert (folder / "report.html").read_bytes() == first


@pytest.mark.slow
def test_the_curves_are_the_runs_quartiles(compared: Callable[..., Path]) -> None:
    page = (compared() / "report.html").read_text()
    found = re.search(r'id="data">(.*?)</script>', page)
    assert found is not None
    data = json.loads(found[1])
    assert [study["name"] for study in data["studies"]] == ["loose", "tight"]
    for study in data["studies"]:
        assert sorted(study["strategies"]) == ["lhs", "nsga2", "random", "sobol"]
        assert len(study["gap"]) == len(study["share"]) == len(study["fronts"]) == 4
        assert len(study["reference"]) == len(study["objectives"]) == len(study["fronts"][0])


@pytest.mark.slow
def test_a_comparison_where_nothing_fits_has_a_page(compared: Callable[..., Path]) -> None:
    folder = compared(studies={"none": {"budgets": {"total_ms": 1e-6}}})
    assert "no run found a feasible design" in (folder / "report.html").read_text()


@pytest.mark.slow
def test_it_is_drawn_study_by_study(compared: Callable[..., Path], page: Any) -> None:
    page.open(compared() / "report.html")
    page.until("return document.getElementById('fronts').dataset.ready === 'yes'")
    for part in ("gap", "share", "fronts"):
        page.run("document.getElementById(arguments[0]).dataset.ready = 'no'", part)
    page.enter("#which", 1)
    for part in ("gap", "share", "fronts"):
        page.until("return document.getElementById(arguments[0]).dataset.ready === 'yes'", part)
    assert page.run("return document.querySelectorAll('#study select').length") == 3
