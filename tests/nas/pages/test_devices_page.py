"""The page of a device study: its picks, transfers and models as the tables hold them, frontiers as data, hostile names as text."""

import base64
import csv
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Inside = Callable[..., Any]
THREE = ("--devices", "jetson_agx_orin_64gb,raspberry_pi_5,rtx_4090")
ODD = "$x</script><b>"


@pytest.fixture
def made(tmp_path: Path, inside: Inside) -> Callable[..., Path]:
    """The folder of a device study with its page, without pictures."""

    def run(*flags: str) -> Path:
        answer = inside("devices", *flags, "--quiet", "--out", tmp_path / "study")
        assert answer.code in (0, 3), answer.err
        return tmp_path / "study"

    return run


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def words(folder: Path) -> str:
    """The page's text without markup and scripts."""
    page = re.sub(r"<(script|style).*?</\1>", "", (folder / "report.html").read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


def data(folder: Path) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', (folder / "report.html").read_text())
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


@pytest.mark.slow
def test_every_case_its_pick_and_every_model_are_on_it(made: Callable[..., Path]) -> None:
    folder = made(*THREE)
    said = words(folder)
    for pick in rows(folder, "picks.csv"):
        assert f"{float(pick['loss']):.4f}" in said
    for case in rows(folder, "cases.csv"):
        assert case["device_name"] in said
    for model in rows(folder, "models.csv"):
        assert model["model_name"] in said
    assert "plas devices --config study" in said


@pytest.mark.slow
def test_a_cell_is_hatched_where_a_limit_is_exceeded_and_darkest_where_most_is_lost(made: Callable[..., Path]) -> None:
    folder = made(*THREE)
    page = (folder / "report.html").read_text()
    cells = re.findall(r'<td class="(tone\d|over)">([^<]*)</td>', page)
    assert cells
    for tone, content in cells:
        assert (tone == "over") == content.startswith("+")
        assert tone == "tone0" if content == "=" else True
    lost = {float(content): int(tone[4]) for tone, content in cells if tone != "over" and content != "="}
    assert [lost[value] for value in sorted(lost)] == sorted(lost.values())
    assert max(lost.values()) == 5


@pytest.mark.slow
def test_the_frontiers_are_the_studys(made: Callable[..., Path]) -> None:
    folder = made(*THREE)
    found = {case["name"]: case for case in data(folder)["cases"]}
    for label in {row["case"] for row in rows(folder, "frontiers.csv")}:
        members = [row for row in rows(folder, "frontiers.csv") if row["case"] == label]
        x = np.frombuffer(base64.b64decode(found[label]["x"]["base64"]), dtype="<f4")
        assert found[label]["n"] == len(members)
        np.testing.assert_allclose(x, sorted(float(row["total_ms"]) for row in members), rtol=1e-6)


@pytest.mark.slow
def test_nothing_fits_models_alone_and_odd_names_have_a_page(
    made: Callable[..., Path], inside: Inside, tmp_path: Path
) -> None:
    folder = made(*THREE, "--budget", "total_ms=0.001")
    assert "none fits" in words(folder)
    alone = tmp_path / "alone"
    assert inside("devices", "--models-only", *THREE, "--quiet", "--out", alone).code == 0
    assert "Published models" in words(alone)
    assert "cases" not in data(alone)
    (tmp_path / "odd.yaml").write_text(
        f"name: '{ODD}'\nfp16: 6 TFLOP/s\nint8: 12 TOP/s\nbandwidth: 51.2 GB/s\nmemory: 8 GB\nconfidence: measured\nsource: us\n"
    )
    odd = tmp_path / "odd"
    assert inside("devices", "--devices", str(tmp_path / "odd.yaml"), "--quiet", "--out", odd).code == 0
    assert ODD not in (odd / "report.html").read_text()
    assert ODD in words(odd)


@pytest.mark.slow
def test_the_same_study_has_the_same_page_and_report_says_who_writes_it(
    made: Callable[..., Path], inside: Inside, tmp_path: Path
) -> None:
    folder = made(*THREE)
    (tmp_path / "again").mkdir()
    again = tmp_path / "again" / "study"
    assert inside("devices", "--config", folder, "--quiet", "--out", again).code == 0
    assert (again / "report.html").read_bytes() == (folder / "report.html").read_bytes()
    answer = inside("report", folder)
    assert answer.code == 2
    assert "a study of devices, which 'plas devices --config' repeats" in answer.err
    assert f"did you mean {folder}?" not in answer.err


@pytest.mark.slow
def test_its_chart_is_drawn_and_the_console_stays_silent(made: Callable[..., Path], page: Any) -> None:
    page.open(made(*THREE) / "report.html")
    page.until("return document.getElementById('frontiers').dataset.ready === 'yes'")
    assert page.complaints() == []
