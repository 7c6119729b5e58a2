"""Random weights as safetensors in bfloat16, written block by block in bounded memory, without torch."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas.export.model import Model
from nas.export.tensors import Tensor, tensors
from objectives import outside

MOST_HEADER = 100 * outside.MB  # as the format has it
BLOCK = 1 << 20  # elements drawn at once
SHARD_BYTES = 5_000_000_000
BYTES = 2  # bfloat16
INDEX = "model.safetensors.index.json"


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
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= _read_header(path)
    return found


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
