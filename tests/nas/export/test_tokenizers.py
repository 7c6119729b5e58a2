"""Designs of several vocabularies, each with the tokenizer of its size: in hf, in GGUF files, and refused by name where there is none."""

import json
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from nas.errors import UsageError
from nas.export.model import Model
from nas.export.stacks import hf
from nas.export.tokenizer import SMALLEST, byte_level, tokenizer_for, tokenizers_for
from objectives import counts
from plas_stacks import llama_bench
from plas_stacks.gguf import read_gguf, write_gguf
from tests.nas.export.vocabularies import SIZES, folder_of, tokenizer_of

Exported = Callable[..., Model]
Inside = Callable[..., Any]
SHAPE: dict[str, Any] = {"depth": 1, "width": 64, "head_dim": 32, "n_kv_heads": 1, "expert_size": 64}


def rows(folder: Path, sizes: tuple[int, ...] = SIZES) -> Path:
    """A candidate of each size, every second one without tied embeddings."""
    path = folder / "sizes.jsonl"
    lines = [{"id": f"v{size}", **SHAPE, "vocabulary": size, "tied": i % 2 == 0} for i, size in enumerate(sizes)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_each_design_has_the_tokenizer_of_its_vocabulary(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.export.verification.transformers_version", lambda: None)
    given = folder_of(tmp_path / "tokenizers")
    flags = ("--tokenizer", given, "--weights", "--to", "llama-bench", "--out", tmp_path / "out")
    answer = inside("export", rows(tmp_path), *flags)
    assert answer.code == 0, answer.err
    assert "Caution, every stack" not in answer.out
    for size in SIZES:
        place = tmp_path / "out" / f"v{size}"
        assert tokenizers_for(str(place / "hf")).of(size).size == size
        assert json.loads((place / "hf" / "config.json").read_text())["vocab_size"] == size
        metadata, _ = read_gguf(place / "llama-bench" / "model.gguf")
        assert len(metadata["tokenizer.ggml.tokens"]) == size
    assert inside("export", "--verify", tmp_path / "out").code == 0
    model = tmp_path / "out" / f"v{SIZES[-1]}" / "llama-bench" / "model.gguf"
    content = model.read_bytes()
    model.write_bytes(content.replace(b"<|endoftext|>", b"<|endoftexT|>", 1))
    assert "tokenizer: expected 'gpt2 of" in inside("export", "--verify", tmp_path / "out").out


def test_other_sizes_are_refused_with_the_command_that_makes_them(inside: Inside, tmp_path: Path) -> None:
    given = folder_of(tmp_path / "tokenizers")
    answer = inside("export", rows(tmp_path, (300, 301)), "--tokenizer", given, "--out", tmp_path / "out")
    assert answer.code == 2
    assert "tokenizer: expected a tokenizer of 301 entries" in answer.err
    assert "got 260, 300, 400; make them with the recipe in docs/vocabulary.md" in answer.err
    assert not (tmp_path / "out").exists()
    with pytest.raises(
        UsageError, match=r"expected one tokenizer, got those of 260, 300, 400 entries in .*; name one, as .*260"
    ):
        tokenizer_for(str(given))
    (given / "300").rename(given / "299")
    with pytest.raises(UsageError, match=r"expected 299 entries in .*299, got 300; rename"):
        tokenizers_for(str(given))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_gguf_files_hold_parameters_and_tokenizer_of_the_vocabulary(
    exported: Exported, tmp_path: Path, size: int, tied: bool
) -> None:
    given = tokenizer_of(size)
    model = exported({**SHAPE, "vocabulary": size, "tied": tied}, weights=True, tokenizer=given)
    write_gguf(tmp_path / "m.gguf", model)
    metadata, held = read_gguf(tmp_path / "m.gguf")
    assert sum(prod(shape) for _, shape in held.values()) == counts.total(model.architecture)[0]
    assert held["token_embd.weight"][1] == (size, 64)
    own = {key.removeprefix("tokenizer.ggml."): value for key, value in metadata.items() if "tokenizer" in key}
    content = json.loads(given.files["tokenizer.json"])["model"]
    assert {token: i for i, token in enumerate(own["tokens"])} == content["vocab"]
    assert own["merges"] == [" ".join(pair) for pair in content["merges"]]
    assert [i for i, kind in enumerate(own["token_type"]) if kind == 3] == [SMALLEST - 1]
    assert (own["model"], own["pre"], own["add_bos_token"]) == ("gpt2", "gpt-2", False)
    assert (own["eos_token_id"], own["bos_token_id"], own["padding_token_id"]) == (256, 256, 256)


def test_tokenizers_that_llama_cpp_splits_otherwise_are_left_out(exported: Exported, tmp_path: Path) -> None:
    good = tokenizer_of(300)
    content = json.loads(good.files["tokenizer.json"])
    others = {
        "another split": {**content, "pre_tokenizer": {"type": "Sequence", "pretokenizers": []}},
        "a normaliser": {**content, "normalizer": {"type": "NFC"}},
        "Unigram": {**content, "model": {"type": "Unigram", "vocab": [["a", 0.0]]}},
    }
    models = [replace(good, files={"tokenizer.json": json.dumps(other).encode()}) for other in others.values()]
    for given in (*models, byte_level()):
        write_gguf(tmp_path / "m.gguf", exported({**SHAPE, "vocabulary": 300}, weights=True, tokenizer=given))
        assert read_gguf(tmp_path / "m.gguf")[0]["tokenizer.ggml.model"] == "none"


@pytest.mark.parametrize(
    ("split", "converter"), [("ByteLevel", "llama-bench/convert.py"), ("Metaspace", "/convert_hf")]
)
def test_trained_weights_are_converted_with_the_tokenizers_split(
    exported: Exported, tmp_path: Path, split: str, converter: str
) -> None:
    """llama.cpp's converter knows tokenizers by a hash of what they make of a text, and refuses every other; hence convert.py."""
    given = tokenizer_of(300)
    content = json.loads(given.files["tokenizer.json"])
    content["pre_tokenizer"]["type"] = split
    given = replace(given, kind="given", files={"tokenizer.json": json.dumps(content).encode()})
    model = exported({**SHAPE, "vocabulary": 300}, tokenizer=given)
    for stack, folder in ((hf, tmp_path / "hf"), (llama_bench, tmp_path / "llama-bench")):
        folder.mkdir()
        stack.emit(model, folder)
    assert converter in (tmp_path / "llama-bench" / "bench.sh").read_text()
    assert (tmp_path / "llama-bench" / "convert.py").exists() is (split == "ByteLevel")
    assert any("a tokenizer that llama.cpp knows" in text for text in llama_bench.cautions(model)) is (
        split != "ByteLevel"
    )
    assert llama_bench.read(tmp_path / "llama-bench") == llama_bench.fields(model)
