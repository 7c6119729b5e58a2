"""GGUF files for llama.cpp with random weights, and the tokenizer where it is byte-level BPE of the vocabulary's size.

The weights are the very ones of the Hugging Face directory, rounded to the types of the model's format; norms, routers,
convolutions and decays are 32-bit. A tokenizer is held if it splits text as GPT-2 does; of others a file has none.
Source: the GGUF specification, version 3; `src/llama-vocab.cpp` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nas.export.checkpoint import Tensor, blocks, tensors
from nas.export.families import family_of
from nas.export.gguf_formats import FORMATS
from nas.export.model import Model
from nas.export.tokenizer import Tokenizer, ids_in
from objectives import outside
from plas_stacks.gguf_classes import NAMES, Floats, Piece, attention_layers, class_name, further, pieces, shaped, sizes
from plas_stacks.gguf_types import TYPES, Mixture, Type, encoded

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
FORMS = {UINT32: "<I", FLOAT32: "<f", BOOL: "<?"}
QUANTISATION_VERSION = 2  # of the layouts of blocks
KEY = "tokenizer.ggml"
NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # types of entries
PLAIN = {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"}


@dataclass
class Entry:
    """A GGUF tensor made of one checkpoint tensor, or of one per expert."""

    name: str
    shape: tuple[int, ...]
    kind: Type
    piece: Piece
    parts: list[tuple[int, Tensor]]

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the data, without padding."""
        return self.kind.size(self.size)


def holds(model: Model) -> bool:
    """Whether this writer knows the class: Llama's q and k would have to be permuted."""
    return family_of(model.architecture).model_type in NAMES


def entries(model: Model) -> list[Entry]:
    """Every tensor, the experts of a layer stacked."""
    by_name: dict[str, Entry] = {}
    types = mixture(model)
    for number, tensor in enumerate([*tensors(model), *further(model)]):
        expert = ".experts." in tensor.name
        for piece in pieces(model, tensor):
            name, flat = piece.name, shaped(piece.name, tensor.shape, piece)
            shape = (model.column("n_experts"), *flat) if expert else flat
            made = by_name.setdefault(name, Entry(name, shape, types.type_of(name, shape), piece, []))
            made.parts.append((number, tensor))
    return list(by_name.values())


def mixture(model: Model) -> Mixture:
    """The quantities that decide the types of its tensors."""
    tied, layers = bool(model.architecture.tied[0]), attention_layers(model)
    return Mixture(model.gguf, model.column("depth"), model.column("n_experts"), tied, class_name(model), layers)


def fallbacks(model: Model) -> dict[tuple[int, Type, Type], list[str]]:
    """Tensors whose rows the format's blocks do not divide: row length, wanted and written type, and which they are."""
    parts_by_types: dict[tuple[int, Type, Type], list[str]] = {}
    types = mixture(model)
    for entry in entries(model):
        wanted = types.wanted(entry.name, entry.shape)
        if wanted is not entry.kind:
            part = entry.name.removesuffix(".weight").rpartition(".")[2]
            names = parts_by_types.setdefault((entry.shape[-1], wanted, entry.kind), [])
            names += [part] * (part not in names)
    return parts_by_types


def bits_per_weight(model: Model) -> float:
    """Bits of the whole file's data per parameter."""
    held = entries(model)
    return 8 * sum(entry.bytes for entry in held) / sum(entry.size for entry in held)


def keys(model: Model) -> dict[str, Any]:
    """The metadata."""
    name = class_name(model)
    return {
        "general.architecture": name,
        "general.name": model.folder,
        "general.file_type": FORMATS[model.gguf],
        **({} if model.gguf == "f16" else {"general.quantization_version": QUANTISATION_VERSION}),
        **{f"{name}.{key}": value for key, value in sizes(model).items()},
        **tokenizer_keys(model.tokenizer, model.column("vocabulary")),
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
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, list) and (not value or isinstance(value[0], str)):
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_text, value))
    if isinstance(value, list):
        kind, form = (BOOL, "?") if isinstance(value[0], bool) else (INT32, "i")
        return struct.pack(f"<IIQ{len(value)}{form}", ARRAY, kind, len(value), *value)
    return struct.pack("<If", FLOAT32, value) if isinstance(value, float) else struct.pack("<II", UINT32, value)


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (-file.tell() % ALIGNMENT))


def _data(entry: Entry, seed: int) -> Iterator[bytes]:
    for number, part in entry.parts:
        for values in _grouped(part, entry.piece, seed, number):
            yield encoded(values, entry.kind)


def _grouped(part: Tensor, piece: Piece, seed: int, number: int) -> Iterator[Floats]:
    """A checkpoint tensor's values block by block; of a piece that changes them group by group."""
    stream = ((bits.astype(np.uint32) << np.uint32(16)).view(np.float32) for bits in blocks(part, seed, number))
    if piece.change is None:
        yield from stream
        return
    size, held = part.size // piece.groups, np.zeros(0, np.float32)
    for values in stream:
        held = np.concatenate([held, values])
        while len(held) >= size:
            yield piece.change(held[:size])
            held = held[size:]


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, tuple[int, tuple[int, ...]]]]:
    """Metadata, and type and shape per tensor, of a file that `write_gguf` wrote.

    Raises:
        ValueError: another format, or a file that is cut short.
    """
    with outside.opened(path) as file:
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
            end = max(end, offset + _tensor_type(kind).size(prod(shape)))
        wanted = file.tell() + -file.tell() % ALIGNMENT + end
    if path.stat().st_size < wanted:
        raise ValueError(f"{path.name}: expected {wanted} bytes, got {path.stat().st_size}")
    return metadata, held


def _tensor_type(number: int) -> Type:
    if number not in TYPES:
        raise ValueError(f"expected tensor types {', '.join(t.name for t in TYPES.values())}, got number {number}")
    return TYPES[number]


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    try:
        return struct.unpack(form, _taken(file, struct.calcsize(form)))
    except struct.error:
        raise ValueError("expected a GGUF file, got lengths that no file has") from None


def _taken(file: BinaryIO, size: int) -> bytes:
    """The next bytes, never more than are there."""
    if size > os.fstat(file.fileno()).st_size - file.tell():
        raise ValueError("expected a whole GGUF file, got one cut short")
    return file.read(size)


def _read_text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    return _taken(file, length).decode()


def _read_value(file: BinaryIO) -> Any:
    (kind,) = _unpack(file, "<I")
    if kind == STRING:
        return _read_text(file)
    if kind == ARRAY:
        of, count = _unpack(file, "<IQ")
        if of == STRING:
            return [_read_text(file) for _ in range(count)]
        if of not in (INT32, BOOL):
            raise ValueError(f"expected arrays of types {INT32}, {BOOL} or {STRING}, got {of}")
        return list(_unpack(file, f"<{count}{'?' if of == BOOL else 'i'}"))
    if kind not in FORMS:
        raise ValueError(f"expected types {', '.join(map(str, FORMS))}, {STRING} or {ARRAY}, got {kind}")
    return _unpack(file, FORMS[kind])[0]


def holds_tokenizer(tokenizer: Tokenizer, vocabulary: int) -> bool:
    """Whether a file of a vocabulary can hold a tokenizer: one of exactly that size, split as llama.cpp splits for GPT-2."""
    return tokenizer.size == vocabulary and splits_as_gpt2(tokenizer)


def tokenizer_keys(tokenizer: Tokenizer, vocabulary: int) -> dict[str, Any]:
    """The metadata of a tokenizer: entries, their types, merges, special ids; where a file cannot hold it, that there is none."""
    if not holds_tokenizer(tokenizer, vocabulary):
        return {f"{KEY}.model": "none"}
    content = outside.parsed(tokenizer.files["tokenizer.json"].decode())
    ids, added = ids_in(content), {entry["content"]: entry for entry in content.get("added_tokens") or []}
    tokens = sorted(ids, key=ids.__getitem__)
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"].get("merges", [])]
    return {
        f"{KEY}.model": "gpt2",
        f"{KEY}.pre": "gpt-2",
        f"{KEY}.tokens": tokens,
        f"{KEY}.token_type": [_entry_type(added.get(token)) for token in tokens],
        f"{KEY}.merges": merges,
        f"{KEY}.bos_token_id": tokenizer.eos if tokenizer.bos is None else tokenizer.bos,  # else llama.cpp takes 11
        f"{KEY}.eos_token_id": tokenizer.eos,
        f"{KEY}.padding_token_id": tokenizer.pad,
        f"{KEY}.add_bos_token": False,
    }


def tokenizer_digest(metadata: Mapping[str, Any]) -> str:
    """The tokenizer of a file's metadata in a few words, with a hash of everything that it holds."""
    held = {key: value for key, value in metadata.items() if key.startswith(f"{KEY}.")}
    digest = hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()[:12]
    return f"{held.get(f'{KEY}.model')} of {len(held.get(f'{KEY}.tokens', [])):,} tokens, {digest}"


def splits_as_gpt2(tokenizer: Tokenizer) -> bool:
    """Whether text is split and merged as by GPT-2; without merges bytes stay bytes, however it is split."""
    content = outside.parsed(tokenizer.files["tokenizer.json"].decode())
    model, before = content.get("model"), content.get("pre_tokenizer")
    if not isinstance(model, dict) or not isinstance(before, dict):
        return False
    if model.get("type") != "BPE" or any(model.get(name) for name in PLAIN) or content.get("normalizer") is not None:
        return False
    level = before.get("type") == "ByteLevel" and not before.get("add_prefix_space")
    ids = ids_in(content).values()
    return level and (before.get("use_regex", True) or not model.get("merges")) and sorted(ids) == list(range(len(ids)))


def _entry_type(added: Mapping[str, Any] | None) -> int:
    if added is None:
        return NORMAL
    return CONTROL if added.get("special") else USER_DEFINED
