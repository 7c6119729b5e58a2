"""Tensor types of GGUF files: which type each tensor has in a weight format, and values in the blocks of a type.

A format is a mixture of types, by class of tensor in `objectives/weight_formats`; which layers keep more bits, and what exactly
8 experts change, is here. The choice is llama-quantize's, so that a file written here is read at the same speed as one made
by it. The types of 32 round as llama.cpp's reference does, bit for bit. The K types keep its layout and its rule for the scales of
scales, but take every group's scale from its extremes, where the reference searches for the one of least error: as large, as fast, a
little coarser. Source: `src/llama-quant.cpp` and `ggml/src/ggml-quants.c` of llama.cpp 0.5.0 (llama-cpp-python 0.3.36).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas.export.gguf_formats import FORMATS
from objectives.weight_formats.table import TYPES as BLOCKS
from objectives.weight_formats.table import WEIGHT_FORMATS, BlockType, TensorClass

NUMBERS = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q5_0": 6,
    "Q5_1": 7,
    "Q8_0": 8,
    "Q4_K": 12,
    "Q5_K": 13,
    "Q6_K": 14,
    "MXFP4": 39,
}
#: Never quantised, whatever their shape.
WHOLE = ("ffn_gate_inp.weight", "shortconv.conv.weight", "ssm_conv1d.weight", "_norm.weight", "ssm_a", "ssm_d")
EIGHT = 8  # experts, with which llama-quantize spares keys and values
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
HALF = "<f2"
FOUR, LOW = np.uint8(4), np.uint8(15)  # bits
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)  # doubled


@dataclass(frozen=True)
class Type:
    """A tensor type: its number in the file, and bytes per block of elements of a row."""

    name: str
    number: int
    block: int
    bytes: int

    def size(self, elements: int) -> int:
        """Bytes of so many elements, whole blocks."""
        return elements // self.block * self.bytes


def _type(block: BlockType) -> Type:
    return Type(block.name, NUMBERS[block.name], block.weights, int(block.bytes))


BY_NAME = {name: _type(BLOCKS[name]) for name in NUMBERS}
TYPES = {each.number: each for each in BY_NAME.values()}
F32, F16, Q4_0, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4 = BY_NAME.values()


@dataclass(frozen=True)
class Mixture:
    """The quantities that decide the types of a model's tensors besides their shapes; `attention`: places of the layers with keys and values."""

    format: str
    depth: int
    n_experts: int
    tied: bool
    name: str
    attention: list[int]

    def type_of(self, tensor: str, shape: tuple[int, ...]) -> Type:
        """The type that a tensor is written in."""
        return fitting(self.wanted(tensor, shape), shape)

    def wanted(self, tensor: str, shape: tuple[int, ...]) -> Type:
        """The type that it would have if its rows were multiples of every block."""
        if len(shape) == 1 or tensor.endswith(WHOLE):
            return F32
        if tensor == ("token_embd.weight" if self.tied else "output.weight"):
            return self._types("head")[0]
        if tensor == "token_embd.weight":
            return self._types("embedding")[0]
        return self._in_a_layer(tensor)

    def _types(self, kind: TensorClass) -> list[Type]:
        """The types of a class of tensors, the usual one first."""
        return [
            BY_NAME[each.name] for each in WEIGHT_FORMATS[{"f16": "fp16"}.get(self.format, self.format)].types_of(kind)
        ]

    def _in_a_layer(self, tensor: str) -> Type:
        _, _, rest = tensor.partition(".")
        layer, _, part = rest.partition(".")
        eight = self.n_experts == EIGHT and self.format != "f16"
        if eight and part in ("attn_k.weight", "attn_v.weight"):
            return Q8_0
        if eight and part == "attn_output.weight" and self.format == "q4_k_m":
            return Q5_K
        usual, *more = self._types(class_of(part))
        if more:
            values = part == "attn_v.weight"  # which are counted among themselves
            place, of = (self.attention.index(int(layer)), len(self.attention)) if values else (int(layer), self.depth)
            if more_bits(place, of):
                return more[0]
            if values and usual is Q4_K and (self.name, self.depth) == ("qwen2", 80):  # taken for a 70B
                return Q5_K
        return usual


def class_of(part: str) -> TensorClass:
    """The class of a matrix of a layer by its name in the file: `ffn_down_exps.weight` is of `expert_down`."""
    if part.endswith("_exps.weight"):
        return "expert_down" if part.startswith("ffn_down") else "experts"
    if part == "attn_v.weight":
        return "values"
    return "down" if part.startswith("ffn_down") else "weights"


def format_numbered(number: int) -> str:
    """The format of a `general.file_type`.

    Raises:
        ValueError: none of ours.
    """
    for name, listed in FORMATS.items():
        if listed == number:
            return name
    raise ValueError(f"general.file_type: expected one of {', '.join(FORMATS)}, got number {number}")


def more_bits(layer: int, depth: int) -> bool:
    """Layers whose values and down projections have the second of two types, Q4_K_M's in 6 bits: the first and last eighth, and every third between."""
    eighth = depth // 8
    return layer < eighth or layer >= 7 * depth // 8 or (layer - eighth) % 3 == 2


def fitting(wanted: Type, shape: tuple[int, ...]) -> Type:
    """The type itself, else the nearest whose blocks divide a row."""
    return BY_NAME[BLOCKS[wanted.name].fitting(shape[-1]).name]


def encoded(values: Floats, kind: Type) -> bytes:
    """The bytes of whole blocks in a type."""
    if kind in (F32, F16):
        return values.astype("<f4" if kind is F32 else HALF).tobytes()
    return WRITERS[kind](values.reshape(-1, kind.block)).tobytes()


def _halves(values: Floats) -> Bytes:
    """16-bit floats as bytes, two per value, in the last axis."""
    return values.astype(HALF).view(np.uint8)


def _inverse(values: Floats) -> Floats:
    """1 / x, and 0 of 0."""
    return np.divide(np.float32(1), values, out=np.zeros_like(values), where=values != 0)


def _extreme(x: Floats) -> Floats:
    """The value of largest magnitude in each row, with its sign, (rows, 1)."""
    return np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1)


def _nibbles(codes: Bytes) -> Bytes:
    """4-bit codes (…, 2 n) as n bytes: the first half low, the second high."""
    half = codes.shape[-1] // 2
    return codes[..., :half] | codes[..., half:] << FOUR


def _fifth_bits(codes: Bytes) -> Bytes:
    """The fifth bits of 32 codes as four bytes, the first code's lowest."""
    return np.packbits(codes >> 4, axis=-1, bitorder="little")


def _q8_0(x: Floats) -> Bytes:
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    size = np.abs(x * _inverse(scale))
    whole = np.floor(size)
    codes = np.copysign(whole + np.floor(2 * (size - whole)), x).astype(np.int8)  # halves away from zero
    return np.concatenate([_halves(scale), codes.view(np.uint8)], axis=-1)


def _signed(x: Floats, levels: int) -> tuple[Floats, Bytes]:
    """Scale and codes of a block around zero: the extreme is code 0."""
    scale = _extreme(x) / np.float32(-levels // 2)
    codes = (x * _inverse(scale) + np.float32(levels // 2 + 0.5)).astype(np.int8)
    return scale, np.minimum(codes, levels - 1).astype(np.uint8)


def _q4_0(x: Floats) -> Bytes:
    scale, codes = _signed(x, 16)
    return np.concatenate([_halves(scale), _nibbles(codes)], axis=-1)


def _q5_0(x: Floats) -> Bytes:
    scale, codes = _signed(x, 32)
    return np.concatenate([_halves(scale), _fifth_bits(codes), _nibbles(codes & LOW)], axis=-1)


def _q5_1(x: Floats) -> Bytes:
    least = x.min(-1, keepdims=True)
    scale = (x.max(-1, keepdims=True) - least) / np.float32(31)
    codes = ((x - least) * _inverse(scale) + np.float32(0.5)).astype(np.uint8)
    return np.concatenate([_halves(scale), _halves(least), _fifth_bits(codes), _nibbles(codes & LOW)], axis=-1)


def _offset_groups(x: Floats, levels: int) -> tuple[Bytes, Bytes]:
    """Head of 16 bytes and codes (blocks, 8, 32) of groups with a 6-bit scale and a 6-bit offset each."""
    groups = x.reshape(-1, 8, 32)
    low = np.minimum(groups.min(-1), np.float32(0))
    parts = []
    for wanted in ((groups.max(-1) - low) / np.float32(levels - 1), -low):
        step = wanted.max(-1, keepdims=True) / np.float32(63)
        parts.append((step, np.rint(wanted * _inverse(step)).astype(np.uint8)))
    (step, scales), (offset_step, offsets) = parts
    real_scale = step.astype(HALF).astype(np.float32) * scales
    real_offset = offset_step.astype(HALF).astype(np.float32) * offsets
    codes = np.rint((groups + real_offset[..., None]) * _inverse(real_scale)[..., None])
    head = np.concatenate([_halves(step), _halves(offset_step), _six_bits(scales, offsets)], axis=-1)
    return head, np.clip(codes, 0, levels - 1).astype(np.uint8)


def _six_bits(scales: Bytes, offsets: Bytes) -> Bytes:
    """Eight scales and eight offsets of 6 bits in 12 bytes."""
    first = scales[:, :4] | scales[:, 4:] >> 4 << 6
    second = offsets[:, :4] | offsets[:, 4:] >> 4 << 6
    return np.concatenate([first, second, scales[:, 4:] & 15 | (offsets[:, 4:] & 15) << 4], axis=-1)


def _q4_k(x: Floats) -> Bytes:
    head, codes = _offset_groups(x, 16)
    return np.concatenate([head, _nibbles(codes.reshape(-1, 4, 64)).reshape(len(x), -1)], axis=-1)


def _q5_k(x: Floats) -> Bytes:
    head, codes = _offset_groups(x, 32)
    high = np.packbits(codes >> 4, axis=1, bitorder="little").reshape(len(x), 32)
    return np.concatenate([head, high, _nibbles(codes.reshape(-1, 4, 64) & LOW).reshape(len(x), -1)], axis=-1)


def _q6_k(x: Floats) -> Bytes:
    groups = x.reshape(-1, 16, 16)
    wanted = _extreme(groups)[..., 0] / np.float32(-32)
    step = _extreme(wanted) / np.float32(-128)
    scales = np.minimum(np.rint(wanted * _inverse(step)), 127).astype(np.int8)
    real = step.astype(HALF).astype(np.float32) * scales
    codes = np.clip(np.rint(groups * _inverse(real)[..., None]), -32, 31) + 32
    quarters = codes.astype(np.uint8).reshape(-1, 2, 4, 32)
    low = _nibbles((quarters & LOW).reshape(-1, 2, 128))
    high = np.bitwise_or.reduce(quarters >> 4 << np.array([0, 2, 4, 6], np.uint8)[:, None], axis=2)
    parts = [low.reshape(len(x), 128), high.reshape(len(x), 64), scales.view(np.uint8), _halves(step)]
    return np.concatenate(parts, axis=-1)


def _mxfp4(x: Floats) -> Bytes:
    """A power of two and the nearest of 16 elements of E2M1, halves to the earlier of the table."""
    largest = np.abs(x).max(-1, keepdims=True)
    exponent = np.where(largest > 0, np.frexp(largest)[1] + 124, 0)
    step = np.ldexp(np.float32(1), exponent - 128).astype(np.float32)
    codes = np.abs(E2M1 * step[..., None] - x[..., None]).argmin(-1).astype(np.uint8)
    return np.concatenate([exponent.astype(np.uint8), _nibbles(codes)], axis=-1)


WRITERS: dict[Type, Callable[[Floats], Bytes]] = {
    Q4_0: _q4_0,
    Q5_0: _q5_0,
    Q5_1: _q5_1,
    Q8_0: _q8_0,
    Q4_K: _q4_k,
    Q5_K: _q5_k,
    Q6_K: _q6_k,
    MXFP4: _mxfp4,
}
