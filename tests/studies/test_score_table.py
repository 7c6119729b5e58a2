"""Tables of scores: what is read how, and what is refused by which sentence."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from objectives.plugins import documents
from objectives.token_curve import TokenCurve
from studies.scores.curve_fit import families_of
from studies.scores.score_table import ScoreTable, score_table

HEADER = "model,laboratory,bits_per_byte,science:arc,science:sciq,mmlu:mmlu"
GOOD = [
    "a,x,1.0,0.30,0.5,0.25",
    "b,x,0.9,0.35,0.6,0.27",
    "c,y,0.8,0.41,0.7,0.33",
    "d,y,0.75,0.5,0.8,",
    "e,y,0.7,0.6,0.85,0.5",
]
CURVE = TokenCurve.model_validate(yaml.safe_load(documents("objectives.token_curves")["slimpajama"].read_text()))


def read(folder: Path, *lines: str) -> ScoreTable:
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return score_table(path, CURVE)


def test_a_table_is_read_by_family(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER, *GOOD, "chance,,,0.25,0.25,0.25")
    assert found.families == {"science": ["science:arc", "science:sciq"], "mmlu": ["mmlu:mmlu"]}
    assert found.laboratory.tolist() == list("xxyyy")
    assert found.chance["mmlu:mmlu"] == 0.25
    assert np.isnan(found.scores["mmlu:mmlu"][3])
    assert found.notes == ()
    with pytest.raises(ValueError, match="expected at least 5 models"):
        families_of(found)  # mmlu lacks one


def test_a_table_without_laboratories_is_of_one_and_chance_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "model,bits_per_byte,m:m,size", "a,1.0,30.5,1B", "b,0.9,40.5,2B", "top,,100,")
    assert found.laboratory.tolist() == ["yours"] * 2
    assert found.top == {"m:m": 100.0}
    assert found.scores["m:m"].tolist() == [30.5, 40.5]
    assert any("chance is taken as 0 for all scores" in note for note in found.notes)
    assert "not used: size" in found.notes


def test_a_loss_per_token_becomes_bits_per_byte(tmp_path: Path) -> None:
    held = read(tmp_path, "model,loss,bytes_per_token,m:m", "a,2.8,4,0.3")
    assert held.bits[0] == pytest.approx(2.8 / (np.log(2) * 4))
    sized = read(tmp_path, "model,loss,vocabulary,m:m", "a,2.8,32768,0.3")
    assert sized.bits[0] == pytest.approx(2.8 / (np.log(2) * 3.939))
    assert any("slimpajama" in note for note in sized.notes)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["name,bits_per_byte,m:m", "a,1,0.3"], "model: expected a column of that name"),
        (["model,m:m", "a,0.3"], "bits_per_byte: expected a column of that name"),
        (["model,loss,m:m", "a,3.1,0.3"], "loss: expected bytes_per_token or vocabulary beside a loss per token"),
        (["model,bits_per_byte,mmlu", "a,1,0.3"], "expected columns family:task"),
        (["model,bits_per_byte,m:", "a,1,0.3"], "m:: expected family:task, got an empty part"),
        (["model,bits_per_byte,m:m,m:m", "a,1,0.3,0.3"], "expected each column once, got m:m twice"),
        (["model,bits_per_byte,m:m", "a,3.1e1,0.3"], "t.csv:2: bits_per_byte: expected 0.2 to 4 bits per byte, got 31"),
        (["model,bits_per_byte,m:m", "a,x,0.3"], "t.csv:2: bits_per_byte: expected a positive number, got 'x'"),
        (["model,bits_per_byte,m:m", "a,1,52.3"], "m:m: expected scores of 0 to 1, got 52.3"),
        (["model,bits_per_byte,m:m", "a,1,-0.1"], "m:m: expected scores of 0 to 1, got -0.1"),
        (["model,bits_per_byte,m:m", "a,1,high"], "m:m: expected a number, or an empty cell, got 'high'"),
        (["model,bits_per_byte,m:m", "a,1,0.3", "a,0.9,0.3"], "t.csv:3: model: expected each model once, got 'a'"),
        (["model,laboratory,bits_per_byte,m:m", "a,,1,0.3"], "laboratory: expected the name of a laboratory"),
        (["model,text,bits_per_byte,m:m", "a,C4,1,0.3", "b,Pile,1,0.3"], "text: expected one text in all rows, got C4 and Pile"),
        (["model,bits_per_byte,m:m", "a,1,0.3", "chance,,1.5"], "m:m: expected chance below top, got 1.5 and 1"),
        (["model,bits_per_byte,m:m", "a,1,0.3", "chance,,x"], "m:m: expected a number in the row chance, got 'x'"),
        (["model,bits_per_byte,m:m", "a,1,0.3", "top,,1", "top,,1"], "top: expected one row of that name, got 2"),
        (["model,bits_per_byte,m:m", "chance,,0.2"], "expected a row per model, got none"),
        (["model,loss,vocabulary,m:m", "a,3,500,0.3"], "vocabulary: expected 1,024 to 1,024,000"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        read(tmp_path, *lines)
    assert said in str(refused.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        read(tmp_path, "model,laboratory,bits_per_byte,m:m", "a,,1,0.3", "b,x,99,high")
    assert len(str(refused.value).splitlines()) == 3


def test_scores_that_do_not_differ_say_nothing(tmp_path: Path) -> None:
    rows = [f"{name},{bits},0.3" for name, bits in zip("abcde", (1, 0.9, 0.8, 0.75, 0.7), strict=True)]
    with pytest.raises(ValueError, match=r"m: expected scores that differ, got 0\.3 in all models"):
        families_of(read(tmp_path, "model,bits_per_byte,m:m", *rows))
