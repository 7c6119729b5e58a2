"""Bytes per weight, activation and cache entry of a format, and the peak of its linear operators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from objectives.device import Device, Peak
from objectives.weight_formats.table import WEIGHT_FORMATS, TensorClass, Values, WeightFormat
from search_spaces.arrays import FloatArray
from search_spaces.formats import FORMATS, base_of, kv_bits_of, operators_of


@dataclass(frozen=True)
class Precision:
    """Bytes per element and the peak of linear operators; only `int8` quantises in separate operators.

    weight_bytes: of the weights of linear operators; where `stored` is, of most of them, and `bytes_of` says each. head_bytes:
    of LM head and embedding, small_bytes: of routers, norms and biases.

    A cache of 8 or 4 bits (`_kv8`, `_kv4`) is read and written in as many; attention computes as before. Under `_down8` the
    inputs of down projections have 8 bits, and these run at the INT8 peak; their weights stay as they are.

    NVFP4 is 4 bits and a byte of scale per 16 elements, of weights and of a linear operator's inputs, which the
    operator before writes. FP32 has no peak of its own: a profile measured in it says its share of FP16's.

    Source: `docs/model.md`, precision. `input_bytes` is the width of a linear operator's input.
    """

    name: str
    weight_bytes: float
    activation_bytes: float
    kv_bytes: float
    input_bytes: float
    linear_peak: Peak
    head_bytes: float = 2.0
    small_bytes: float = 2.0
    stored: WeightFormat | None = None

    def bytes_of(self, kind: TensorClass, row: FloatArray | None = None) -> Values:
        """Return bytes per weight of a class of tensors, in rows of so many weights; of whole blocks without rows."""
        if self.stored is not None:
            return self.stored.bytes_of(kind, row)
        return self.head_bytes if kind in ("head", "embedding") else self.weight_bytes

    def bytes_of_ffn(self, sparse: FloatArray, width: FloatArray | None = None) -> tuple[Values, Values]:
        """Return bytes per weight of gate and up (rows of the width) and of down; of routed experts if `sparse` is 1.

        Rows of down projections count as whole blocks, so that bytes rise with their length.
        """
        up, down = self.bytes_of("weights", width), self.bytes_of("down")
        if self.stored is None or self.stored.experts is None:
            return up, down
        of_experts, down_of_experts = self.bytes_of("experts", width), self.bytes_of("expert_down")
        return np.where(sparse > 0, of_experts, up), np.where(sparse > 0, down_of_experts, down)

    @property
    def quantises(self) -> bool:
        """True if activations are quantised dynamically before linear operators."""
        return base_of(self.name) == "int8"

    @property
    def of_down(self) -> "Precision":
        """The precision of down projections."""
        wider = operators_of(self.name).endswith("_down8")
        return replace(self, input_bytes=1.0, linear_peak="int8") if wider else self

    @property
    def widened(self) -> bool:
        """True if FP4 weights are widened before products, as on a device without an FP4 peak."""
        return self.linear_peak != (self.stored or WEIGHT_FORMATS[base_of(self.name)]).peak

    def on(self, device: Device) -> "Precision":
        """Return the precision as a device computes in it; without an FP4 peak, FP4 weights are widened and products run at FP16's peak.

        Stacks of Rockchip's and Axera's NPUs store LM heads like other weights.

        Source: vLLM, `Marlin` kernels for NVFP4 on GPUs before Blackwell (weight-only); airockchip/rknn-llm, memory in benchmark.md.
        """
        as_weights = device.chip == "npu" and device.maker in ("Rockchip", "Axera") and self.stored is None
        stored = replace(self, head_bytes=self.weight_bytes if as_weights else self.head_bytes)
        if self.linear_peak != "fp4" or "fp4" in device.peaks or self.of_down.linear_peak != "fp4":
            return stored
        return replace(stored, linear_peak="fp16", input_bytes=self.activation_bytes)


def of_format(name: str, written: WeightFormat) -> Precision:
    """Return the precision of a weight format."""
    weights, head, small = (float(np.asarray(written.bytes_of(kind))) for kind in ("weights", "head", "small"))
    inputs, activations = (written.type_of(kind).per_weight for kind in (written.inputs, written.activations))
    stored = None if written.plain else written
    return Precision(name, weights, activations, activations, inputs, written.peak, head, small, stored)


_BASES = {name: of_format(name, written) for name, written in WEIGHT_FORMATS.items()}
_GROUP_BYTES = 2.5  # a 16-bit scale and a 4-bit zero per group


def _made(name: str) -> Precision:
    """A format as a variation of its base."""
    base, bits = _BASES[base_of(name)], kv_bits_of(name)
    return replace(base, name=name, kv_bytes=base.kv_bytes if bits is None else bits / 8)


PRECISIONS = {name: _made(name) for name in FORMATS}


def refuse_format(name: str, written: WeightFormat) -> None:
    """Refuse a format of an installed package or of a study that its name or its keys cannot be used for.

    Raises:
        ValueError: a name that none can have, or that another format which ships has.
    """
    if WEIGHT_FORMATS.get(base_of(name)) == written:
        return
    if name in PRECISIONS:
        raise ValueError(f"{name}: expected one format of a name, got another one than ships; rename it")
    if base_of(name) != name:
        raise ValueError(f"{name}: expected a name without _kv and _down8, which are variations; rename the format")
    if written.measured_as or (written.profile and written.profile not in FORMATS):
        raise ValueError(f"{name}: expected no measured_as, and a profile of {', '.join(_BASES)}; correct the format")


def precision(
    name: str, int4_group_size: int | None = None, own: Mapping[str, WeightFormat] | None = None
) -> Precision:
    """Return a precision by name, shipped or one's `own`; under int4 with groups of g, weights take 0.5 + 2.5/g bytes."""
    if own is not None and name not in PRECISIONS:
        return replace(of_format(name, own[name]), stored=own[name])
    chosen = PRECISIONS[name]
    if base_of(name) != "int4" or int4_group_size is None:
        return chosen
    return replace(chosen, weight_bytes=chosen.weight_bytes + _GROUP_BYTES / int4_group_size)
