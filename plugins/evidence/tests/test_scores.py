"""`scores`: a table becomes curves, its record on laboratories left out, and what does not belong to it is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.files import yaml_source
from objectives.scores import Scores

ROWS = "model,bits_per_byte,m:m\na,1.0,26\nb,0.95,28\nc,0.9,35\nd,0.85,44\ne,0.8,52\nf,0.75,61\nchance,,25\ntop,,100\n"


def test_a_table_of_ones_own_becomes_a_file_that_a_study_takes(inside: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    found = inside("scores", "t.csv", "--out", "s.yaml")
    assert found.code == 0
    assert "Of further models of yours, the only laboratory" in found.out
    assert "No laboratory can be left out" in found.out
    assert "plas select or report --scores, run or explain --set scores=s.yaml" in found.err
    scores = Scores.model_validate(yaml_source.read(tmp_path / "s.yaml")[0])
    assert scores.families["m"].top == 100.0
    assert scores.fitted_on == (0.75, 1.0)
    assert not scores.new_laboratory
    assert inside("scores", "t.csv", "--out", "s.yaml").code == 2  # never over a file
    assert json.loads(inside("scores", "t.csv", "--json").out)["models"] == 6


@pytest.mark.slow
def test_each_laboratory_of_a_table_is_left_out(inside: Callable[..., Any], tmp_path: Path) -> None:
    bits = [1.2 - 0.05 * i for i in range(12)]
    rows = [f"m{i},{'ab'[i % 2]},{b:.3f},{0.25 + 0.6 / (1 + 2.718 ** (8 * (b - 0.9))):.4f}" for i, b in enumerate(bits)]
    (tmp_path / "t.csv").write_text("\n".join(["model,laboratory,bits_per_byte,m:m", "chance,,,0.25", *rows]))
    content = json.loads(inside("scores", "t.csv", "--json").out)
    assert [(each["family"], each["laboratory"]) for each in content["laboratories_left_out"]] == [
        ("m", "a"),
        ("m", "b"),
    ]
    assert content["left_out"]["m"]["rmse"] < 0.5 * content["left_out"]["m"]["mean_rmse"]
    assert content["new_laboratory"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope.csv",), "nope.csv: expected"),
        (("t.csv", "--out", "law.json"), "expected a .yaml or .yml file"),
        (("t.csv", "--out", "nowhere/s.yaml"), "expected a folder that exists, got nowhere"),
    ],
)
def test_what_cannot_be_read_or_written_is_refused(
    arguments: tuple[str, ...], message: str, inside: Callable[..., Any]
) -> None:
    answer = inside("scores", *arguments)
    assert answer.code == 2
    assert message in answer.err
