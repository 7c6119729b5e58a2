"""Tables on disk: full precision, and whole or not at all."""

import csv
import io
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.errors import PlasError
from nas.files.tables import csv_text, finite, write, write_json


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_floats_come_back_bit_for_bit(values: list[float]) -> None:
    rows = list(csv.reader(io.StringIO(csv_text({"x": np.array(values)}))))
    assert [row[0] for row in rows] == ["x", *map(repr, values)]
    assert np.array([float(row[0]) for row in rows[1:]]).tobytes() == np.array(values).tobytes()


def test_numbers_words_and_gaps_have_one_form() -> None:
    columns = {
        "index": range(3),
        "f": np.array([1.0, math.nan, 1e-300]),
        "i": np.array([1, 2, 3]),
        "b": np.array([True, False, True]),
        "s": np.array(["a", "b,c", 'd"e'], dtype=object),
        "t": ("", "ä", "x\ny"),
    }
    assert csv_text(columns) == (
        'index,f,i,b,s,t\n0,1.0,1,True,a,\n1,,2,False,"b,c",ä\n2,1e-300,3,True,"d""e","x\ny"\n'
    )


def test_columns_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        csv_text({"a": [1, 2], "b": [1]})


def test_no_columns_and_no_rows() -> None:
    assert csv_text({"a": [], "b": []}) == "a,b\n"


def test_writing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old, much longer than the new text")
    write(path, "new ä\r\nline\n")
    assert path.read_bytes() == "new ä\r\nline\n".encode()
    assert os.listdir(tmp_path) == ["x.csv"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PlasError, match="No space left on device"):
        write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.parametrize("where", ["file/x.csv", "none/x.csv", "folder"])
def test_a_place_that_cannot_be_written_is_one_line(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("")
    with pytest.raises(PlasError) as caught:
        write(tmp_path / where, "text")
    assert len(str(caught.value).splitlines()) == 1


def test_json_has_null_for_what_json_does_not_know(tmp_path: Path) -> None:
    content = {"a": [1.5, math.inf, (math.nan, {"b": -math.inf})], "c": "ä", "d": None, "e": True}
    write_json(tmp_path / "x.json", content)
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": [1.5, None, [None, {"b": None}]],
        "c": "ä",
        "d": None,
        "e": True,
    }
    assert text.endswith("\n")
    assert "ä" in text
    assert finite(0.1) == 0.1
