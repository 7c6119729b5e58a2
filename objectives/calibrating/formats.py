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


def format_of(name: str) -> Format:
    """A weight format by name, hyphens read as underscores.

    Raises:
        ValueError: unknown name.
    """
    found = FORMATS.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise ValueError(f"expected a weight format ({', '.join(FORMATS)}), got {name!r}; write the nearest")
    return found
