"""Weight formats as measurements name them: what calibrates together, and the precision that each is priced in."""

from dataclasses import dataclass, replace

from objectives.precision import PRECISIONS, Precision
from objectives.weight_formats.table import WEIGHT_FORMATS


@dataclass(frozen=True)
class Format:
    """A weight format.

    family: formats that calibrate together. study: the precision whose profile it gives (empty: none computes alike).
    precision: what its rows are priced in, and a study that takes its times as measured.
    """

    family: str
    study: str
    precision: Precision


def _formats() -> dict[str, Format]:
    found = {"w4": Format("w4", "", PRECISIONS["w4a16"])}
    for name, written in WEIGHT_FORMATS.items():
        family = next((called for called in written.measured_as if called in WEIGHT_FORMATS), name)
        for called in (*written.measured_as, name):
            found[called] = Format(family, written.profile or name, PRECISIONS[name])
    return found


FORMATS = _formats()
#: Further mixtures of llama.cpp by bits per weight of Llama-3.1-8B (ggml-org/llama.cpp tools/quantize/README.md, Q3_K_M by
#: its blocks), and MLX's groups of 64 with a scale and a bias of 16 bits, its head among them.
_MIXED = {"q4_1": (5.0, 0.82), "q5_0": (5.5, 0.82), "q5_1": (6.0, 0.82), "q2_k": (3.16, 0.82)}
_MIXED |= {"q3_k_s": (3.64, 0.82), "q3_k_m": (4.0, 0.82), "q3_k_l": (4.3, 0.82), "q4_k_s": (4.67, 0.82)}
_MIXED |= {"q5_k_s": (5.57, 0.82)}
_MIXED |= {"iq2_xxs": (2.38, 0.82), "iq2_xs": (2.59, 0.82), "iq2_s": (2.74, 0.82), "iq2_m": (2.93, 0.82)}
_MIXED |= {"iq3_xxs": (3.25, 0.82), "iq3_xs": (3.5, 0.82), "iq3_s": (3.66, 0.82), "iq3_m": (3.76, 0.82)}
_MIXED |= {"iq4_xs": (4.46, 0.82), "iq4_nl": (4.68, 0.82)}
_MIXED |= {"mlx_4bit": (4.5, 0.5625), "mlx_6bit": (6.5, 0.8125), "mlx_8bit": (8.5, 1.0625)}
FORMATS |= {
    name: Format(name, "", replace(PRECISIONS["int4"], weight_bytes=bits / 8, head_bytes=head))
    for name, (bits, head) in _MIXED.items()
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
