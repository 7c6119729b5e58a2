"""GGUF files for llama.cpp with random weights and no tokenizer: speed can be measured, text cannot be made.

The weights are the very ones of the Hugging Face directory, rounded to the types of the model's format; norms and router
are 32-bit. Source: the GGUF specification, version 3.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nas.exporting.class_keys import NORM_EPSILON, ROPE_THETA
from nas.exporting.families import family_of
from nas.exporting.gguf_blocks import encoded
from nas.exporting.gguf_types import FORMATS, TYPES, Mixture, Type
from nas.exporting.model import Model
from nas.exporting.tensors import Tensor, tensors
from nas.exporting.weights import blocks
from search_spaces.architectures import Architectures, one

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
UINT32, FLOAT32, STRING = 4, 6, 8
QUANTISATION_VERSION = 2  # of the layouts of blocks
NAMES = {"qwen3": "qwen3", "qwen3_moe": "qwen3moe", "qwen2": "qwen2"}
PARTS = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    **{f"self_attn.{n}_proj.{kind}": f"attn_{n}.{kind}" for n in "qkv" for kind in ("weight", "bias")},
    **{f"mlp.{n}_proj.weight": f"ffn_{n}.weight" for n in ("gate", "up", "down")},
    "mlp.gate.weight": "ffn_gate_inp.weight",
}
WHOLE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


@dataclass
class Entry:
    """A GGUF tensor made of one checkpoint tensor, or of one per expert."""

    name: str
    shape: tuple[int, ...]
    kind: Type
    parts: list[tuple[int, Tensor]]

    @property
    def size(self) -> int:
        """Elements."""
        return sum(part.size for _, part in self.parts)

    @property
    def bytes(self) -> int:
        """Bytes of the data, without padding."""
        return self.kind.size(self.size)


def holds(model: Model) -> bool:
    """Whether this writer knows the class: Llama's q and k would have to be permuted."""
    return family_of(model.architecture).model_type in NAMES


def entries(model: Model) -> list[Entry]:
    """Every tensor, the experts of a layer stacked."""
    found: dict[str, Entry] = {}
    types = mixture(model)
    for number, tensor in enumerate(tensors(model)):
        name, expert = _renamed(tensor.name)
        shape = (model.column("n_experts"), *tensor.shape) if expert else tensor.shape
        found.setdefault(name, Entry(name, shape, types.type_of(name, shape), [])).parts.append((number, tensor))
    return list(found.values())


def mixture(model: Model) -> Mixture:
    """What decides the types of its tensors."""
    name, tied = family_of(model.architecture).model_type, bool(model.architecture.tied[0])
    return Mixture(model.gguf, model.column("depth"), model.column("n_experts"), tied, name)


def fallbacks(model: Model) -> dict[tuple[int, Type, Type], list[str]]:
    """Tensors whose rows the format's blocks do not divide: row length, wanted and written type, and which they are."""
    found: dict[tuple[int, Type, Type], list[str]] = {}
    types = mixture(model)
    for entry in entries(model):
        wanted = types.wanted(entry.name, entry.shape)
        if wanted is not entry.kind:
            part = entry.name.removesuffix(".weight").rpartition(".")[2]
            names = found.setdefault((entry.shape[-1], wanted, entry.kind), [])
            names += [part] * (part not in names)
    return found


def bits_per_weight(model: Model) -> float:
    """Bits of the whole file's data per parameter."""
    held = entries(model)
    return 8 * sum(entry.bytes for entry in held) / sum(entry.size for entry in held)


def _renamed(name: str) -> tuple[str, bool]:
    if name in WHOLE:
        return WHOLE[name], False
    _, _, layer, part = name.split(".", 3)
    if ".experts." in part:
        return f"blk.{layer}.ffn_{part.split('.')[3].removesuffix('_proj')}_exps.weight", True
    return f"blk.{layer}.{PARTS[part]}", False


def keys(model: Model) -> dict[str, Any]:
    """The metadata."""
    name, q = NAMES[family_of(model.architecture).model_type], model.column
    experts = {
        f"{name}.expert_count": q("n_experts"),
        f"{name}.expert_used_count": q("top_k"),
        f"{name}.expert_feed_forward_length": q("expert_size"),
    }
    return {
        "general.architecture": name,
        "general.name": model.folder,
        "general.file_type": FORMATS[model.gguf][1],
        **({} if model.gguf == "f16" else {"general.quantization_version": QUANTISATION_VERSION}),
        f"{name}.vocab_size": q("vocabulary"),
        f"{name}.context_length": model.context,
        f"{name}.embedding_length": q("width"),
        f"{name}.block_count": q("depth"),
        f"{name}.feed_forward_length": q("top_k") * q("expert_size"),
        f"{name}.attention.head_count": q("n_heads"),
        f"{name}.attention.head_count_kv": q("n_kv_heads"),
        f"{name}.attention.key_length": q("head_dim"),
        f"{name}.attention.value_length": q("head_dim"),
        f"{name}.attention.layer_norm_rms_epsilon": NORM_EPSILON,
        f"{name}.rope.freq_base": float(ROPE_THETA),
        **(experts if model.sparse else {}),
        "tokenizer.ggml.model": "none",
    }


def write_gguf(path: Path, model: Model) -> None:
    """The file, its data in bounded memory.

    Raises:
        OSError: no space left, not writable.
    """
    held = entries(model)
    with path.open("wb") as file:
        file.write(_head(keys(model), held))
        _pad(file)
        for entry in held:
            for block in _data(entry, model.seed):
                file.write(block)
            _pad(file)


def _head(metadata: dict[str, Any], held: list[Entry]) -> bytes:
    out = MAGIC + struct.pack("<IQQ", VERSION, len(held), len(metadata))
    for key, value in metadata.items():
        out += _text(key) + _value(value)
    offset = 0
    for entry in held:
        dimensions = entry.shape[::-1]
        out += _text(entry.name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        out += struct.pack("<IQ", entry.kind.number, offset)
        offset += entry.bytes + -entry.bytes % ALIGNMENT
    return out


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    return struct.pack("<If", FLOAT32, value) if isinstance(value, float) else struct.pack("<II", UINT32, value)


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (-file.tell() % ALIGNMENT))


def _data(entry: Entry, seed: int) -> Iterator[bytes]:
    for number, part in entry.parts:
        for bits in blocks(part, seed, number):
            values = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
            yield encoded(values, entry.kind)


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, tuple[int, tuple[int, ...]]]]:
    """Metadata, and type and shape per tensor, of a file that `write_gguf` wrote.

    Raises:
        ValueError: another format, or a file that is cut short.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError(f"{path.name}: expected a GGUF file, got another format")
        _, tensor_count, key_count = _unpack(file, "<IQQ")
        metadata = {_read_text(file): _read_value(file) for _ in range(key_count)}
        held, end = {}, 0
        for _ in range(tensor_count):
            name, (rank,) = _read_text(file), _unpack(file, "<I")
            shape = _unpack(file, f"<{rank}Q")[::-1]
            kind, offset = _unpack(file, "<IQ")
            held[name] = (kind, shape)
            end = max(end, offset + _type(kind).size(int(np.prod(shape))))
        wanted = file.tell() + -file.tell() % ALIGNMENT + end
    if path.stat().st_size < wanted:
        raise ValueError(f"{path.name}: expected {wanted} bytes, got {path.stat().st_size}")
    return metadata, held


def _type(number: int) -> Type:
    if number not in TYPES:
        raise ValueError(f"expected tensor types {', '.join(t.name for t in TYPES.values())}, got number {number}")
    return TYPES[number]


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    content = file.read(struct.calcsize(form))
    if len(content) < struct.calcsize(form):
        raise ValueError("expected a whole GGUF file, got one cut short")
    return struct.unpack(form, content)


def _read_text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    return bytes(file.read(length)).decode()


def _read_value(file: BinaryIO) -> Any:
    (kind,) = _unpack(file, "<I")
    if kind == STRING:
        return _read_text(file)
    if kind not in (UINT32, FLOAT32):
        raise ValueError(f"expected types {UINT32}, {FLOAT32} or {STRING}, got {kind}")
    return _unpack(file, "<f" if kind == FLOAT32 else "<I")[0]


def architecture_in(metadata: dict[str, Any], held: dict[str, tuple[int, tuple[int, ...]]]) -> Architectures:
    """The architecture that a file holds; flags are read from which tensors are there."""
    name = metadata["general.architecture"]
    q = {key.removeprefix(f"{name}."): value for key, value in metadata.items()}
    return one(
        {
            "depth": q["block_count"],
            "width": q["embedding_length"],
            "head_dim": q["attention.key_length"],
            "n_heads": q["attention.head_count"],
            "n_kv_heads": q["attention.head_count_kv"],
            "n_experts": q.get("expert_count", 1),
            "top_k": q.get("expert_used_count", 1),
            "expert_size": q.get("expert_feed_forward_length", q["feed_forward_length"]),
            "qk_norm": "head" if "blk.0.attn_q_norm.weight" in held else "no",
            "qkv_bias": "blk.0.attn_q.bias" in held,
            "tied": "output.weight" not in held,
            "vocabulary": q["vocab_size"],
        }
    )
