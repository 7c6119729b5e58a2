"""A Hugging Face checkpoint: its tensors in order, each with shape and initialisation, and random weights of them as safetensors.

Weights are bfloat16, written block by block in bounded memory, without torch.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.export.families import FULL, family_of, in_order
from nas.export.model import Model
from objectives import outside
from search_spaces.columns import QK_NORMS

#: What LFM2's classes call otherwise than Qwen's.
LFM2_NAMES = {
    "model.norm.": "model.embedding_norm.",
    "input_layernorm.": "operator_norm.",
    "post_attention_layernorm.": "ffn_norm.",
    "self_attn.o_proj.": "self_attn.out_proj.",
    "self_attn.q_norm.": "self_attn.q_layernorm.",
    "self_attn.k_norm.": "self_attn.k_layernorm.",
    "mlp.": "feed_forward.",
    "gate_proj.": "w1.",
    "up_proj.": "w3.",
    "down_proj.": "w2.",
}
FOUR_NORMS = 4  # of a layer: before and after attention, before and after the FFN
FASTEST_DECAY = 16.0  # of Gated DeltaNet's heads, whose decays transformers draws evenly below it
MOST_HEADER = 100 * outside.MB  # as the format has it
BLOCK = 1 << 20  # elements drawn at once
SHARD_BYTES = 5_000_000_000
BYTES = 2  # bfloat16
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Tensor:
    """One tensor; `std` 0 is a constant of `mean`, `decays` d the logarithms of n even steps up to d, a buffer no parameter."""

    name: str
    shape: tuple[int, ...]
    std: float
    mean: float = 0.0
    decays: float = 0.0
    buffer: bool = False

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)


def tensors(model: Model) -> Iterator[Tensor]:
    """Every tensor of a model; what ends a residual branch has the recipe's residual deviation."""
    names = LFM2_NAMES if family_of(model.architecture).model_type.startswith("lfm2") else {}
    for tensor in _all(model):
        name = tensor.name
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        yield replace(tensor, name=name)


def _all(model: Model) -> Iterator[Tensor]:
    width, vocabulary, std = model.column("width"), model.column("vocabulary"), model.schedule.std
    owners = model.column("depth") - model.column("n_kv_shared")
    gemma4 = family_of(model.architecture).model_type == "gemma4_text"
    scalar = [Tensor("layer_scalar", (1,), 0.0, 1.0, buffer=True)] * gemma4  # the factor of a layer's features
    yield Tensor("model.embed_tokens.weight", (vocabulary, width), std)
    for place, kind in enumerate(in_order(model.architecture)):
        mixer = MIXERS[kind](model) if place < owners else _attention(model, own_kv=False)
        for tensor in (_norm(model, "input_layernorm", width), *mixer, *_ffn_branch(model, place), *scalar):
            yield replace(tensor, name=f"model.layers.{place}.{tensor.name}")
    yield _norm(model, "model.norm", width)
    if not model.architecture.tied[0]:
        yield Tensor("lm_head.weight", (vocabulary, width), std)
    if model.served.drafter == "mtp":
        yield from _head_that_drafts(model)


def _head_that_drafts(model: Model) -> Iterator[Tensor]:
    """Multi-token prediction: norms of embedding and features, a projection of both, a layer of full attention, a norm.

    Source: vllm-project/vllm vllm/model_executor/models/qwen3_next_mtp.py, whose names these are.
    """
    width, plan = model.column("width"), model.schedule
    yield Tensor("mtp.fc.weight", (width, 2 * width), plan.std)
    for tensor in (
        _norm(model, "input_layernorm", width),
        *_attention(model),
        *_ffn_branch(model, model.column("depth")),
    ):
        yield replace(tensor, name=f"mtp.layers.0.{tensor.name}")
    for name in ("mtp.norm", "mtp.pre_fc_norm_hidden", "mtp.pre_fc_norm_embedding"):
        yield _norm(model, name, width)


def _norm(model: Model, name: str, size: int) -> Tensor:
    """A norm's weight, 1 at first; Qwen3-Next's classes and those of Gemma 2 and 3 keep what is added to 1."""
    about_zero = family_of(model.architecture).model_type in ("qwen3_next", "gemma2", "gemma3_text")
    return Tensor(f"{name}.weight", (size,), 0.0, 0.0 if about_zero else 1.0)


def _attention(model: Model, *, own_kv: bool = True) -> Iterator[Tensor]:
    """Projections and norms; keys and values where the layer has its own."""
    a, q, plan = model.architecture, model.column, model.schedule
    d, query, kv = q("width"), int(a.query_dim[0]), int(a.kv_dim[0])
    queries = 2 * query if a.attention_gate[0] else query  # an output gate is projected with them
    for name, rows in (("q", queries), ("k", kv), ("v", kv))[: 3 if own_kv else 1]:
        yield Tensor(f"self_attn.{name}_proj.weight", (rows, d), plan.std)
        if a.qkv_bias[0]:
            yield Tensor(f"self_attn.{name}_proj.bias", (rows,), 0.0)
    yield Tensor("self_attn.o_proj.weight", (d, query), plan.residual_std)
    if q("qk_norm"):
        full = QK_NORMS[q("qk_norm")] == "full"
        norm = _norm(model, "self_attn.q_norm", query if full else q("head_dim"))
        unscaled = family_of(a).model_type == "gemma4_text"  # scales no scores: it starts at the scale that others have
        yield replace(norm, mean=q("head_dim") ** -0.5) if unscaled else norm
        if own_kv:
            yield _norm(model, "self_attn.k_norm", kv if full else q("head_dim"))


def _deltanet(model: Model) -> Iterator[Tensor]:
    """Gated DeltaNet: queries, keys, values and gate in one projection, steps and decays in another."""
    q, plan, where = model.column, model.schedule, "linear_attn"
    d, heads, inner = q("width"), q("linear_heads"), q("linear_heads") * q("linear_value_dim")
    channels = 2 * q("linear_key_heads") * q("linear_key_dim") + inner
    yield Tensor(f"{where}.dt_bias", (heads,), 0.0, 1.0)
    yield Tensor(f"{where}.A_log", (heads,), 0.0, decays=FASTEST_DECAY)
    yield Tensor(f"{where}.conv1d.weight", (channels, 1, q("linear_kernel")), plan.std)
    yield Tensor(f"{where}.in_proj_qkvz.weight", (channels + inner, d), plan.std)
    yield Tensor(f"{where}.in_proj_ba.weight", (2 * heads, d), plan.std)
    yield Tensor(f"{where}.norm.weight", (q("linear_value_dim"),), 0.0, 1.0)
    yield Tensor(f"{where}.out_proj.weight", (d, inner), plan.residual_std)


def _mamba2(model: Model) -> Iterator[Tensor]:
    """Mamba2: gate, channels and steps in one projection; decays of 1 to the number of heads, as transformers starts them."""
    q, plan = model.column, model.schedule
    d, heads, inner = q("width"), q("linear_heads"), q("linear_heads") * q("linear_value_dim")
    channels = 2 * q("linear_key_heads") * q("linear_key_dim") + inner
    yield Tensor("mamba.dt_bias", (heads,), 0.0, 1.0)
    yield Tensor("mamba.A_log", (heads,), 0.0, decays=float(heads))
    yield Tensor("mamba.D", (heads,), 0.0, 1.0)
    yield Tensor("mamba.conv1d.weight", (channels, 1, q("linear_kernel")), plan.std)
    yield Tensor("mamba.conv1d.bias", (channels,), 0.0)
    yield Tensor("mamba.in_proj.weight", (inner + channels + heads, d), plan.std)
    yield Tensor("mamba.norm.weight", (inner,), 0.0, 1.0)
    yield Tensor("mamba.out_proj.weight", (d, inner), plan.residual_std)


def _convolution(model: Model) -> Iterator[Tensor]:
    """A short convolution between two gates."""
    d, plan = model.column("width"), model.schedule
    yield Tensor("conv.conv.weight", (d, 1, model.column("conv_kernel")), plan.std)
    yield Tensor("conv.in_proj.weight", (3 * d, d), plan.std)
    yield Tensor("conv.out_proj.weight", (d, d), plan.residual_std)


MIXERS = {FULL: _attention, "local": _attention, "deltanet": _deltanet, "mamba2": _mamba2, "conv": _convolution}


def _ffn_branch(model: Model, place: int) -> Iterator[Tensor]:
    """The second half of a layer: its norm, or the other three of four; experts or a dense FFN."""
    q = model.column
    yield _norm(model, "post_attention_layernorm", q("width"))
    if q("norms_per_layer") == FOUR_NORMS:
        yield _norm(model, "pre_feedforward_layernorm", q("width"))
        yield _norm(model, "post_feedforward_layernorm", q("width"))
    if family_of(model.architecture).model_type == "granitemoehybrid":
        yield from _granite_ffn(model)
    elif model.sparse and place >= q("n_dense"):
        yield from _experts(model)
    else:
        size = q("dense_size") if model.sparse else q("expert_size")
        yield from _gated(model, "mlp", size, model.schedule.residual_std)


def _experts(model: Model) -> Iterator[Tensor]:
    """The router, every expert, and a shared one behind its gate."""
    q, plan = model.column, model.schedule
    yield Tensor("mlp.gate.weight", (q("n_experts"), q("width")), plan.std)
    for expert in range(q("n_experts")):
        yield from _gated(model, f"mlp.experts.{expert}", q("expert_size"), plan.expert_std)
    if q("shared_expert_size"):
        yield from _gated(model, "mlp.shared_expert", q("shared_expert_size"), plan.residual_std)
        yield Tensor("mlp.shared_expert_gate.weight", (1, q("width")), plan.std)


def _gated(model: Model, where: str, m: int, last: float) -> Iterator[Tensor]:
    d, std = model.column("width"), model.schedule.std
    yield Tensor(f"{where}.gate_proj.weight", (m, d), std)
    yield Tensor(f"{where}.up_proj.weight", (m, d), std)
    yield Tensor(f"{where}.down_proj.weight", (d, m), last)


def _granite_ffn(model: Model) -> Iterator[Tensor]:
    """Granite keeps gate and up together, experts in one tensor, and a dense FFN as the shared expert of none."""
    q, plan = model.column, model.schedule
    d, m, experts, shared = q("width"), q("expert_size"), q("n_experts"), q("shared_expert_size")
    if model.sparse:
        yield Tensor("block_sparse_moe.router.layer.weight", (experts, d), plan.std)
        yield Tensor("block_sparse_moe.input_linear.weight", (experts, 2 * m, d), plan.std)
        yield Tensor("block_sparse_moe.output_linear.weight", (experts, d, m), plan.expert_std)
    size = shared if model.sparse else m
    yield Tensor("shared_mlp.input_linear.weight", (2 * size, d), plan.std)
    yield Tensor("shared_mlp.output_linear.weight", (d, size), plan.residual_std)


def weight_bytes(model: Model) -> int:
    """Bytes that the weights take, without headers."""
    return BYTES * sum(tensor.size for tensor in tensors(model))


def write_weights(folder: Path, model: Model) -> None:
    """model.safetensors, or shards of at most 5 GB with their index.

    The same seed gives the same bytes; every tensor has a stream of its own.

    Raises:
        OSError: no space left, not writable.
    """
    shards = _shards(list(enumerate(tensors(model))))
    names = ["model.safetensors"]
    if len(shards) > 1:
        names = [f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)]
        placed = {t.name: name for name, shard in zip(names, shards, strict=True) for _, t in shard}
        index = {"metadata": {"total_size": weight_bytes(model)}, "weight_map": placed}
        (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    for name, shard in zip(names, shards, strict=True):
        _write_shard(folder / name, shard, model.seed)


def _shards(numbered: list[tuple[int, Tensor]]) -> list[list[tuple[int, Tensor]]]:
    shards: list[list[tuple[int, Tensor]]] = [[]]
    filled = 0
    for number, tensor in numbered:
        if filled and filled + BYTES * tensor.size > SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append((number, tensor))
        filled += BYTES * tensor.size
    return shards


def _write_shard(path: Path, shard: Sequence[tuple[int, Tensor]], seed: int) -> None:
    with path.open("wb") as file:
        file.write(header([tensor for _, tensor in shard]))
        for number, tensor in shard:
            for block in blocks(tensor, seed, number):
                file.write(block.tobytes())


def header(held: Sequence[Tensor]) -> bytes:
    """The head of a safetensors file: its length, then JSON with type, shape and place of each tensor."""
    content: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for tensor in held:
        end = start + BYTES * tensor.size
        content[tensor.name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def blocks(tensor: Tensor, seed: int, number: int) -> Iterator[NDArray[np.uint16]]:
    """A tensor's elements in order as the bits of bfloat16, at most 2^20 at once."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))
    for start in range(0, tensor.size, BLOCK):
        count = min(BLOCK, tensor.size - start)
        if tensor.std:
            values = generator.standard_normal(count, dtype=np.float32)
            values *= np.float32(tensor.std)
            values += np.float32(tensor.mean)
        elif tensor.decays:
            steps = np.arange(start + 1, start + count + 1, dtype=np.float64)
            values = np.log(tensor.decays * steps / tensor.size).astype(np.float32)
        else:
            values = np.full(count, tensor.mean, dtype=np.float32)
        yield bfloat16(values)


def bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The bits of finite float32 values rounded to bfloat16, ties to even."""
    bits = values.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype("<u2")


def read_headers(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of every tensor in a directory's safetensors files.

    Raises:
        ValueError: a file that is cut short or no safetensors file.
    """
    headers = (_read_header(path) for path in sorted(folder.glob("*.safetensors")))
    return {name: entry for held in headers for name, entry in held.items()}


def _read_header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    with outside.opened(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size := os.fstat(file.fileno()).st_size, MOST_HEADER):
            raise ValueError(f"{path.name}: expected a safetensors file, got a header of {length} bytes")
        content = outside.parsed(file.read(length).decode())
    content.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in content.values()), default=0)
    if 8 + length + end != size:
        raise ValueError(f"{path.name}: expected {8 + length + end} bytes, got {size}")
    return {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in content.items()}
