"""`tokenize`: table and files, the same bytes twice, tokenizers that exist, and what is refused by name."""

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.tokenizer import SMALLEST, byte_level
from nas.files.yaml_source import read
from nas.tokenize.command import sizes_of
from objectives.token_curve import TokenCurve
from tests.nas.tokenize.test_counting import words

pytest.importorskip("tokenizers", reason="needs the extra tokenize, which is not installed")

Inside = Callable[..., Any]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """One file of generated words, 130 kB."""
    path = tmp_path / "own text.txt"
    path.write_text(words(30_000))
    return path


def test_the_curve_is_counted_and_read_back(inside: Inside, tmp_path: Path, text: Path) -> None:
    typed = (text, "--vocabularies", "300,500,400", "--out", "curve.yaml", "--save-tokenizers", "own", "--json")
    answer = inside("tokenize", *typed)
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    rows = found["tokenizers"]
    curve = TokenCurve.model_validate(read(tmp_path / "curve.yaml")[0])
    assert [row["vocabulary"] for row in rows] == [size.vocabulary for size in curve.sizes] == [300, 400, 500]
    assert curve.bytes_per_token(np.array([300, 400, 500])).tolist() == [row["bytes_per_token"] for row in rows]
    assert curve.unigram_nats(np.array([500]))[0] == rows[2]["unigram_nats"]
    assert [row["bytes_per_token"] * row["tokens"] for row in rows] == pytest.approx([found["counted_on"]] * 3)
    assert found["trained_on"] + found["counted_on"] == text.stat().st_size == curve.source.bytes
    assert curve.source.texts == ["own text.txt"]
    assert curve.name == "curve"
    assert str(tmp_path) not in (tmp_path / "curve.yaml").read_text()
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["300", "400", "500"]


def test_the_same_text_gives_the_same_bytes(inside: Inside, tmp_path: Path, text: Path) -> None:
    for place in ("a", "b"):
        answer = inside("tokenize", text, "--vocabularies", "400", "--out", f"{place}.yaml", "--save-tokenizers", place)
        assert answer.code == 0, answer.err
    files = [tmp_path / place / "400" / "tokenizer.json" for place in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()
    curves = [(tmp_path / f"{place}.yaml").read_text() for place in ("a", "b")]
    assert curves[0] == curves[1].replace("name: b", "name: a")


def test_folders_and_rows_of_jsonl_are_texts(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    rows = [{"text": words(400, seed=i)} for i in range(30)]
    (tmp_path / "texts" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "texts" / "plain.txt").write_text(words(400, seed=99))
    answer = inside("tokenize", "texts", "--vocabularies", "300", "--json")
    assert answer.code == 0, answer.err
    source = json.loads(answer.out)["source"]
    written = [words(400, seed=99), *(row["text"] for row in rows)]
    assert source["documents"] == 31
    assert source["bytes"] == sum(len(each.encode()) for each in written)
    assert source["texts"] == ["texts"]


def test_tokenizers_that_exist_are_counted_beside_and_alone(inside: Inside, tmp_path: Path, text: Path) -> None:
    """A byte-level one has a token a byte; alone it is the curve, beside trained ones it is not."""
    (tmp_path / "bytes").mkdir()
    content = json.loads(byte_level().files["tokenizer.json"])
    content["truncation"] = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / "bytes" / "tokenizer.json").write_text(json.dumps(content))
    for given in ("bytes", "bytes/tokenizer.json"):
        answer = inside("tokenize", text, "--tokenizer", given, "--json")
        assert answer.code == 0, answer.err
        (row,) = json.loads(answer.out)["tokenizers"]
        assert (row["tokenizer"], row["vocabulary"], row["bytes_per_token"]) == ("bytes", SMALLEST, 1.0)
    both = ("--tokenizer", "bytes", "--vocabularies", "300,400")
    answer = inside("tokenize", text, *both, "--out", "both.yaml")
    assert [line.split()[0] for line in answer.out.splitlines()[2:5]] == ["bytes", "byte-level", "byte-level"]
    assert [size.vocabulary for size in TokenCurve.model_validate(read(tmp_path / "both.yaml")[0]).sizes] == [300, 400]
    assert inside("tokenize", text, "--tokenizer", "bytes", "--out", "one.yaml").code == 0
    curve = TokenCurve.model_validate(read(tmp_path / "one.yaml")[0])
    assert curve.bytes_per_token(np.array([SMALLEST])).tolist() == [1.0]
    assert curve.trained_on is None
    twice = inside(
        "tokenize", text, *("--tokenizer", "bytes") * 2, "--tokenizer", "bytes/tokenizer.json", "--out", "t.yaml"
    )
    assert twice.code == 2
    assert "--out: expected tokenizers of different sizes" in twice.err


def test_sizes_that_a_text_is_not_enough_for_are_named(inside: Inside, text: Path) -> None:
    answer = inside("tokenize", text, "--vocabularies", "300,900,60k")
    assert answer.code == 0, answer.err
    assert "Not counted: 900: expected 50 tokens of training text an entry, got " in answer.out
    assert "Not counted: 60,000: expected a text with pairs for so many entries, got " in answer.out
    assert "\n  byte-level BPE         300 " in answer.out
    refused = inside("tokenize", text)
    assert refused.code == 2
    assert "--vocabularies: 4,000: expected " in refused.err
    assert "--vocabularies: 64,000: expected " in refused.err


def test_sizes_are_read_as_the_help_says() -> None:
    assert sizes_of("32k, 8192,0.5k", given=False) == [500, 8192, 32000]
    assert sizes_of(None, given=False) == [4000, 8000, 16000, 32000, 64000]
    assert sizes_of(None, given=True) == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("own text.txt", "--vocabularies", "256"), "--vocabularies: expected whole numbers from 257"),
        (("own text.txt", "--vocabularies", "4k,8x"), "got '8x'"),
        (("own text.txt", "--vocabularies", "300.5"), "got '300.5'"),
        (("nowhere.txt",), "texts: expected a text file, a folder"),
        (("empty.txt",), "texts: expected text, got nothing but empty files in empty.txt"),
        (("binary.txt",), "binary.txt: expected UTF-8 text, got a NUL byte at 3"),
        (("latin.txt",), "latin.txt: expected UTF-8 text, got invalid continuation byte at byte 3"),
        (("rows.jsonl",), 'texts: rows.jsonl:1: expected an object with "text", got an object with words'),
        (("same.txt",), "texts: expected a text of which a tenth can be held out"),
        (("own text.txt", "--tokenizer", "nowhere"), "--tokenizer: expected a tokenizer.json or a folder with one"),
        (("own text.txt", "--tokenizer", "rows.jsonl"), "--tokenizer: expected a tokenizer, got rows.jsonl"),
        (("own text.txt", "--out", "empty.txt"), "--out: expected a new file, got empty.txt"),
        (("own text.txt", "--save-tokenizers", "."), "--save-tokenizers: expected a new or empty folder"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    inside: Inside, tmp_path: Path, text: Path, typed: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.txt").write_bytes(b"abc\0def")
    (tmp_path / "latin.txt").write_bytes("caf\xe9 noir".encode("latin-1"))
    (tmp_path / "rows.jsonl").write_text('{"words": "a"}\n')
    (tmp_path / "same.txt").write_text("x")
    answer = inside("tokenize", *typed)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_without_its_package_the_extra_is_named(inside: Inside, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.export.encoding.find_spec", lambda _: None)
    answer = inside("tokenize", text)
    assert answer.code == 2
    assert "expected the package tokenizers, got none; pip install 'plas-codesign[tokenize]'" in answer.err


@pytest.mark.slow
def test_an_interrupt_ends_it(tmp_path: Path, commands: Any) -> None:
    """While it trains, where the package keeps the main thread busy; nothing is written."""
    letters = random.Random(0).choices("abcdefghijklmnop ", k=12_000_000)  # hardly a word twice: many seconds
    (tmp_path / "long.txt").write_text("".join(letters))
    started = commands.start("tokenize", "long.txt", "--vocabularies", "4k", "--out", "curve.yaml")
    time.sleep(3.0)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=120)
    assert started.returncode == 130, said
    assert "Interrupted before the end" in said
    assert not (tmp_path / "curve.yaml").exists()
