"""Typical efficiencies by class of chip, format and engine, with how far devices lie from them: what prices a device without a profile of its own."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from objectives.device import CHIPS, Calibration, Chip, Device, Phase
from objectives.engines import engine_of
from objectives.plugins import packaged
from objectives.precision import Precision, precision
from objectives.transfers import Conditions
from search_spaces.arrays import FloatArray

FEWEST = 4  # models held out that claim 80 %
FAMILIES = ("fp16", "w8", "w4", "int8", "fp4")
_Sd = Annotated[float, Field(gt=0)]
Numbers = Annotated[  # in a file one text with blanks between, which is read several times as fast as a list
    list[float],
    BeforeValidator(lambda given: given.split() if isinstance(given, str) else given),
    PlainSerializer(lambda numbers: " ".join(map(repr, numbers)), return_type=str, when_used="json"),
]


class Level(BaseModel):
    """A phase of a class: the median of measured / predicted under the shape, and its standard deviation in log over devices."""

    model_config = ConfigDict(extra="forbid")
    ratio: Annotated[float, Field(gt=0)]
    sd: _Sd


class Cell(BaseModel):
    """Both phases of a kind of chips (see `chip_kind`) in a family of formats with an engine; "" of a kind is one that was not seen, "" of an engine any."""

    model_config = ConfigDict(extra="forbid")
    chip: Chip
    kind: str = ""
    family: str
    engine: str
    prefill: Level
    decode: Level

    def level(self, phase: Phase) -> Level:
        """That of a phase."""
        return self.prefill if phase == "prefill" else self.decode


class Typical(BaseModel):
    """What is shipped: a profile that all classes share, by how much each is slower, and errors of devices that were left out.

    differs: coefficients of the profile that are otherwise in a class ("cpu") or a kind of it ("gpu int8"). residuals: by kind ("" is one that was
    not seen) quantiles of log(measured / predicted) in standard deviations of its cell, of rows of devices whose cell had not seen them; with_engine: the same where the engine was stated; few: measured / predicted of rows of devices of which three others had been seen. picked: by kind, quantiles of the standard deviations that limits need so that the slowest row priced within one holds it.
    ridge: see `shaped`. widest_npu: bytes per second of the widest memory that three NPUs had at least. helpful: kinds and engines of which stating the engine brings rows of devices left out nearer. builds: engines' builds of the rows. layers: kinds with rows of layers beside attention.

    Source: `python -m benchmarks.typical`, which writes the file.
    """

    model_config = ConfigDict(extra="forbid")
    shape: Calibration
    differs: dict[str, dict[str, float]] = {}
    ridge: float = 0.0
    widest_npu: float = math.inf
    devices: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    residuals: dict[str, dict[Phase, Numbers]]
    with_engine: dict[str, dict[Phase, Numbers]]
    few: dict[Phase, Numbers] = {}
    picked: dict[str, dict[Phase, Numbers]] = {}
    helpful: list[str] = []
    layers: list[str] = []
    builds: dict[str, list[str]] = {}
    cells: list[Cell]
    source: str

    def knows(self, device: Device, engine: str) -> bool:
        """Whether rows of two boards of a device's kind with an engine were among them, of its class where its kind was not."""
        return bool(engine) and self.cell(device, FAMILIES[0], engine).engine == engine

    def cell(self, device: Device, family: str, engine: str) -> Cell:
        """The cell of a device's kind, of any engine where there is none of this one, of a kind that was not seen where its own was not."""
        places = ((device.chip, kind, family, by) for kind in (chip_kind(device), "") for by in (engine, ""))
        return next(self._cells[place] for place in places if place in self._cells)

    def shaped(self, device: Device) -> Calibration:
        """The profile that all classes share for a device.

        η_c falls with FLOPs a byte, as far as devices were seen to have them: times (r/100)^-`ridge`; an NPU's with the power 1, as
        chunks of a prompt wait for weights, which INT8 has twice as many bytes of as INT4. It decodes as if no memory were wider than
        `widest_npu`: what is drawn of a wider one one or two boards say, whose prefills do draw it. Arithmetic of decoding runs
        at units of INT8, so that its share follows INT8 over twice FP16 instead, unless a kind has one of its own or a card has no tensor cores.
        """
        otherwise = self.differs.get(device.chip, {}) | self.differs.get(f"{device.chip} {chip_kind(device)}", {})
        peak, streams = device.rate("fp16"), device.chip == "npu"
        share = min(max(peak / device.bandwidth / 100.0, 0.18), 9.5) ** -(1.0 if streams else self.ridge)
        integers = self.shape.decode_compute * ((not device.by_dp4a and device.int8) or peak) / (2.0 * peak) / share
        of_device = {"compute_efficiency": self.shape.compute_efficiency * share, "decode_compute": integers}
        if streams:
            of_device["compute_efficiency_int8"] = of_device["compute_efficiency"] / 4.0
            drawn = of_device["prefill_bandwidth_efficiency"] = self.shape.bandwidth_efficiency
            of_device["bandwidth_efficiency"] = drawn * min(1.0, self.widest_npu / device.bandwidth)
        return self.shape.model_copy(update=of_device | otherwise)

    @cached_property
    def _cells(self) -> Mapping[tuple[str, str, str, str], Cell]:
        return {(cell.chip, cell.kind, cell.family, cell.engine): cell for cell in self.cells}


OF_HBM = 1.2e12  # bytes per second of a server GPU: faster memory is HBM
PHONE_CHIP = re.compile(r"phone|\b(?:pixel|galaxy|android|mali|adreno|exynos|dimensity|tensor g\d)", re.IGNORECASE)


def chip_kind(device: Device) -> str:
    """What sets a device apart in its class: its maker and the path to its memory; "" where its class has one kind.

    Of processors the instruction set; phones' chips are kinds of their own, as are Apple's of two dies and server GPUs with HBM.
    """
    maker, phone = device.maker, device.cooling == "phone" or PHONE_CHIP.search(device.name) is not None
    if device.chip == "cpu":
        return "phone" if phone else "x86" if maker in ("AMD", "Intel") or "x86" in device.name.lower() else "Arm"
    if device.chip == "soc":
        if phone:
            return "phone"
        return {"Apple": "Apple" + " Ultra" * ("ultra" in device.name.lower()), "NVIDIA": "NVIDIA"}.get(maker, "other")
    if device.chip == "server_gpu":
        return f"{maker or 'unknown'}{' HBM' if device.bandwidth > OF_HBM else ''}"
    return "" if device.chip == "any" else f"{maker or 'unknown'}{' phone' * phone}"


@cache
def shipped() -> Typical:
    """The typical efficiencies of the package."""
    return Typical.model_validate(packaged("objectives.typical", "efficiencies"))


def family_of(priced: Precision) -> str:
    """The family of a format: by the peak of its products, or by the bits of weights that are widened before them."""
    if priced.linear_peak != "fp16":
        return priced.linear_peak
    return "fp16" if priced.weight_bytes > 1.5 else "w8" if priced.weight_bytes > 0.8 else "w4"


def typical_profile(device: Device, asked: Conditions) -> Calibration:
    """The profile of a device of which nothing is measured: that of its class, with the errors of devices left out."""
    known = shipped()
    cell = known.cell(device, family_of(precision(asked.precision, own=asked.own)), engine_of(asked.engine))
    return profile_of(known, cell, device)


def profile_of(known: Typical, cell: Cell, device: Device) -> Calibration:
    """The profile of a cell: the shape's phases by as much slower as the cell says, with errors of its standard deviation, of picks at least those of rows."""
    prefill, decode, shape = cell.prefill.ratio, cell.decode.ratio, known.shaped(device)
    return shape.model_copy(
        update={
            "typical": cell.chip,
            "engine": cell.engine,
            "mode": device.mode,
            "compute_efficiency": shape.compute_efficiency / prefill,
            "compute_efficiency_int8": shape.compute_efficiency_int8 and shape.compute_efficiency_int8 / prefill,
            "prefill_bandwidth_efficiency": (shape.prefill_bandwidth_efficiency or shape.bandwidth_efficiency)
            / prefill,
            "bandwidth_efficiency": shape.bandwidth_efficiency / decode,
            "decode_compute": shape.decode_compute * prefill / decode,
            "prefill_overhead": (shape.prefill_overhead or shape.overhead) * prefill,
            "overhead": shape.overhead * decode,
            "held_out": (errors := _of_kind(known.with_engine if cell.engine else known.residuals, cell, device)),
            "picked": {p: as_far(zs, errors[p]) for p, zs in _of_kind(known.picked, cell, device).items()},
            "held_out_models": known.devices,
            "layers": f"{cell.chip} {chip_kind(device)}" in known.layers,
            "source": f"typical of {CHIPS[cell.chip]}: {known.rows:,} rows of {known.devices} devices; {known.source}",
        }
    )


def _of_kind(kinds: Mapping[str, dict[Phase, list[float]]], cell: Cell, device: Device) -> dict[Phase, list[float]]:
    """What a device's kind has in the cell's standard deviations, as measured / predicted."""
    own = kinds.get(f"{cell.chip} {chip_kind(device)}", kinds.get("", {}))
    return {phase: [math.exp(cell.level(phase).sd * z) for z in zs] for phase, zs in own.items()}


def as_far(ratios: Sequence[float] | FloatArray, others: Sequence[float] | FloatArray) -> list[float]:
    """As many ratios as `others`: at each rank the one farther from the middle, so that no range is narrower than theirs."""
    levels = (np.arange(len(others)) + 0.5) / len(others)
    own, theirs = np.quantile(ratios if len(ratios) else [1.0], levels), np.sort(others)
    farther: list[float] = np.where(levels < 0.5, np.minimum(own, theirs), np.maximum(own, theirs)).tolist()
    return farther


@dataclass(frozen=True)
class HeldOut:
    """Measured / predicted of a phase of what was held out: `count` models, or devices with as many ratios of each."""

    ratios: Sequence[float]
    count: int
    what: Literal["model", "device"]

    @property
    def ranks(self) -> int:
        """How many ratios their quantiles are of: of models one each, whichever rows are whose."""
        return len(self.ratios) if self.what == "device" else self.count


def held_out_of(
    profile: Calibration, phase: Phase, device: Device | None = None, asked: Conditions | None = None
) -> HeldOut:
    """What was held out of a phase.

    Where a calibrated profile's models are fewer than `FEWEST`, the errors that devices were seen to have after three rows
    of theirs, and of a phase without rows those of the class; no more of a profile that does not say what it was measured with.
    """
    own = profile.held_out.get(phase, [])
    if profile.by_device:
        return HeldOut(own, profile.held_out_models or len(own), "device")
    models = min(len(own), profile.held_out_models or len(own))
    lengths = {"prefill": profile.prompts, "decode": profile.contexts}
    if models >= FEWEST or not any(lengths.values()) or device is None or asked is None:
        return HeldOut(own, models, "model")
    typical = shipped()
    if lengths[phase] is None:
        return HeldOut(typical_profile(device, asked).held_out[phase], typical.devices, "device")
    return HeldOut(as_far(own, typical.few[phase]), typical.devices, "device")
