"""Exported GGUF files in llama.cpp itself: logits as transformers', tensors as llama-quantize's, where its programs are found.

Logits are compared position by position, centred: root mean square of the difference over the standard deviation of transformers' own.
Two references, both 32-bit: the weights that the file holds, decoded by the `gguf` package, which leaves only llama.cpp's
rounding of activations; and the weights that were exported, which adds what the format loses.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nas.export.checkpoint import blocks, tensors
from nas.export.gguf_formats import FORMATS
from nas.export.hf_config import config_of
from nas.export.model import Model
from nas.export.tokenizer import SMALLEST, Tokenizer, byte_level
from objectives import counts
from plas_stacks.gguf import entries, write_gguf
from plugins.stacks.tests.llama_cpp import gguf_package, program, quantised, quantiser, said
from search_spaces.architectures import one
from tests.nas.export.vocabularies import SIZES, tokenizer_of

Floats = NDArray[np.float32]
Exported = Callable[..., Model]
pytestmark = pytest.mark.slow
BASE: dict[str, Any] = {"depth": 3, "width": 256, "n_kv_heads": 2, "expert_size": 512, "vocabulary": 300}
WINDOWS = {"depth": 4, "n_local": 2, "window": 6}  # fewer than tokens
SHARING = {"depth": 6, "n_local": 3, "window": 6, "norms_per_layer": 4, "n_kv_shared": 2, "n_kv_shared_local": 1}
CONVOLUTIONS = {"depth": 5, "n_conv": 3, "conv_kernel": 3}
MAMBA2: dict[str, Any] = {
    "depth": 5,
    "n_linear": 3,
    "linear_kind": "mamba2",
    "linear_heads": 8,
    "linear_key_dim": 32,
    "linear_kernel": 4,
    "linear_key_heads": 1,
    "linear_value_dim": 64,
    "qk_norm": "no",
}
DELTANET: dict[str, Any] = {
    "depth": 5,
    "n_linear": 3,
    "linear_kind": "deltanet",
    "linear_heads": 8,
    "linear_key_dim": 32,
    "linear_kernel": 4,
    "linear_key_heads": 4,
    "linear_value_dim": 32,
    "attention_gate": True,
    "shared_expert_size": 256,
    "shared_gate": True,
}
CASES: dict[str, dict[str, Any]] = {
    "dense": BASE,
    "untied": {**BASE, "tied": False},
    "qwen2": {**BASE, "qk_norm": "no", "qkv_bias": True},
    "fallbacks": {**BASE, "width": 192, "n_kv_heads": 1, "expert_size": 416},
    "top2": {**BASE, "n_experts": 4, "top_k": 2, "expert_size": 256},
    "top1 of eight": {**BASE, "n_experts": 8, "top_k": 1},
    "windows, experts": {**BASE, **WINDOWS, "n_experts": 4, "top_k": 2, "tied": False},
    "four norms": {**BASE, **WINDOWS, "norms_per_layer": 4},
    "four norms, untied": {**BASE, **WINDOWS, "norms_per_layer": 4, "tied": False},
    "shared caches": {**BASE, **SHARING},
    "shared caches, untied": {**BASE, **SHARING, "head_dim": 32, "n_heads": 12, "tied": False},
    "convolutions": {**BASE, **CONVOLUTIONS},
    "convolutions, experts": {**BASE, **CONVOLUTIONS, "n_experts": 4, "top_k": 2, "n_dense": 1, "dense_size": 768},
    "mamba2": {**BASE, **MAMBA2},
    "mamba2, experts": {**BASE, **MAMBA2, "n_experts": 4, "top_k": 2, "expert_size": 256},
    "mamba2, shared expert": {**BASE, **MAMBA2, "n_experts": 8, "top_k": 2, "shared_expert_size": 256, "tied": False},
    "deltanet": {**BASE, **DELTANET, "n_experts": 4, "top_k": 2, "expert_size": 256, "tied": False},
    "convolutions, eight experts": {**BASE, **CONVOLUTIONS, "n_experts": 8, "top_k": 2},
}
TOKENS = [(7 * i * i + 3 * i) % 300 for i in range(24)]
#: Most of the difference from the file's own weights: activations are rounded to 16-bit floats (2^-11 at each of some twenty products),
#: or to 8 bits in blocks of 32 (half a percent at each).
ROUNDING = {"f16": 0.004, "q8_0": 0.04, "q4_0": 0.04, "q4_k_m": 0.04}
#: Most from the exported weights. 8.5 bits are off by half a percent a weight, 4.5 bits by 7 to 9, in every one of those products.
#: KL is of softmax(logits / their deviation), in nats; ranks are Spearman's over the vocabulary.
LOSS = {
    "f16": (0.004, 1e-5, 0.9999),
    "q8_0": (0.05, 2e-3, 0.995),
    "q4_0": (0.40, 0.10, 0.9),
    "q4_k_m": (0.40, 0.10, 0.9),
}


def deep(name: str) -> dict[str, Any]:
    """A case in eight layers, of two kinds the same share of each, so that every rule of llama-quantize meets one."""
    case = {**CASES[name], "depth": 8}
    return {**case, **{key: 4 for key in ("n_local", "n_conv", "n_linear") if key in case}}


def decoded(path: Path) -> dict[str, Any]:
    """Every tensor of a GGUF file in 32 bits."""
    gguf = gguf_package()
    held = gguf.GGUFReader(path).tensors
    return {t.name: np.asarray(gguf.quants.dequantize(t.data, t.tensor_type), np.float32) for t in held}


def exported_values(model: Model) -> dict[str, Floats]:
    """What the Hugging Face directory holds."""
    found = {}
    for number, part in enumerate(tensors(model)):
        drawn = np.concatenate(list(blocks(part, model.seed, number))) if part.size else np.zeros(0, np.uint16)
        found[part.name] = (drawn.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(part.shape)
    return found


def file_values(model: Model, held: dict[str, Any]) -> dict[str, Floats]:
    """A file's tensors under transformers' names, of classes that hold them in the same arrangement."""
    found = {}
    for entry in entries(model):
        rows = held[entry.name].reshape(len(entry.parts), -1)
        for row, (_, part) in zip(rows, entry.parts, strict=True):
            found[part.name] = np.ascontiguousarray(row.reshape(part.shape))
    return found


def transformers_logits(model: Model, held: dict[str, Floats], folder: Path, *, renormalised: bool = True) -> Floats:
    """Logits of every token, in 32 bits, (tokens, vocabulary)."""
    import torch
    from safetensors.numpy import save_file
    from transformers import AutoModelForCausalLM

    config = config_of(model) | {"dtype": "float32", "torch_dtype": "float32"}
    if model.sparse:
        config["norm_topk_prob"] = renormalised
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(held, folder / "model.safetensors", {"format": "pt"})
    built = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        return np.asarray(built(torch.tensor([TOKENS])).logits[0].numpy())


def engine_logits(path: Path) -> Floats:
    """llama.cpp's."""
    out = said(program("llama-logits"), path, 1, given=" ".join(map(str, TOKENS)))
    return np.frombuffer(out, np.float32).reshape(len(TOKENS), -1)


def typical(per_token: Floats) -> float:
    """The middle token's: a router may send some tokens elsewhere where two experts are nearly level."""
    return float(np.median(per_token))


def difference(ours: Floats, theirs: Floats) -> float:
    """Root mean square of the difference of centred logits over the deviation of theirs."""
    a, b = (each - each.mean(-1, keepdims=True) for each in (ours, theirs))
    return typical(np.sqrt(((a - b) ** 2).mean(-1)) / b.std(-1))


def divergence_and_ranks(ours: Floats, theirs: Floats) -> tuple[float, float]:
    """KL from theirs to ours in nats, of logits over their deviation; Spearman's correlation."""
    from scipy.special import log_softmax
    from scipy.stats import spearmanr

    scale = theirs.std(-1, keepdims=True)
    p, q = log_softmax(theirs / scale, -1), log_softmax(ours / scale, -1)
    ranks = np.array([spearmanr(x, y).statistic for x, y in zip(ours, theirs, strict=True)])
    return typical((np.exp(p) * (p - q)).sum(-1)), typical(ranks)


@pytest.mark.parametrize("name", CASES)
def test_logits_are_transformers_in_formats_of_16_8_and_4_bits(exported: Exported, tmp_path: Path, name: str) -> None:
    """Each loads; logits are those of the file's weights up to rounding, and of the exported ones as far as the format allows."""
    program("llama-logits")
    plain = exported(CASES[name], weights=True)
    exact = transformers_logits(plain, exported_values(plain), tmp_path / "exact")
    for kind in LOSS:
        model, path = exported(CASES[name], weights=True, gguf=kind), tmp_path / f"{kind}.gguf"
        write_gguf(path, model)
        values, found = decoded(path), engine_logits(path)
        if not any(entry.piece.change for entry in entries(model)):
            own = transformers_logits(model, file_values(model, values), tmp_path / kind)
            assert difference(found, own) < ROUNDING[kind], kind
        most, nats, ranks = LOSS[kind]
        assert difference(found, exact) < most, kind
        kl, rank = divergence_and_ranks(found, exact)
        assert kl < nats, kind
        assert rank > ranks, kind


def test_one_expert_is_renormalised(exported: Exported, tmp_path: Path) -> None:
    """The caution of the export holds: with one expert per token its weight is 1 in llama.cpp, whatever the router says."""
    model = exported(CASES["top1 of eight"], weights=True)
    write_gguf(tmp_path / "m.gguf", model)
    as_exported = transformers_logits(model, exported_values(model), tmp_path / "hf", renormalised=False)
    assert difference(engine_logits(tmp_path / "m.gguf"), as_exported) > 0.05


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "f16"])
@pytest.mark.parametrize("name", CASES)
def test_types_are_those_of_llama_quantize(exported: Exported, tmp_path: Path, name: str, kind: str) -> None:
    """The same type for every tensor, the same bytes in types of 32, and in those of 256 an error at most a quarter larger."""
    gguf, _ = gguf_package(), quantiser()
    half, ours = tmp_path / "half.gguf", tmp_path / "ours.gguf"
    write_gguf(half, exported(deep(name), weights=True))
    write_gguf(ours, exported(deep(name), weights=True, gguf=kind))
    theirs = quantised(half, kind)
    files = [{t.name: t for t in gguf.GGUFReader(path).tensors} for path in (ours, theirs)]
    assert {n: t.tensor_type.name for n, t in files[0].items()} == {n: t.tensor_type.name for n, t in files[1].items()}
    exact, own, other = decoded(half), decoded(ours), decoded(theirs)
    for tensor, found in files[0].items():
        if found.tensor_type.name.endswith("_K"):
            error, reference = (float(((x[tensor] - exact[tensor]) ** 2).mean()) for x in (own, other))
            assert error**0.5 < 1.25 * reference**0.5, tensor
        else:
            assert np.array_equal(found.data, files[1][tensor].data), tensor


#: What splits differ in: contractions, digits, runs of spaces, tabs, lines, signs, letters beyond ASCII, the end token as text.
TEXTS = (
    "the tea on the shore isn't  hot;  it's   1234.5 degrees\n\n\tnot  \n so\r\n",
    "Zażółć gęślą jaźń \N{GRINNING FACE} x²  ",
    "def  f(self):\n        return {'a_b': [0x1F, *args]}  # them'll \\\\n\n",
)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("size", [SMALLEST, *SIZES])
def test_the_tokenizer_of_a_vocabulary_is_llama_cpps(exported: Exported, tmp_path: Path, size: int, tied: bool) -> None:
    """Parameters to the last, a logit per entry, and the ids that transformers' tokenizers give."""
    given = byte_level() if size == SMALLEST else tokenizer_of(size)
    columns = {**BASE, "vocabulary": size, "tied": tied}
    path = tmp_path / "m.gguf"
    write_gguf(path, exported(columns, weights=True, tokenizer=given))
    (row,) = json.loads(said(program("llama-bench"), "-m", path, "-p", 8, "-n", 0, "-r", 1, "-t", 1, "-o", "json"))
    assert row["model_n_params"] == counts.total(one(columns))[0]
    logits = said(program("llama-logits"), path, 1, given="1 2 3")
    assert len(logits) == 3 * size * 4
    compare_ids(path, given)


@pytest.mark.parametrize("name", CASES)
def test_every_class_takes_the_tokenizer(exported: Exported, tmp_path: Path, name: str) -> None:
    given = tokenizer_of(300)
    write_gguf(tmp_path / "m.gguf", exported(CASES[name], weights=True, tokenizer=given))
    compare_ids(tmp_path / "m.gguf", given)


def compare_ids(path: Path, given: Tokenizer) -> None:
    """Ids of every text in llama.cpp are those of Hugging Face's `tokenizers`."""
    from tokenizers import Tokenizer as Reader

    reader, text = Reader.from_buffer(given.files["tokenizer.json"]), path.with_name("text.txt")
    flags = ("--ids", "--no-bos", "--no-parse-special", "--no-escape", "--log-disable")
    for each in TEXTS:
        text.write_bytes(each.encode())
        found = json.loads(said(program("llama-tokenize"), "-m", path, "-f", text, *flags))
        assert found == reader.encode(each).ids, each
