"""The measured CSV of `calibrate`: what its header lacks is said at once, before any row."""

from pathlib import Path

import pytest

from nas.errors import UsageError
from plas_board.calibrate.figure import document
from plas_board.calibrate.inputs import csv_lines

HEADER, ROW = "model,metric,value,prompt_len", "qwen3_8b,prefill_ms,9.5,512"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("model,metric,median,input_tokens", "expected columns value, prompt_len, got model, metric, median, input_tokens; add"),
        ("model,metric,value [s],prompt_len", "expected columns value, got model, metric, value [s], prompt_len; add"),
        (HEADER.replace(",", ";"), 'got model;metric;value;prompt_len; pd.read_csv("own.csv", sep=";"'),
        (HEADER.replace(",", "\t"), r'pd.read_csv("own.csv", sep="\t"'),
        ("a", "or a log, got text that begins 'a', without a table"),
    ],
)  # fmt: skip
def test_a_header_that_lacks_columns_is_one_line(header: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{header}\n{ROW}\n")
    with pytest.raises(UsageError) as caught:
        csv_lines(path)
    assert str(caught.value).startswith(f"{path}:")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{\n "schemaVersion": 1,\n "results": []\n}\n', "keys schemaVersion, of which none is a speed"),
        ('{"tool":{"name":"a"},"results":[1', "JSON that is not whole"),
        (
            "precisions:\n  w4a16:\n",
            "text that begins 'precisions:', without a table, and without a line of tokens per",
        ),
        ("isl,osl,load,gain\n1,2,3,4\n", "a table of isl, osl, load, gain, of which none is a speed"),
        ("| Model | Memory |\n|---|---|\n| a | 3 GB |\n", "a table of Model, Memory, of which none is a speed"),
    ],
)
def test_a_file_without_speeds_is_told_what_it_is(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(UsageError) as caught:
        csv_lines(tmp_path / "log")
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'log'}: expected columns metric, value, prompt_len, or a log, got {what}")
    assert said.endswith("see docs/calibrate.md")


def test_the_fastest_of_repetitions_needs_no_value(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER.replace('value', 'min')}\n{ROW}\n")
    assert "".join(csv_lines(path)) == path.read_text()


def test_a_table_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER}\n{ROW}\n", encoding="utf-16")
    assert document(path).table == [dict(zip(HEADER.split(","), ROW.split(","), strict=True))]
    assert csv_lines(path) == [f"{HEADER}\n", f"{ROW}\n"]


def test_a_row_with_a_decimal_comma_is_not_read_as_its_whole_part(tmp_path: Path) -> None:
    """12,5 without quotes are two cells, and not 12 ms."""
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER}\n{ROW.replace('9.5', '12,5')}\n")
    with pytest.raises(UsageError, match=r"own.csv:2: expected 4 cells, got 5; correct the row, with decimals"):
        csv_lines(path)
