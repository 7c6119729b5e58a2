"""The page of a fit: made of report.json alone, verdict first, every row and coefficient; names as text, damage as one line."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.files import yaml_source
from plas_fit.command import execute
from plas_fit.meaning import repeated
from plas_fit.request import FitRequest
from tests.nas.pages.told import data, decoded, words

Inside = Callable[..., Any]
HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><b>&amp;"
ROWS = 24


def table(path: Path) -> Path:
    """Models of a law of parameters and tokens, one of them trained twice and one with a stranger's name."""
    generator = np.random.default_rng(0)
    n, d = 10 ** generator.uniform(7, 9, ROWS), 10 ** generator.uniform(9, 10.5, ROWS)
    n[1], d[1] = n[0], d[0]
    loss = 1.7 + 480 / n**0.35 + 2000 / d**0.37 + generator.normal(0, 0.01, ROWS)
    names = [f"model {i}" for i in range(ROWS - 1)] + [f'"{HOSTILE.replace(chr(34), chr(34) * 2)}"']
    lines = [
        f"{name},{a!r},{b!r},{c!r}" for name, a, b, c in zip(names, n.tolist(), d.tolist(), loss.tolist(), strict=True)
    ]
    path.write_text("\n".join(["name,parameters,tokens,loss", *lines]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a quick fit, not to be changed."""
    folder = tmp_path_factory.mktemp("fit")
    axes = {
        "depth": [4, 8, 16],
        "width": [768, 1536],
        "n_experts": [1, 8],
        "top_k": [1],
        "expert_ffn_ratio": [2],
        "n_kv_heads": [2],
    }
    (folder / "space.yaml").write_text(yaml_source.dump({"name": "small", "axes": axes}), encoding="utf-8")
    request = FitRequest(
        (table(folder / "runs.csv"),), "chinchilla", report=folder / "fitted", starts=1, bootstraps=4, quiet=True,
        space=str(folder / "space.yaml"), tokens=1e10, next=5,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("plas_fit.command.RIVAL_STARTS", 1)
        execute(request)
    return folder / "fitted"


def copied(fitted: Path, folder: Path, **changes: Any) -> Path:
    """A folder of the same name that holds the report alone, some of it changed."""
    (folder / "fitted").mkdir()
    content = json.loads((fitted / "report.json").read_text(encoding="utf-8"))
    (folder / "fitted" / "report.json").write_text(json.dumps(content | changes), encoding="utf-8")
    return folder / "fitted"


def test_it_says_what_the_report_says_the_verdict_first(fitted: Path) -> None:
    content, said = json.loads((fitted / "report.json").read_text()), words(fitted / "report.html")
    places = [
        said.index(line) for line in (*content["verdict"], "Predicted and observed", content["formula"]["reference"])
    ]
    assert places == sorted(places)
    for name, coefficient in content["coefficients"].items():
        assert f"{name} {coefficient['value']:.4g}" in said
    for title in (
        "What the data cannot tell",
        "Rows not seen by the fit",
        "Simple baselines on the same unseen rows",
        "Replicates: 1 designs",
        "Train next: 5 of the small space",
    ):
        assert title in said, title
    assert content["provenance"]["tables"][0]["sha256"] in said
    assert content["command"] in said
    assert (fitted / "report.html").stat().st_size < 3_000_000


def test_every_row_is_in_it_and_its_terms_add_up_to_its_prediction(fitted: Path) -> None:
    held, rows = data(fitted / "report.html"), json.loads((fitted / "report.json").read_text())["rows"]
    assert held["n"] == ROWS
    for name in ("observed", "predicted", "unseen", "residual"):
        np.testing.assert_allclose(decoded(held["rows"][name]), rows[name], rtol=1e-6, atol=1e-9)
    total = np.sum([decoded(term["values"]) for term in held["terms"]], axis=0)
    np.testing.assert_allclose(total, rows["predicted"], rtol=1e-6)
    ratio = np.array(rows["observed"]) / rows["predicted"]
    np.testing.assert_allclose(np.log(ratio), rows["residual"], atol=1e-12)  # of chinchilla those of the logarithm
    assert rows["unseen"] != rows["predicted"]
    assert rows["design"][0] == rows["design"][1]


def test_names_are_shown_and_no_markup(fitted: Path) -> None:
    page = (fitted / "report.html").read_text(encoding="utf-8")
    assert HOSTILE not in page
    assert data(fitted / "report.html")["names"][-1] == HOSTILE


def test_report_makes_the_same_bytes_again_from_report_json_alone(fitted: Path, tmp_path: Path, inside: Inside) -> None:
    again = copied(fitted, tmp_path)
    assert inside("report", again, "--quiet").code == 0
    assert (again / "report.html").read_bytes() == (fitted / "report.html").read_bytes()
    assert inside("report", again, "--open", "--quiet").out.strip() == str(again / "report.html")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "expected version 1, got 2"),
        ({"kind": "recipe"}, "expected a report of a fit or a calibration"),
        ({"rows": {}}, "got changed content (KeyError"),
        ({"verdict": [1]}, "got changed content"),
        ({"quality": "fine"}, "got changed content"),
        ({"coefficients": {"a": {"value": "1"}}}, "got changed content"),
        ({"provenance": None}, "got changed content"),
    ],
    ids=str,
)
def test_a_damaged_report_is_one_line(
    changes: dict[str, Any], said: str, fitted: Path, tmp_path: Path, inside: Inside
) -> None:
    answer = inside("report", copied(fitted, tmp_path, **changes))
    assert answer.code in (1, 2)
    assert said in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "[" * 100_000, '{"kind": ["fit"]}'])
def test_what_is_no_report_is_one_line(text: str, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "report.json").write_text(text)
    answer = inside("report", tmp_path)
    assert answer.code in (1, 2)
    assert re.search(r"report\.json: expected .*, got .*; make it again", answer.err)


def test_a_report_that_is_a_link_is_refused(fitted: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "report.json").symlink_to(fitted / "report.json")
    answer = inside("report", tmp_path)
    assert answer.code == 2
    assert "report.json: expected a report, got a link" in answer.err


def test_a_used_folder_and_a_file_are_refused_before_the_fit(fitted: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "file").touch()
    for place, held in ((fitted, f"{fitted} with files in it"), (tmp_path / "file", f"a file {tmp_path / 'file'}")):
        answer = inside("fit", table(tmp_path / "runs.csv"), "--report", place)
        assert answer.code == 2
        assert f"--report: expected a new or empty folder, got {held}; name another" in answer.err
        assert answer.out == ""


def test_the_command_repeats_what_was_asked_and_names_no_path() -> None:
    asked = FitRequest(
        (Path("/somewhere/of mine/runs.csv"),),
        "/forms/own.yaml",
        where=("a=1", "b>2"),
        tokens=1e10,
        next=3,
        report=Path("/x"),
    )
    assert repeated(asked) == (
        "plas fit runs.csv --form own.yaml --where a=1 --where 'b>2' --tokens 10000000000.0 --next 3 --report again"
    )


def test_numbers_that_json_does_not_know_are_unknown_again_and_nothing_stays_nothing() -> None:
    from nas.files.report_json import known

    found = known({"condition": None, "ends": [None, 1.0], "replicates": None, "forms": {"a": {"largest_rmse": None}}})
    assert math.isnan(found["condition"])
    assert math.isnan(found["ends"][0])
    assert found["replicates"] is None
    assert found["forms"]["a"]["largest_rmse"] is None
