"""Devices: dense peaks, bandwidth and memory with their sources, power modes, calibration."""

import math
import re
from collections.abc import Mapping
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from objectives.datasheet import MISSING, UNITS, Figure, OtherPeaks, as_printed, computed, hint
from objectives.device_columns import Figures
from objectives.plugins import normalised
from objectives.quantities import Name, joules, milliseconds, watts
from search_spaces.arrays import FloatArray, brief

_UNITS = UNITS | {"base_power": "W", "per_flop": "J", "per_byte": "J"}
NO_TENSOR_CORES = re.compile(r"(?<![a-z])(?:gtx|(?:quadro|tesla)[ _-]?[kmp]\d|titan[ _-]x)", re.IGNORECASE)
SPARSE_SMELL_FLOP_PER_BYTE = 500.0


Peak = Literal["fp16", "int8", "fp4"]  # a device's figures that operators run at
OWN_PEAKS = ("fp16", "int8")  # that have a key of their own
Phase = Literal["prefill", "decode"]
Chip = Literal["gpu", "server_gpu", "soc", "npu", "cpu", "any"]
CHIPS: dict[Chip, str] = {
    "gpu": "discrete GPUs",
    "server_gpu": "server and workstation GPUs",
    "soc": "GPUs that share memory with the processor",
    "npu": "neural processing units",
    "cpu": "processors",
    "any": "devices of every class, since its file states no chip",
}
Cooling = Literal["phone", "passive", "active"]
COOLING: dict[Cooling, str] = {"phone": "phones", "passive": "fanless devices", "active": "devices with fans"}
#: Of a phone's memory what its system lets one app have, the median of three: 2.4 of 4 GB (iPhone 12 mini, github.com/allenai/OLMoE.swift/pull/38),
#: 4.2 of 6 GB (13 Pro, a-ghorbani/pocketpal-ai/pull/651), 6 of 8 GB (15 Pro, introlab/rtabmap/pull/1446), each with the entitlement
#: for more memory that iOS has; of Android no such row was found.
OF_AN_APP = 0.7
Kind = Literal["plain", "attention", "experts", "scan"]  # operators with efficiencies of their own
ModeName = Annotated[Name, AfterValidator(normalised)]  # as `id@mode` reads it
_Share = Annotated[float, Field(gt=0, le=2)]
_Tokens = Annotated[int, Field(ge=0, le=10**9)]
_Factor = Annotated[float, Field(gt=0, le=50)]
_OfBurst = Annotated[float, Field(gt=0, le=1)]
_Milliseconds = Annotated[float, BeforeValidator(lambda v: v if v == 0 else milliseconds(v))]


@brief
class Calibration(BaseModel):
    """Achieved share of the datasheet: an operator takes max(F/(η_c π), bytes/(η_b β)) + τ.

    Where: η_c `compute_efficiency` (and `_int8`, `_fp4` for these peaks), η_b `bandwidth_efficiency`,
    τ `overhead` per operator instance; `request_overhead` once per prefill (a server's constant).
    In the prefill `prefill_bandwidth_efficiency` and `prefill_overhead` take the place of η_b and τ where they are
    given; the former may exceed 1, as fused element-wise operators and caches spare bytes, and is not that of routed experts,
    whose weights stream by as in decoding. In the attention core
    (scores, softmax, values) and in the linear operators of routed experts (E > 1) the factors `attention_compute`,
    `attention_bandwidth`, `expert_compute` and `expert_bandwidth` multiply η_c and η_b; in decoding `decode_attention_compute`
    takes the place of the first where it is given. In decoding `decode_compute` multiplies η_c of all other operators, as products with
    one vector are no matrix products, and of T tokens the lesser of T times it and `batched_compute`; in prefills `scan_compute` that of the recurrence of linear attention. `routing_overlap` ρ: of T tokens
    1 + (1 − ρ)(T − 1) choose their experts independently, the others choose what is read already.
    `slow_bandwidth_efficiency` is that of the memory beside the device's own (`slow_memory`). `position_cost`: share of a plain
    step that a further position of a step that drafts takes beside its operators; None: not measured.
    What the engine holds at most is `engine_gb`, GB, and `memory_factor` times what is resident of the model; both None: not measured.
    With `cache_efficiency` the part of a decode pass that the last-level cache holds is read at that share of its bandwidth.
    prompts, contexts: least and largest KV length of the prefills and of the decode steps that it was fitted to;
    experts, layers: whether rows with routed experts were among them, with layers of linear attention, convolution or a shared cache. Where they are not told, nothing is known.
    format: the weight format that was measured where it is not `precision` itself (q4_k_m under int4); "" where it is, or is not known.
    held_out: measured / predicted of every row whose model the fit had not seen, by phase; `held_out_models`
    counts these models where it is told; `picked`: by what limits were missed where the slowest that is priced within one was picked. typical: the class of chips that it is typical of; then these are of devices that it
    had not seen, as many ratios of each, and are counted by devices. borrowed: the class whose devices' errors these reach at least as far
    as, since another engine or format is asked for than was measured; counted so too. between: the measured power modes that it lies between.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    engine: Name = ""
    precision: Name = ""
    format: Name = ""
    mode: ModeName = ""
    batch: Annotated[int, Field(ge=1, le=10**9)] = 1
    compute_efficiency: _Share = 1.0
    compute_efficiency_int8: _Share | None = None
    compute_efficiency_fp4: _Share | None = None
    bandwidth_efficiency: _Share = 1.0
    prefill_bandwidth_efficiency: Annotated[float, Field(gt=0, le=8)] | None = None
    cache_efficiency: _Share | None = None
    overhead: _Milliseconds = 0.0
    prefill_overhead: _Milliseconds | None = None
    request_overhead: _Milliseconds = 0.0
    attention_compute: _Factor = 1.0
    decode_attention_compute: _Factor | None = None
    attention_bandwidth: _Factor = 1.0
    decode_compute: _Factor = 1.0
    batched_compute: _Factor = 1.0
    scan_compute: _Factor = 1.0
    expert_compute: _Factor = 1.0
    expert_bandwidth: _Factor = 1.0
    routing_overlap: Annotated[float, Field(ge=0, lt=1)] = 0.0
    slow_bandwidth_efficiency: _Share = 1.0
    position_cost: Annotated[float, Field(ge=0, le=10)] | None = None
    engine_gb: Annotated[float, Field(ge=0)] | None = None
    memory_factor: _Factor | None = None
    held_out_error: Annotated[float, Field(ge=0)] | None = None
    held_out: dict[Phase, list[Annotated[float, Field(gt=0)]]] = {}
    held_out_models: Annotated[int, Field(ge=1)] | None = None
    picked: dict[Phase, list[Annotated[float, Field(gt=0)]]] = {}
    prompts: tuple[_Tokens, _Tokens] | None = None
    contexts: tuple[_Tokens, _Tokens] | None = None
    experts: bool | None = None
    layers: bool = False
    typical: Literal[""] | Chip = ""
    borrowed: Literal[""] | Chip = ""
    between: str = ""
    source: str = ""

    @property
    def by_device(self) -> bool:
        """True if the held-out errors are of devices, with as many ratios of each."""
        return bool(self.typical or self.borrowed)

    def overhead_s(self, phase: Phase) -> float:
        """Return τ of a phase, seconds per operator instance."""
        own = self.prefill_overhead if phase == "prefill" else None
        return (self.overhead if own is None else own) * 1e-3

    def bandwidth(self, phase: Phase) -> float:
        """Return η_b of a phase."""
        own = self.prefill_bandwidth_efficiency if phase == "prefill" else None
        return own or self.bandwidth_efficiency

    def decode_share(self, tokens: FloatArray | float) -> FloatArray | float:
        """Return the factor on η_c in decode steps of T tokens, without attention."""
        share: FloatArray = np.minimum(self.decode_compute * tokens, self.batched_compute)
        return np.where(np.asarray(tokens) > 1, share, self.decode_compute)

    def factors(self, kind: Kind, phase: Phase, tokens: float = 1.0) -> tuple[float, float]:
        """Return the factors on η_c and η_b for operators of a kind in decode steps of so many tokens."""
        if kind == "attention":
            own = self.decode_attention_compute if phase == "decode" else None
            return own or self.attention_compute, self.attention_bandwidth
        of_flops = (
            float(self.decode_share(tokens)) if phase == "decode" else self.scan_compute if kind == "scan" else 1.0
        )
        return (of_flops * self.expert_compute, self.expert_bandwidth) if kind == "experts" else (of_flops, 1.0)

    def missed(self, phase: Phase) -> float | None:
        """Return the median error |predicted / measured − 1| of a phase on held-out models; None without any."""
        ratios = self.held_out.get(phase)
        return median(abs(1.0 / ratio - 1.0) for ratio in ratios) if ratios else None

    @property
    def request_s(self) -> float:
        """Return the seconds per request, counted once in prefill."""
        return self.request_overhead * 1e-3

    def efficiency(self, peak: Peak) -> float:
        """Return η_c of a peak: its own if it is given, else the FP16 peak's."""
        own = {"fp16": None, "int8": self.compute_efficiency_int8, "fp4": self.compute_efficiency_fp4}[peak]
        return own or self.compute_efficiency


class Energy(BaseModel):
    """The energy of a request: joules = base_power · seconds + per_flop · FLOPs + per_byte · bytes.

    Where: base_power in W, per_flop in J/FLOP, per_byte in J/B of what operators read and write. `rail` is what was
    metered. Seen: precisions, batches, the longest prompt and output together, the range of parameters, experts.
    held_out_error: the median error of models that the fit had not seen, given their measured times; held_out:
    measured / predicted of their rows from predicted times, of models that the times' fit had not seen either.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    engine: Name = ""
    mode: ModeName = ""
    base_power: Annotated[float, BeforeValidator(lambda v: v if v == 0 else watts(v))] = 0.0
    per_flop: Annotated[float, BeforeValidator(lambda v: v if v == 0 else joules(v))] = 0.0
    per_byte: Annotated[float, BeforeValidator(lambda v: v if v == 0 else joules(v))] = 0.0
    rail: Name = ""
    precisions: list[Name] = []
    batches: list[Annotated[int, Field(ge=1, le=10**9)]] = []
    most_tokens: Annotated[int, Field(ge=1, le=10**9)] | None = None
    parameters: tuple[float, float] | None = None
    experts: bool = False
    rows: Annotated[int, Field(ge=1)] | None = None
    held_out_error: Annotated[float, Field(ge=0)] | None = None
    held_out: list[Annotated[float, Field(gt=0)]] = []
    held_out_models: Annotated[int, Field(ge=1)] | None = None
    between: str = ""
    source: str = ""


class Sustained(BaseModel):
    """Speed after minutes of load, as a share of the speed in the first seconds, for both phases.

    interval: where 80 % of the shares of further devices (typical) or of further runs (its own) lie, t in the logarithm with
    `freedom` degrees, normal without. minutes: of load. typical: the class of cooling that it is typical of, over `devices`.
    A bare number is the share.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"type": ["object", "number"]})
    share: _OfBurst
    interval: tuple[_OfBurst, _OfBurst] | None = None
    freedom: Annotated[int, Field(ge=1)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None
    typical: Literal[""] | Cooling = ""
    devices: Annotated[int, Field(ge=1)] | None = None
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, raw: Any) -> Any:
        """A number is the share."""
        return {"share": raw} if isinstance(raw, int | float) and not isinstance(raw, bool) else raw

    @model_validator(mode="after")
    def _around(self) -> "Sustained":
        """The share lies in its interval."""
        if self.interval is not None and not self.interval[0] <= self.share <= self.interval[1]:
            raise ValueError(
                f"expected an interval around {self.share:g}, got {list(self.interval)}; write [least, most]"
            )
        return self


class Mode(BaseModel):
    """A power mode: the figures that differ from the device's default mode."""

    model_config = ConfigDict(extra="forbid")
    fp16: Figure | None = None
    int8: Figure | None = None
    bandwidth: Figure | None = None
    other_peaks: OtherPeaks | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_printed(cls, raw: Any) -> Any:
        """Keys in other spellings."""
        return as_printed(raw, cls.model_fields)[0] if isinstance(raw, Mapping) else raw

    def changes(self) -> dict[str, Any]:
        """Return the figures that the mode replaces; other peaks at another clock are unknown unless stated."""
        found = self.model_dump(exclude_none=True)
        return ({"other_peaks": {}} if "fp16" in found or "int8" in found else {}) | found


class SlowMemory(BaseModel):
    """Memory that experts may lie in beside the device's own: host memory of a GPU, flash of a phone.

    bandwidth: at which decoding was measured to read it (a datasheet's rate is 1.4 to 3.6 times too fast), left out: as public rows
    have it, `typical` then; capacity: of it; link: bytes/s at which a prefill brings weights to the device, left out: the bandwidth;
    fp16: dense peak of the processor that computes where it lies, left out: the device computes; overhead: ms that a layer waits
    for it in a step.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    bandwidth: Figure | None = None
    capacity: Figure
    link: Figure | None = None
    fp16: Figure | None = None
    overhead: _Milliseconds = 0.0
    typical: bool = False
    source: str = ""

    @property
    def rate(self) -> float:
        """Return the bytes/s of decoding.

        Raises:
            ValueError: none is stated.
        """
        if self.bandwidth is None:
            raise ValueError("slow_memory.bandwidth: expected a rate, got none; give it, or assess designs in a study")
        return self.bandwidth

    @property
    def overhead_s(self) -> float:
        """Return the seconds that a layer waits in a step."""
        return self.overhead * 1e-3

    @property
    def capacity_gb(self) -> float:
        """Capacity, GB of 10^9 bytes."""
        return self.capacity / 1e9


#: Makers, and what names of their chips have where no vendor is stated.
MAKERS = {
    "NVIDIA": r"nvidia|geforce|[rg]tx|quadro|tesla|titan|jetson|dgx|gb10",
    "AMD": r"amd|radeon|ryzen|epyc|instinct|rx|mi\d+x?",
    "Intel": r"intel|arc|xeon|iris|core ultra",
    "Apple": r"apple|m[1-9]|a1\d",
    "Qualcomm": r"qualcomm|snapdragon|hexagon|adreno",
    "Rockchip": r"rockchip|rk\d+|rv\d+",
    "Axera": r"axera|ax\d+",
}


@brief
class Device(BaseModel):
    """One accelerator: dense peaks in operations/s (1 multiply-accumulate = 2), bytes/s, bytes.

    `cache` is the last-level cache before memory, `cache_bandwidth` what it serves; both matter where a calibrated profile
    has an efficiency for them (docs/model.md, cache tier). `chip`: the class whose typical efficiencies price it without a
    profile of its own; `any` where it is not stated. `columns`: figures that are metrics by their names, the same for every
    architecture. `cooling`: the class whose typical share prices sustained load, unless
    `sustained` says what was measured; nothing is known where neither is stated. A peak that is None is not known, and nothing
    runs at it. `computed`: how figures came about that are not what the file prints.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    hint: ClassVar = staticmethod(hint)
    name: Name
    vendor: Name = ""
    fp16: Figure | None = None
    int8: Figure | None = None
    bandwidth: Figure
    memory: Figure
    cache: Figure | None = None
    cache_bandwidth: Figure | None = None
    confidence: Literal["verified", "derived", "recalled", "estimate", "measured"] = "estimate"
    source: str = ""
    note: str = ""
    dense_confirmed: bool = False
    chip: Chip = "any"
    cooling: Cooling | None = None
    sustained: Sustained | None = None
    other_peaks: OtherPeaks = {}
    modes: dict[ModeName, Mode] = {}
    mode_source: str = ""
    mode: ModeName = ""
    slow_memory: SlowMemory | None = None
    columns: Figures = {}
    computed: dict[str, str] = {}
    profiles: list[Calibration] = []
    energy: list[Energy] = []

    @model_validator(mode="before")
    @classmethod
    def _as_printed(cls, raw: Any) -> Any:
        """Keys and figures as datasheets print them; `npu: true` of older files is `chip: npu`."""
        if not isinstance(raw, Mapping):
            return raw
        content, _ = as_printed(raw, cls.model_fields)
        content |= {"chip": "npu"} if content.pop("npu", None) is True and "chip" not in content else {}
        if not any(content.get(key) for key in (*OWN_PEAKS, "other_peaks")):
            content["int8"] = MISSING
        notes = computed(content)
        for name, mode in modes.items() if isinstance(modes := content.get("modes"), Mapping) else ():
            figures = as_printed(mode, Mode.model_fields)[0] if isinstance(mode, Mapping) else {}
            notes |= {f"{key} of @{name}": how for key, how in computed(figures).items()}
        return {**content, "computed": {**notes, **(content.get("computed") or {})}} if notes else content

    @field_validator("chip", "cooling", mode="before")
    @classmethod
    def _in_any_case(cls, raw: Any) -> Any:
        return raw.strip().lower() if isinstance(raw, str) else raw

    @field_validator("modes", mode="before")
    @classmethod
    def _told_apart(cls, raw: Any) -> Any:
        """Names of power modes are told apart where `id@mode` reads them."""
        names = [str(name) for name in raw] if isinstance(raw, Mapping) else []
        read = [normalised(name) for name in names]
        same = [name for name, each in zip(names, read, strict=True) if read.count(each) > 1]
        if same:
            raise ValueError(
                f"expected names that differ by more than case and hyphens, got {', '.join(same)}; rename one"
            )
        return raw

    @property
    def maker(self) -> str:
        """The maker of a chip: among `MAKERS` by its vendor, else by its name; its vendor of others, "" where nothing tells."""
        texts = (self.vendor, self.name.replace("_", " "))
        of_texts = ((t, name, rf"\b(?:{words})\b") for t in texts for name, words in MAKERS.items())
        return next((name for t, name, words in of_texts if re.search(words, t, re.IGNORECASE)), self.vendor)

    @property
    def flop_per_byte(self) -> float:
        """Ridge point of the roofline, dense FP16 FLOP per byte; NaN if the device states no FP16 peak."""
        return math.nan if self.fp16 is None else self.fp16 / self.bandwidth

    @property
    def memory_gb(self) -> float:
        """Memory capacity, GB of 10^9 bytes."""
        return self.memory / 1e9

    @property
    def program_gb(self) -> float:
        """Memory available to one program, GB: on a phone a share, since its system needs the rest."""
        return self.memory_gb * (OF_AN_APP if self.cooling == "phone" else 1.0)

    def in_mode(self, mode: str) -> "Device":
        """Return the device in one of its power modes.

        Args:
            mode: a name among `modes`.

        Raises:
            ValueError: unknown mode, with the choices.
        """
        if mode not in self.modes:
            choices = ", ".join(self.modes) or "none"
            raise ValueError(
                f"expected a power mode of {self.name} ({choices}), got {mode!r}; choose one or drop @{mode}"
            )
        return self.model_copy(update=self.modes[mode].changes() | {"mode": mode, "modes": {}})

    def peak(self, name: Peak) -> float:
        """Return a dense peak, operations/s.

        Args:
            name: of a number format.

        Raises:
            ValueError: the device does not state it.
        """
        if (figure := self.peaks.get(name)) is not None:
            return figure
        where, stated = f"{self.name}@{self.mode}" if self.mode else self.name, " and ".join(self.peaks)
        key = name if name in OWN_PEAKS else f"other_peaks.{name}"
        raise ValueError(
            f"expected a device with an {name} peak, got {where}, which states {stated}; give {key} in its file if it has one"
        )

    @property
    def peaks(self) -> dict[str, float]:
        """The dense peaks that the device states, operations/s."""
        own = {name: peak for name in OWN_PEAKS if (peak := getattr(self, name)) is not None}
        return own | {name: peak for name, peak in self.other_peaks.items() if name not in own}

    def rate(self, name: Peak) -> float:
        """Return the operations/s of an operator at a peak; a device with integer peaks only uses its INT8 peak.

        Args:
            name: of a number format.

        Raises:
            ValueError: the device states neither.
        """
        return self.peak("int8" if name == "fp16" and self.fp16 is None and self.int8 is not None else name)

    @property
    def by_dp4a(self) -> bool:
        """True if a card without tensor cores, by its name, states the INT8 peak of dot products, which unpack no weights."""
        return (self.int8 or 0.0) > 2.0 * self.rate("fp16") and NO_TENSOR_CORES.search(self.name) is not None

    def warnings(self) -> list[str]:
        """Return doubts about the figures: how they were computed, and whether they look like sparse peaks."""
        figures = ", ".join(f"{key} {how}" for key, how in self.computed.items())
        dense = (
            f"{self.flop_per_byte:.0f} dense FP16 FLOP per byte exceeds {SPARSE_SMELL_FLOP_PER_BYTE:.0f}; it looks like a "
            "sparsity figure. Halve it if it is, or set dense_confirmed: true in the device file"
        )
        doubts = {
            f"its file gives {figures}": bool(figures),
            "its file states no FP16 peak; what computes in 16 bits is priced at that of INT8": self.fp16 is None
            and self.int8 is not None,
            "it has no tensor cores, so that its INT8 peak speeds up no decoding": self.by_dp4a,
            "its INT4 peak is not used; 4-bit weights compute in 16 or 8 bits": "int4" in self.other_peaks,
            dense: self.flop_per_byte > SPARSE_SMELL_FLOP_PER_BYTE and not self.dense_confirmed,
        }
        return [f"device {self.name}: {text}" for text, holds in doubts.items() if holds]

    def mapping(self) -> dict[str, Any]:
        """Return the device as YAML content that reads back to equal figures."""
        content = _with_units(self.model_dump(mode="json", exclude_defaults=True))
        if self.energy:
            content["energy"] = [
                _with_units(known.model_dump(mode="json", exclude_defaults=True)) for known in self.energy
            ]
        if self.slow_memory is not None:
            content["slow_memory"] = _with_units(self.slow_memory.model_dump(mode="json", exclude_defaults=True))
        if self.modes:
            content["modes"] = {
                name: _with_units(mode.model_dump(mode="json", exclude_none=True)) for name, mode in self.modes.items()
            }
        return content


def _with_units(figures: dict[str, Any]) -> dict[str, Any]:
    written = {key: f"{value!r} {_UNITS[key]}" if key in _UNITS else value for key, value in figures.items()}
    if "other_peaks" in figures:
        written["other_peaks"] = {name: f"{value!r} FLOP/s" for name, value in figures["other_peaks"].items()}
    return written
