"""Blocks of GGUF decoded one value after the other, as `ggml/src/ggml-quants.c` of llama.cpp does."""

import struct


def half(data: bytes, at: int) -> float:
    """A 16-bit float."""
    return float(struct.unpack_from("<e", data, at)[0])


def fifth(high: bytes, j: int) -> int:
    """The fifth bit of code j, in its place."""
    return (int.from_bytes(high, "little") >> j & 1) << 4


def q8_0(b: bytes) -> list[float]:
    return [half(b, 0) * q for q in struct.unpack_from("<32b", b, 2)]


def q4_0(b: bytes) -> list[float]:
    d, qs = half(b, 0), b[2:]
    return [d * ((q & 15) - 8) for q in qs] + [d * ((q >> 4) - 8) for q in qs]


def q5_0(b: bytes) -> list[float]:
    d, high, qs = half(b, 0), b[2:6], b[6:]
    low = [d * ((q & 15 | fifth(high, j)) - 16) for j, q in enumerate(qs)]
    return low + [d * ((q >> 4 | fifth(high, j + 16)) - 16) for j, q in enumerate(qs)]


def q5_1(b: bytes) -> list[float]:
    d, m, high, qs = half(b, 0), half(b, 2), b[4:8], b[8:]
    low = [d * (q & 15 | fifth(high, j)) + m for j, q in enumerate(qs)]
    return low + [d * (q >> 4 | fifth(high, j + 16)) + m for j, q in enumerate(qs)]


def scale_and_offset(j: int, q: bytes) -> tuple[int, int]:
    """get_scale_min_k4."""
    if j < 4:
        return q[j] & 63, q[j + 4] & 63
    return (q[j + 4] & 15) | (q[j - 4] >> 6 << 4), (q[j + 4] >> 4) | (q[j] >> 6 << 4)


def offset_k(b: bytes, high: bytes, qs: bytes) -> list[float]:
    """Q4_K, and Q5_K where there are high bits."""
    d, least, scales, found = half(b, 0), half(b, 2), b[4:16], []
    for j in range(8):
        scale, offset = scale_and_offset(j, scales)
        for i in range(32):
            byte = qs[32 * (j // 2) + i]
            code = (byte >> 4 if j % 2 else byte & 15) + (16 if high and high[i] >> j & 1 else 0)
            found.append(d * scale * code - least * offset)
    return found


def q4_k(b: bytes) -> list[float]:
    return offset_k(b, b"", b[16:])


def q5_k(b: bytes) -> list[float]:
    return offset_k(b, b[16:48], b[48:])


def q6_k(b: bytes) -> list[float]:
    low, high, scales, d = b[:128], b[128:192], struct.unpack("<16b", b[192:208]), half(b, 208)
    found = [0.0] * 256
    for n in range(2):
        for i in range(32):
            for quarter in range(4):
                byte = low[64 * n + 32 * (quarter % 2) + i]
                code = (byte >> 4 if quarter > 1 else byte & 15) | (high[32 * n + i] >> 2 * quarter & 3) << 4
                found[128 * n + 32 * quarter + i] = d * scales[8 * n + 2 * quarter + i // 16] * (code - 32)
    return found


DECODERS = {"Q8_0": q8_0, "Q4_0": q4_0, "Q5_0": q5_0, "Q5_1": q5_1, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k}
