"""Formats of models: of weights, of linear operators, and of the KV cache."""

from typing import Literal, get_args

#: Of weights, linear operators and the KV cache; `_down8`: down projections with inputs of 8 bits, `_kv8`: a cache of 8 bits. New ones
#: come last: stored designs hold places among them.
_Computed = Literal["fp16", "int8", "int4", "nvfp4", "fp32", "fp16_kv8", "int8_kv8", "int4_kv8", "nvfp4_kv8"]
_Varied = Literal["fp16_kv4", "int8_kv4", "int4_kv4", "nvfp4_kv4", "nvfp4_down8", "nvfp4_down8_kv8", "nvfp4_down8_kv4"]
_Files = Literal["w4a16", "q4_0", "q4_k_m", "q5_k_m", "q6_k", "q8_0", "mxfp4"]
_Newer = Literal["q2_k", "q3_k_m", "q4_k_s", "iq4_xs", "fp8", "mlx_4bit", "mlx_6bit", "mlx_8bit"]
Format = Literal[_Computed, _Varied, _Files, _Newer]
FORMATS: tuple[str, ...] = get_args(Format)


def base_of(precision: str) -> str:
    """The format that a format is a variation of: `nvfp4` of `nvfp4_down8_kv8`."""
    return operators_of(precision).removesuffix("_down8")


def operators_of(precision: str) -> str:
    """A format, its KV cache aside: `nvfp4_down8` of `nvfp4_down8_kv8`."""
    return precision.partition("_kv")[0]


def kv_bits_of(precision: str) -> int | None:
    """Bits of a KV cache of few bits; None where it is as wide as activations."""
    bits = precision.partition("_kv")[2]
    return int(bits) if bits else None
