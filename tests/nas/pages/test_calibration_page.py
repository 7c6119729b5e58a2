"""The page of a calibration: whether to use it first, every row, errors of unseen models by what they share; names as text."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugins.board.tests.calibrate.test_calibrate import BOARD, HEADER, ROWS
from tests.nas.pages.told import data, decoded, words

Inside = Callable[..., Any]
HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">"
SHAPE = "depth,width,n_experts,top_k,expert_size,n_kv_heads,head_dim,n_heads"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A board and its measurements: three dense models, one of a stranger's name, one row that is left out."""
    (tmp_path / "board.yaml").write_text(BOARD)
    lines = (HEADER + ROWS + "board,engine A,Qwen3-4B,int4,1,2048,0,prefill_ms,9,C\n").splitlines()
    quoted = HOSTILE.replace('"', '""')
    own = [f'board,engine A,"{quoted}",int4,1,128,0,prefill_ms,12,A,8,1024,8,2,512,4,64,16']
    (tmp_path / "measured.csv").write_text(
        "\n".join([f"{lines[0]},{SHAPE}", *(f"{line},,,,,,,," for line in lines[1:]), *own])
    )
    return tmp_path


@pytest.fixture
def calibrated(folder: Path, inside: Inside) -> Path:
    """The folder of its report."""
    answer = inside(
        "calibrate", "measured.csv", "--device", "board.yaml", "--out", "own.yaml", "--report", "calibrated"
    )
    assert answer.code == 0, answer.err
    assert "calibrated/report.html opens in a browser" in answer.err
    return folder / "calibrated"


def test_it_says_whether_to_use_it_then_how_wrong_it_is_and_why(calibrated: Path) -> None:
    content, said = json.loads((calibrated / "report.json").read_text()), words(calibrated / "report.html")
    (group,) = content["groups"]
    held = group["errors"]["decode"]["held_out"]
    places = [
        said.index(part)
        for part in ("Use it: --device own.yaml --preset device", f"{100 * held['median']:.1f} % ({100 * held['p90']:.1f} %)", "Predicted and measured", "Rows that are missed most", "What was fitted", "Rows left out")
    ]  # fmt: skip
    assert places == sorted(places)
    profile = group["profile"]
    assert f"{profile['bandwidth_efficiency'] * 204.8:.4g} GB/s" in said
    assert "1 row, line 8: quality C is never calibrated on" in said
    assert "4 models (dense and MoE)" in said
    assert "plas calibrate measured.csv --device board.yaml --out again.yaml --report again" in said


def test_every_row_is_in_it_and_errors_by_kind_are_those_of_its_rows(calibrated: Path) -> None:
    held, (group,) = data(calibrated / "report.html"), json.loads((calibrated / "report.json").read_text())["groups"]
    rows = group["measurements"]
    assert held["n"] == len(rows["line"]) == 7
    for name in ("measured_ms", "held_out_ms", "in_sample_ms", "datasheet_ms"):
        np.testing.assert_allclose(decoded(held["rows"][name]), rows[name], rtol=1e-6)
    assert held["texts"]["kind"].count("MoE") == 1
    of_dense = [abs(rows["held_out_ms"][i] / rows["measured_ms"][i] - 1) for i in range(7) if (rows["phase"][i], rows["kind"][i]) == ("prefill", "dense")]  # fmt: skip
    assert group["unseen_by"]["kind"]["dense"]["prefill"]["median"] == pytest.approx(np.median(of_dense))
    assert set(group["unseen_by"]["length"]) == {"prompts of 0 to 128 tokens", "prompts of 513 to 2,048 tokens"}


def test_names_are_shown_and_no_markup(calibrated: Path) -> None:
    assert HOSTILE not in (calibrated / "report.html").read_text()
    assert HOSTILE in words(calibrated / "report.html")


def test_report_makes_it_again_and_damage_is_one_line(calibrated: Path, inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    again = tmp_path / "elsewhere" / "calibrated"
    shutil.copytree(calibrated, again, ignore=shutil.ignore_patterns("report.html"))
    assert inside("report", again, "--quiet").code == 0
    assert (again / "report.html").read_bytes() == (calibrated / "report.html").read_bytes()
    whole = json.loads((again / "report.json").read_text())
    for change in ({"groups": [{}]}, {"peaks": None}, {"left_out": [1]}, {"table": None, "groups": {"a": 1}}):
        (again / "report.json").write_text(json.dumps(whole | change))
        answer = inside("report", again)
        assert answer.code == 1
        assert "got changed content" in answer.err
        assert "Traceback" not in answer.err


def test_one_model_has_a_page_and_a_used_folder_is_refused(folder: Path, inside: Inside) -> None:
    (folder / "one.csv").write_text(HEADER + "".join(ROWS.splitlines(keepends=True)[:2]))
    asked = ("calibrate", "one.csv", "--device", "board.yaml", "--out", "one.yaml", "--report", "one")
    assert inside(*asked).code == 0
    said = words(folder / "one" / "report.html")
    assert "Use it: --device one.yaml" in said
    assert "a prior: these rows hardly determine it" in said
    assert "no held-out" in said
    answer = inside(*asked)
    assert answer.code == 2
    assert "--report: expected a new or empty folder, got one with files in it" in answer.err
