"""Weight formats that engines run: bytes per element, the peak they compute at, the study's precision they stand for."""

from dataclasses import dataclass, replace

from objectives.scenario import PRECISIONS, Precision, precision


@dataclass(frozen=True)
class Format:
    """A weight format.

    family: formats that calibrate together. study: the precision whose profile it gives (empty: none of
    them computes alike). head_bytes: of embedding and LM head, which engines quantise less than the rest.
    """

    family: str
    study: str
    precision: Precision
    head_bytes: float = 2.0


def _weights_only(bits: float) -> Precision:
    return replace(PRECISIONS["int4"], weight_bytes=bits / 8)


_GROUPED = Format("int4", "int4", precision("int4", 128))
_HALF = Format("fp16", "fp16", PRECISIONS["fp16"])
#: llama.cpp's block formats carry their scales: Q4_K_M averages 4.85 bits with a 6.56-bit head, Q8_0 has 8.5.
FORMATS = {
    "fp16": _HALF,
    "f16": _HALF,
    "bf16": _HALF,
    "fp32": Format("fp32", "fp32", PRECISIONS["fp32"], 4.0),
    "int8": Format("int8", "int8", PRECISIONS["int8"]),
    "int4": _GROUPED,
    "int4_awq": _GROUPED,
    "int4_gptq": _GROUPED,
    "int4_mlc": _GROUPED,
    "w4a16": _GROUPED,
    "w4": Format("w4", "", precision("int4", 128)),
    "q4_0": Format("q4_0", "int4", _weights_only(4.5), 0.82),
    "q4_k_m": Format("q4_k_m", "int4", _weights_only(4.85), 0.82),
    "q8_0": Format("q8_0", "", _weights_only(8.5), 1.0625),
    "nvfp4": Format("nvfp4", "nvfp4", PRECISIONS["nvfp4"]),
}
#: Further mixtures of llama.cpp by bits per weight of Llama-3.1-8B (ggml-org/llama.cpp tools/quantize/README.md, Q3_K_M and MXFP4 by
#: their blocks), and MLX's groups of 64 with a scale and a bias of 16 bits, its head among them.
_MIXED = {"mxfp4": (4.25, 1.0625), "q4_1": (5.0, 0.82), "q5_0": (5.5, 0.82), "q5_1": (6.0, 0.82), "q2_k": (3.16, 0.82)}
_MIXED |= {"q3_k_s": (3.64, 0.82), "q3_k_m": (4.0, 0.82), "q3_k_l": (4.3, 0.82), "q4_k_s": (4.67, 0.82)}
_MIXED |= {"q5_k_s": (5.57, 0.82), "q5_k_m": (5.7, 0.82), "q6_k": (6.56, 0.82)}
_MIXED |= {"iq2_xxs": (2.38, 0.82), "iq2_xs": (2.59, 0.82), "iq2_s": (2.74, 0.82), "iq2_m": (2.93, 0.82)}
_MIXED |= {"iq3_xxs": (3.25, 0.82), "iq3_xs": (3.5, 0.82), "iq3_s": (3.66, 0.82), "iq3_m": (3.76, 0.82)}
_MIXED |= {"iq4_xs": (4.46, 0.82), "iq4_nl": (4.68, 0.82)}
_MIXED |= {"mlx_4bit": (4.5, 0.5625), "mlx_6bit": (6.5, 0.8125), "mlx_8bit": (8.5, 1.0625)}
FORMATS |= {name: Format(name, "", _weights_only(bits), head) for name, (bits, head) in _MIXED.items()}


def format_of(name: str) -> Format:
    """A weight format by name, hyphens read as underscores.

    Raises:
        ValueError: unknown name.
    """
    found = FORMATS.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise ValueError(f"expected a weight format ({', '.join(FORMATS)}), got {name!r}; write the nearest")
    return found
