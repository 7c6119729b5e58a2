"""Formats of models: of weights, of linear operators, and of the KV cache."""

from typing import Literal, get_args

#: Of weights, linear operators and the KV cache; `_down8`: down projections with inputs of 8 bits, `_kv8`: a cache of 8 bits. New ones
#: come last: stored designs hold places among them.
_Computed = Literal["fp16", "int8", "int4", "nvfp4", "fp32", "fp16_kv8", "int8_kv8", "int4_kv8", "nvfp4_kv8"]
_Varied = Literal["fp16_kv4", "int8_kv4", "int4_kv4", "nvfp4_kv4", "nvfp4_down8", "nvfp4_down8_kv8", "nvfp4_down8_kv4"]
_Files = Literal["w4a16", "q4_0", "q4_k_m", "q5_k_m", "q6_k", "q8_0", "mxfp4"]
_Newer = Literal["q2_k", "q3_k_m", "q4_k_s", "iq4_xs", "fp8", "mlx_4bit", "mlx_6bit", "mlx_8bit"]
_FilesKv8 = Literal["w4a16_kv8", "q4_0_kv8", "q4_k_m_kv8", "q5_k_m_kv8", "q6_k_kv8", "q8_0_kv8", "mxfp4_kv8"]
_NewerKv8 = Literal[
    "q2_k_kv8", "q3_k_m_kv8", "q4_k_s_kv8", "iq4_xs_kv8", "fp8_kv8", "mlx_4bit_kv8", "mlx_6bit_kv8", "mlx_8bit_kv8"
]
_FilesKv4 = Literal["w4a16_kv4", "q4_0_kv4", "q4_k_m_kv4", "q5_k_m_kv4", "q6_k_kv4", "q8_0_kv4", "mxfp4_kv4"]
_NewerKv4 = Literal[
    "q2_k_kv4", "q3_k_m_kv4", "q4_k_s_kv4", "iq4_xs_kv4", "fp8_kv4", "mlx_4bit_kv4", "mlx_6bit_kv4", "mlx_8bit_kv4"
]
Format = Literal[_Computed, _Varied, _Files, _Newer, _FilesKv8, _NewerKv8, _FilesKv4, _NewerKv4]
FORMATS: tuple[str, ...] = get_args(Format)


def base_of(precision: str) -> str:
    """Return the base of a format: `nvfp4` for `nvfp4_down8_kv8`."""
    return operators_of(precision).removesuffix("_down8")


def operators_of(precision: str) -> str:
    """Return a format without its KV cache: `nvfp4_down8` for `nvfp4_down8_kv8`."""
    return precision.partition("_kv")[0]


def kv_bits_of(precision: str) -> int | None:
    """Return the bits of a KV cache of few bits; None if it is as wide as activations."""
    bits = precision.partition("_kv")[2]
    return int(bits) if bits else None
