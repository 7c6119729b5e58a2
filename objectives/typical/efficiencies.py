"""Typical efficiencies by class of chip, format and engine, with how far devices lie from them: what prices a device without a profile of its own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.device import CHIPS, Calibration, Chip, Device, Phase
from objectives.engines import engine_of
from objectives.plugins import packaged
from objectives.precision import Precision, precision
from objectives.transfers import Conditions

FEWEST = 4  # models held out that claim 80 %
FAMILIES = ("fp16", "w8", "w4", "int8", "fp4")
_Sd = Annotated[float, Field(gt=0)]


class Level(BaseModel):
    """A phase of a class: the median of measured / predicted under the shape, and its standard deviation in log over devices.

    seen: whether a device of the kind was; else its devices lie as far from it as those of kinds that were left out whole.
    """

    model_config = ConfigDict(extra="forbid")
    ratio: Annotated[float, Field(gt=0)]
    sd: _Sd
    seen: bool = True


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

    differs: coefficients of the profile that are otherwise in a class ("cpu") or a kind of it ("gpu int8"). residuals: log(measured /
    predicted) in standard deviations of its cell, of rows of devices whose cell had not seen them, as many for each of
    the `devices`; with_engine: the same where the engine was stated; unseen: the same of devices whose kind was left out whole; few: measured / predicted of rows of devices of which three others had been seen.
    ridge: see `shaped`. helpful: kinds and engines of which stating the engine brings rows of devices left out nearer. builds: engines' builds of the rows.

    Source: `python -m benchmarks.typical`, which writes the file.
    """

    model_config = ConfigDict(extra="forbid")
    shape: Calibration
    differs: dict[str, dict[str, float]] = {}
    ridge: float = 0.0
    devices: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    residuals: dict[Phase, list[float]]
    with_engine: dict[Phase, list[float]]
    unseen: dict[Phase, list[float]]
    few: dict[Phase, list[float]] = {}
    helpful: list[str] = []
    builds: dict[str, list[str]] = {}
    cells: list[Cell]
    source: str

    def knows(self, device: Device, engine: str) -> bool:
        """Whether rows of a device's kind with an engine were among them."""
        return bool(engine) and any(
            (cell.chip, cell.kind, cell.engine) == (device.chip, chip_kind(device), engine) for cell in self.cells
        )

    def cell(self, device: Device, family: str, engine: str) -> Cell:
        """The cell of a device's kind, of any engine where there is none of this one, of a kind that was not seen where its own was not."""
        places = ((device.chip, kind, family, by) for kind in (chip_kind(device), "") for by in (engine, ""))
        return next(self._cells[place] for place in places if place in self._cells)

    def shaped(self, device: Device) -> Calibration:
        """The profile that all classes share for a device.

        η_c falls with FLOPs a byte, as far as devices were seen to have them: times (r/100)^-`ridge`. Arithmetic of decoding runs
        at units of INT8, so that its share follows INT8 over twice FP16 instead.
        """
        otherwise = self.differs.get(device.chip, {}) | self.differs.get(f"{device.chip} {chip_kind(device)}", {})
        peak = device.rate("fp16")
        share = min(max(peak / device.bandwidth / 100.0, 0.18), 9.5) ** -self.ridge
        integers = self.shape.decode_compute * (device.int8 or peak) / (2.0 * peak) / share
        of_device = {"compute_efficiency": self.shape.compute_efficiency * share, "decode_compute": integers}
        return self.shape.model_copy(update={**otherwise, **of_device})

    @cached_property
    def _cells(self) -> Mapping[tuple[str, str, str, str], Cell]:
        return {(cell.chip, cell.kind, cell.family, cell.engine): cell for cell in self.cells}


OF_HBM = 1.2e12  # bytes per second of a server GPU: faster memory is HBM


def chip_kind(device: Device) -> str:
    """What in its datasheet sets a device apart in its class: the vendor of an NPU; of others `int8` where INT8 is faster than FP16, else `fp16`.

    Server GPUs with HBM, of whose bandwidth kernels use a smaller share, are a kind of their own.
    """
    if device.chip == "any":
        return ""
    if device.chip == "npu":
        return device.vendor or "no vendor"
    kind = "int8" if (device.int8 or 0.0) > (device.fp16 or 0.0) else "fp16"
    return f"{kind} HBM" if device.chip == "server_gpu" and device.bandwidth > OF_HBM else kind


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
    """The profile of a cell: the shape's phases by as much slower as the cell says, with errors of its standard deviation."""
    prefill, decode, shape = cell.prefill.ratio, cell.decode.ratio, known.shaped(device)
    return shape.model_copy(
        update={
            "typical": cell.chip,
            "engine": cell.engine,
            "mode": device.mode,
            "compute_efficiency": shape.compute_efficiency / prefill,
            "prefill_bandwidth_efficiency": shape.bandwidth_efficiency / prefill,
            "bandwidth_efficiency": shape.bandwidth_efficiency / decode,
            "decode_compute": shape.decode_compute * prefill / decode,
            "prefill_overhead": (shape.prefill_overhead or shape.overhead) * prefill,
            "overhead": shape.overhead * decode,
            "held_out": {phase: _errors(known, cell, phase) for phase in known.unseen},
            "held_out_models": known.devices,
            "source": f"typical of {CHIPS[cell.chip]}: {known.rows:,} rows of {known.devices} devices; {known.source}",
        }
    )


def _errors(known: Typical, cell: Cell, phase: Phase) -> list[float]:
    """Measured / predicted of devices left out, in the cell's standard deviations."""
    level = cell.level(phase)
    seen = known.with_engine if cell.engine else known.residuals
    return sorted(math.exp(level.sd * z) for z in (seen if level.seen else known.unseen)[phase])


def as_far(ratios: Sequence[float], others: Sequence[float]) -> list[float]:
    """As many ratios as `others`: at each rank the one farther from the middle, so that no range is narrower than theirs."""
    levels = (np.arange(len(others)) + 0.5) / len(others)
    own, theirs = np.quantile(ratios or [1.0], levels), np.sort(others)
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
