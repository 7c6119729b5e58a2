"""Weight formats of GGUF files: blocks against a scalar decoder, which type each tensor has, fallbacks said, read back."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.export.command import usual_format
from nas.export.model import Model
from nas.export.stacks import hf
from plas_stacks import gguf_types as t
from plas_stacks import llama_bench
from plas_stacks.gguf import bits_per_weight, entries, read_gguf, write_gguf
from plas_stacks.gguf_classes import architecture_in
from plas_stacks.gguf_types import encoded
from plugins.stacks.tests.gguf_oracle import DECODERS

Exported = Callable[..., Model]
LAYERS = {"depth": 16, "width": 512, "n_kv_heads": 2, "expert_size": 512, "vocabulary": 300}
#: Codes from one end of a group to the other, and values in a group.
LEVELS = {"Q8_0": 254, "Q4_0": 16, "Q5_0": 32, "Q5_1": 31, "Q4_K": 15, "Q5_K": 31, "Q6_K": 64}
GROUP = {"Q6_K": 16}


def values(blocks: int, kind: t.Type) -> Any:
    """Weights of unlike sizes, with a block of zeros and one of a single value."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((blocks, kind.block)).astype(np.float32)
    x *= np.float32(10.0) ** generator.uniform(-3, 1, (blocks, 1)).astype(np.float32)
    x[0], x[1], x[2] = 0.0, 0.25, np.abs(x[2])
    return x


@pytest.mark.parametrize("name", DECODERS)
def test_blocks_hold_the_values_to_half_a_step(name: str) -> None:
    """Within half a step of its group (a whole one at the far end of a signed scale), with what the scale's own rounding adds."""
    kind = next(each for each in t.TYPES.values() if each.name == name)
    x = values(12, kind)
    data = encoded(x.ravel(), kind)
    assert len(data) == kind.size(x.size)
    parts = [data[i : i + kind.bytes] for i in range(0, len(data), kind.bytes)]
    back = np.array([DECODERS[name](part) for part in parts])
    size = GROUP.get(name, 32)
    groups, error = x.reshape(-1, size), np.abs(back - x).reshape(-1, size).max(1)
    reach = (
        np.ptp(np.concatenate([groups, 0 * groups[:, :1]], 1), axis=1)
        if name in ("Q4_K", "Q5_K", "Q5_1")
        else 2 * np.abs(groups).max(1)
    )
    whole = (
        np.abs(x).max(1).repeat(kind.block // size)
    )  # rounding of 6-bit and 8-bit scales is a share of the block's largest
    allowance = {"Q4_K": 2 / 63, "Q5_K": 2 / 63, "Q6_K": 1 / 128}.get(name, 0.002)
    most = 1.0 if name in ("Q4_0", "Q5_0", "Q6_K") else 0.5
    assert (error <= most * reach / LEVELS[name] + allowance * whole + 1e-7).all()
    assert not back[0].any()


def test_the_usual_blocks_bit_for_bit() -> None:
    """By hand: scale 1 of codes -8 to 7 in halves of the block, the extreme is code 0."""
    x = np.array([*range(-8, 8), *range(7, -9, -1)], np.float32)
    nibbles = bytes(j | (15 - j) << 4 for j in range(16))
    assert encoded(x, t.Q4_0) == b"\x00\x3c" + nibbles  # 1.0 as a half
    eight = encoded(np.array([127.0, -0.5, 0.5, 1.5, *[0.0] * 28], np.float32), t.Q8_0)
    four = encoded(np.array([4.0, -0.5, 1.0, 1.5, *[0.0] * 28], np.float32), t.MXFP4)
    assert four[:6] == b"\x7f\x06\x09\x02\x03\x00", "a power of two, then places among the elements"
    assert eight[:6] == b"\x00\x3c\x7f\xff\x01\x02", "halves go away from zero"


def types(model: Model) -> dict[str, str]:
    """The type of every tensor."""
    return {entry.name: entry.kind.name for entry in entries(model)}


def test_q4_k_m_keeps_more_bits_where_llama_quantize_does(exported: Exported) -> None:
    """First and last eighth and every third between: values and down projections in six bits; the tied table too."""
    found = types(exported(LAYERS, weights=True, gguf="q4_k_m"))
    six = [i for i in range(16) if found[f"blk.{i}.attn_v.weight"] == "Q6_K"]
    assert six == [0, 1, 4, 7, 10, 13, 14, 15]
    assert six == [i for i in range(16) if found[f"blk.{i}.ffn_down.weight"] == "Q6_K"]
    assert (found["token_embd.weight"], found["blk.0.attn_q.weight"], found["blk.2.attn_v.weight"]) == (
        "Q6_K",
        "Q4_K",
        "Q4_K",
    )
    assert found["blk.0.attn_norm.weight"] == found["output_norm.weight"] == "F32"


def test_eight_experts_spare_keys_and_values(exported: Exported) -> None:
    """With 8 experts keys and values are in 8 bits under every quantised format, and Q4_K_M's attention output in 5."""
    experts = {**LAYERS, "n_experts": 8, "top_k": 2}
    for name, output in (("q4_0", "Q4_0"), ("q4_k_m", "Q5_K"), ("q8_0", "Q8_0")):
        found = types(exported(experts, weights=True, gguf=name))
        assert (found["blk.3.attn_k.weight"], found["blk.3.attn_v.weight"]) == ("Q8_0", "Q8_0")
        assert (found["blk.3.attn_output.weight"], found["blk.3.ffn_gate_inp.weight"]) == (output, "F32")
    four = types(exported({**experts, "n_experts": 4}, weights=True, gguf="q4_0"))
    assert (four["blk.3.attn_v.weight"], four["blk.3.ffn_down_exps.weight"]) == ("Q4_0", "Q4_0")


def test_an_own_head_is_six_bits_and_the_table_is_not(exported: Exported) -> None:
    found = types(exported({**LAYERS, "tied": False}, weights=True, gguf="q4_0"))
    assert (found["output.weight"], found["token_embd.weight"]) == ("Q6_K", "Q4_0")


def test_fallbacks_are_said_with_what_they_cost(exported: Exported) -> None:
    """Rows that 256 does not divide go to types of 32, rows that 32 does not divide to 16 bits; the caution names them."""
    model = exported(
        {**LAYERS, "width": 576, "head_dim": 64, "n_heads": 9, "n_kv_heads": 3, "expert_size": 1000},
        weights=True,
        gguf="q4_k_m",
    )
    found = types(model)
    assert (found["token_embd.weight"], found["blk.2.attn_q.weight"], found["blk.2.ffn_down.weight"]) == (
        "Q8_0",
        "Q5_0",
        "F16",
    )
    (said,) = [text for text in llama_bench.cautions(model) if "blocks" in text]
    assert "rows of 576 (attn_q, attn_k, attn_output, ffn_gate, ffn_up, attn_v) Q5_0 instead of Q4_K" in said
    assert "rows of 576 (token_embd, attn_v) Q8_0 instead of Q6_K" in said
    assert "rows of 1000 (ffn_down) F16 instead of Q4_K" in said
    assert f"{bits_per_weight(model):.2f} bits per weight in all" in said
    assert not [
        text for text in llama_bench.cautions(exported(LAYERS, weights=True, gguf="q4_k_m")) if "blocks" in text
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", t.FORMATS)
@pytest.mark.parametrize("case", ["dense", "top1", "untied", "qwen2"])
def test_every_format_is_read_back(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path, case: str, name: str
) -> None:
    """Types, shapes and the length of the file follow from the model; the stack reads the format."""
    model = exported(small[case], weights=True, gguf=name)
    llama_bench.emit(model, tmp_path)
    metadata, held = read_gguf(tmp_path / "model.gguf")
    assert held == {entry.name: (entry.kind.number, entry.shape) for entry in entries(model)}
    assert metadata["general.file_type"] == t.FORMATS[name]
    assert (metadata.get("general.quantization_version") == 2) is (name != "f16")
    assert llama_bench.read(tmp_path) == llama_bench.fields(model)
    assert abs((tmp_path / "model.gguf").stat().st_size - llama_bench.size(model)) < 32 * len(held) + 8192


def test_what_is_trained_later_is_converted_to_the_format(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    model = exported(small["dense"], gguf="q4_0")
    for stack, folder in ((hf, tmp_path / "hf"), (llama_bench, tmp_path / "llama-bench")):
        folder.mkdir()
        stack.emit(model, folder)
    lines = (tmp_path / "llama-bench" / "bench.sh").read_text().splitlines()
    assert "llama-quantize llama-bench/f16.gguf llama-bench/model.gguf q4_0" in lines
    assert llama_bench.read(tmp_path / "llama-bench") == llama_bench.fields(model)


def test_a_type_that_we_do_not_write_is_refused(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(path, exported(small["dense"], weights=True))
    content = path.read_bytes()
    at = content.index(b"token_embd.weight") + len("token_embd.weight") + 4 + 16
    path.write_bytes(content[:at] + (99).to_bytes(4, "little") + content[at + 4 :])
    with pytest.raises(ValueError, match="got number 99"):
        read_gguf(path)


@pytest.mark.slow
def test_a_damaged_header_is_a_finding_and_never_takes_the_machine(
    exported: Exported, small: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Bytes changed, lengths that no file has, a file cut anywhere: an error of the reader, in no more memory than the file."""
    llama_bench.emit(exported(small["top2"], weights=True), tmp_path)
    path = tmp_path / "model.gguf"
    content = path.read_bytes()
    header = content.index(b"blk.1.ffn_down_exps.weight") + 100
    generator = np.random.default_rng(0)
    tracemalloc.start()
    refused = 0
    for trial in range(400):
        damaged = bytearray(content if trial % 4 else content[: generator.integers(header)])
        for place in generator.integers(0, min(header, len(damaged) or 1), 1 + trial % 3):
            wide = min(len(damaged), int(place) + (8 if trial % 2 else 1))
            damaged[place:wide] = generator.choice([b"\xff", b"\x00", b"\x7f"]) * (wide - int(place))
        path.write_bytes(damaged)
        try:
            metadata, held = read_gguf(path)
            architecture_in(metadata, held)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError):
            refused += 1
    assert tracemalloc.get_traced_memory()[1] < 4 * len(content) + 10**7
    tracemalloc.stop()
    assert refused > 200


@pytest.mark.parametrize(
    ("study", "stacks", "expected"),
    [
        ({"precision": "q5_k_m"}, ("hf", "llama_bench"), "q5_k_m"),
        ({"precision": "q5_k_m"}, ("hf",), "f16"),
        ({"precision": "w4a16"}, ("llama_bench",), "f16"),
        ({"precisions": ["q5_k_m", "q8_0"]}, ("llama_bench",), "f16"),
    ],
)
def test_a_studys_format_is_the_files(
    study: dict[str, Any], stacks: tuple[str, ...], expected: str, problem_of: Callable[..., Any]
) -> None:
    assert usual_format(problem_of(**study).scenario, stacks) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "gguf", "warned"), [("int8", None, True), ("int8", "q8_0", False), ("fp16", None, False)]
)
def test_weights_of_another_format_than_predicted_are_a_caution(
    precision: str, gguf: str | None, warned: bool, inside: Callable[..., Any]
) -> None:
    assert inside("run", "--algo", "random", "--evaluations", 20, "--precision", precision, "--out", "run").code == 0
    named = () if gguf is None else ("--gguf", gguf)
    exported = inside("export", "run", "--select", "best", "--to", "llama_bench", *named, "--out", "out")
    assert (f"weights are f16, not {precision}" in " ".join(exported.out.split())) is warned
