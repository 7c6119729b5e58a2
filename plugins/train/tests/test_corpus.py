"""Texts as token files: which documents there are, what is held out, and that the same texts give the same hash."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.export.documents import blocks, documents, held_out, rows_of
from nas.export.tokenizer import byte_level, encoder_of, tokenizer_for
from plas_train.corpus import HELD_OUT, Corpus, Sources, prepared


def corpus(folder: Path, data: list[str], most: int = 10**6, **more: Any) -> Corpus:
    """Prepared in a new folder."""
    folder.mkdir(exist_ok=True)
    sources = Sources(data, more.get("evaluation", []), more.get("texts", {}), most)
    return prepared(folder, sources, byte_level(), lambda _: None)


def ids(folder: Path, name: str) -> list[int]:
    """Token ids of a file."""
    return np.fromfile(folder / "data" / name, dtype="<u2").tolist()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Forty small documents in folders."""
    place = tmp_path / "texts"
    for i in range(40):
        (place / f"part {i % 3}").mkdir(parents=True, exist_ok=True)
        (place / f"part {i % 3}" / f"{i}.txt").write_text(f"document {i} " * (i + 5))
    (place / ".hidden").write_text("no")
    (place / "picture.png").write_bytes(b"\x89PNG\0\0")
    (place / "empty").touch()
    return place


def test_documents(files: Path) -> None:
    """Text files of a folder by their names, without hidden, empty and binary ones; patterns; one file."""
    found = [name for name, _ in documents(str(files))]
    assert len(found) == 40
    assert found == sorted(found)
    assert len(list(documents(str(files / "part 1" / "*.txt")))) == 13
    assert next(documents(str(files / "part 0" / "0.txt")))[1] == b"document 0 " * 5


def test_rows_of_a_jsonl_file_are_documents(tmp_path: Path) -> None:
    """Their `text`, named by their lines, from a file, a folder and a pattern alike; a row without one is named."""
    place = tmp_path / "rows"
    place.mkdir()
    (place / "a.jsonl").write_text('{"text": "one é", "id": 1}\n\n{"text": ""}\n{"text": "two\\nlines"}\n')
    rows = ["one é".encode(), b"two\nlines"]
    for given in (place / "a.jsonl", place, place / "*.jsonl"):
        found = list(documents(str(given)))
        assert [content for _, content in found] == rows
        assert [name.rpartition(":")[2] for name, _ in found] == ["1", "4"]
    for row, said in (
        ('{"content": 1}', "an object with content"),
        ("[1]", "none"),
        ("no", "no JSON"),
        ('{"text": 1}', "object with text"),
    ):
        (place / "a.jsonl").write_text(f'{{"text": "fine"}}\n{row}\n')
        with pytest.raises(UsageError, match=rf'--data: a\.jsonl:2: expected an object with "text", got .*{said}'):
            list(documents(str(place)))


@pytest.mark.slow
def test_standard_library() -> None:
    """Python's own sources, without tests and installed packages."""
    names = [name for name, _ in documents("stdlib")]
    assert "argparse.py" in names
    assert "json/decoder.py" in names
    assert not any({"test", "tests", "site-packages", "encodings"} & set(name.split("/")) for name in names)


def test_a_share_is_held_out(files: Path, tmp_path: Path) -> None:
    """About 5 % of the bytes, whole documents, the same whatever their names are; nothing is on both sides."""
    found = corpus(tmp_path / "a", [str(files)])
    total = found.train.bytes + found.validation.bytes
    assert 0.05 <= found.validation.bytes / total < 0.12
    both = [bytes(i for i in part if i < 256) for part in _documents(tmp_path / "a", "train.bin")]
    held = [bytes(i for i in part if i < 256) for part in _documents(tmp_path / "a", "validation.bin")]
    assert not set(both) & set(held)
    assert len(both) + len(held) == 40
    files.rename(tmp_path / "elsewhere")
    again = corpus(tmp_path / "b", [str(tmp_path / "elsewhere")])
    assert (again.train.sha256, again.validation.sha256) == (found.train.sha256, found.validation.sha256)


def _documents(folder: Path, name: str) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for i in ids(folder, name):
        if i == 256:
            found.append([])
        else:
            found[-1].append(i)
    return found[:-1]


def test_one_file_is_cut(tmp_path: Path) -> None:
    """A share of a single text can be held out, too; its blocks end with lines and together are the text."""
    text = "".join(f"line {i} é\n" for i in range(5000)).encode()
    assert b"".join(blocks(text)) == text
    assert all(part.endswith(b"\n") for part in blocks(text))
    assert all(part.decode() for part in blocks("é".encode() * 5000))
    (tmp_path / "one.txt").write_bytes(text)
    found = corpus(tmp_path / "a", [str(tmp_path / "one.txt")])
    assert found.train.bytes + found.validation.bytes == len(text)
    assert 0.05 <= found.validation.bytes / len(text) < 0.15


def test_equal_documents_are_on_one_side() -> None:
    """A copy is held out with its original; something is always left to train on."""
    assert len(held_out([("a", b"x" * 10)] * 5 + [("b", b"y" * 1000)], HELD_OUT)) == 1
    assert held_out([("a", b"x")], HELD_OUT) == set()


def test_validation_text_of_ones_own(files: Path, tmp_path: Path) -> None:
    """With --eval all data is trained on; at most so many tokens are validated on, and their bytes counted."""
    (tmp_path / "eval.txt").write_text("é" * 100)
    found = corpus(tmp_path / "a", [str(files)], most=50, evaluation=[str(tmp_path / "eval.txt")])
    assert found.train.bytes == sum(len(content) for _, content in documents(str(files)))
    assert (found.validation.tokens, found.validation.bytes) == (51, 50)


def test_token_files_are_kept(files: Path, tmp_path: Path) -> None:
    """The same texts are not written again; damaged files and other texts are."""
    found = corpus(tmp_path / "a", [str(files)], texts={"own": str(files / "part 2")})
    path = tmp_path / "a" / "data" / "train.bin"
    at = path.stat().st_mtime_ns
    assert corpus(tmp_path / "a", [str(files)], texts={"own": str(files / "part 2")}) == found
    assert path.stat().st_mtime_ns == at
    path.write_bytes(b"damaged")
    assert corpus(tmp_path / "a", [str(files)], texts={"own": str(files / "part 2")}) == found
    assert path.stat().st_size == 2 * found.train.tokens


class _Batch(SimpleNamespace):
    def column(self, name: str) -> Any:
        return SimpleNamespace(to_pylist=lambda: self.rows)


def test_saved_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the files that state.json names, of the training part; without pyarrow that is said."""
    place = tmp_path / "set"
    (place / "train").mkdir(parents=True)
    (place / "dataset_dict.json").write_text("{}")
    (place / "train" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "d.arrow"}]}))
    monkeypatch.setattr("nas.export.documents.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="expected pyarrow"):
        list(rows_of(place, "--data"))
    monkeypatch.setattr("nas.export.documents.find_spec", lambda name: name)
    batches = [_Batch(schema=SimpleNamespace(names=["text"]), rows=["a", "", None, "b"])]
    monkeypatch.setattr("nas.export.documents._batches", lambda file: iter(batches))
    assert list(rows_of(place, "--data")) == [("d.arrow:1", b"a"), ("d.arrow:4", b"b")]
    batches[0].schema.names[:] = ["words"]
    with pytest.raises(UsageError, match=r"expected a column text in .*got words"):
        list(rows_of(place, "--data"))


def test_saved_data_sets_of_pyarrow(tmp_path: Path) -> None:
    """Real Arrow streams and Parquet files."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.table({"text": ["first", "", "second"], "n": [1, 2, 3]})
    with pa.OSFile(str(tmp_path / "d.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "d.parquet")
    for name in ("d.arrow", "d.parquet"):
        assert [content for _, content in documents(str(tmp_path / name))] == [b"first", b"second"]
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="expected an Arrow or Parquet file"):
        list(documents(str(tmp_path / "broken.parquet")))


def test_pieces_without_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer.json needs a package; bytes need none."""
    monkeypatch.setattr("nas.export.tokenizer.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "tokenizers", ModuleType("tokenizers"))
    sources = Sources(["stdlib"], [], {}, 10)
    with pytest.raises(UsageError, match="expected the package tokenizers"):
        prepared(tmp_path, sources, replace(byte_level(), kind="file"), lambda _: None)


def test_documents_are_encoded_together(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at once as make so many bytes; the ids are those of one after another."""
    whole = corpus(tmp_path / "whole", [str(files)])
    for most in (1, 100, 1000):
        monkeypatch.setattr("plas_train.corpus.ENCODED_AT_ONCE", most)
        assert corpus(tmp_path / str(most), [str(files)]) == whole


def test_pieces_are_the_exported_tokenizers(tmp_path: Path) -> None:
    """The byte-level tokenizer.json that `export` writes gives the ids that bytes are, and counts the bytes of a beginning."""
    pytest.importorskip("tokenizers", reason="needs the extra tokenize, which is not installed")
    (tmp_path / "tokenizer.json").write_bytes(byte_level().files["tokenizer.json"])
    pieces = encoder_of(tokenizer_for(str(tmp_path / "tokenizer.json")))
    text = "naïve <|endoftext|é\n\tx = 1  # end".encode()
    assert pieces.ids(text, "here").tolist() == list(text)
    several = pieces.several([("a", text), ("b", b""), ("c", b"abc")])
    assert [(ids.tolist(), size) for ids, size in several] == [(list(text), len(text)), ([], 0), ([97, 98, 99], 3)]
    assert [pieces.head(text, "here", most)[1] for most in (0, 2, 5, 10**6)] == [0, 2, 5, len(text)]
    with pytest.raises(UsageError, match="here: expected UTF-8 text"):
        pieces.ids(b"\xff\xfe", "here")
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"</s>": 0, "a": 1}}}')
    with pytest.raises(UsageError, match="--tokenizer: expected a tokenizer"):
        encoder_of(tokenizer_for(str(tmp_path / "tokenizer.json")))
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"a": 1}}}')
    with pytest.raises(UsageError, match="expected an end token"):
        tokenizer_for(str(tmp_path / "tokenizer.json"))
