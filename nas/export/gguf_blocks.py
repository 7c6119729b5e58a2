"""Values in the blocks of GGUF's quantised types, (n,) float32 to bytes.

The types of 32 round as llama.cpp's reference does, bit for bit. The K types keep its layout and its rule for the scales of scales,
but take every group's scale from its extremes, where the reference searches for the one of least error: as large, as fast, a
little coarser. Source: `ggml/src/ggml-quants.c` of llama.cpp.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nas.export.gguf_types import F16, F32, MXFP4, Q4_0, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, Type

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
HALF = "<f2"
FOUR, LOW = np.uint8(4), np.uint8(15)  # bits
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)  # doubled


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
