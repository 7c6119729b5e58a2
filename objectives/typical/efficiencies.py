"""Typical efficiencies by class of chip, format and engine, with how far devices lie from them: what prices a device without a profile of its own."""

import math
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from objectives.device import CHIPS, Calibration, Chip, Device, Phase
from objectives.engines import engine_of
from objectives.plugins import packaged
from objectives.precision import Precision, precision
from objectives.transfers import Conditions

FAMILIES = ("fp16", "w8", "w4", "int8", "fp4")
_Sd = Annotated[float, Field(gt=0)]


class Level(BaseModel):
    """A phase of a class: the median of measured / predicted under the shape, and its standard deviation in log over devices.

    scale: by how much devices of the class lie farther from it, in standard deviations, than those of all classes; None where
    none was seen, or its engine was not.
    """

    model_config = ConfigDict(extra="forbid")
    ratio: Annotated[float, Field(gt=0)]
    sd: _Sd
    scale: Annotated[float, Field(gt=0)] | None = None


class Cell(BaseModel):
    """Both phases of a class of chips in a family of formats with an engine; "" of an engine is any."""

    model_config = ConfigDict(extra="forbid")
    chip: Chip
    family: str
    engine: str
    prefill: Level
    decode: Level

    def level(self, phase: Phase) -> Level:
        """That of a phase."""
        return self.prefill if phase == "prefill" else self.decode


class Typical(BaseModel):
    """What is shipped: a profile that all classes share, by how much each is slower, and errors of devices that were left out.

    residuals: log(measured / predicted) in standard deviations of its cell times its scale, of rows of devices whose cell had not
    seen them, as many for each of the `devices`; with_engine: the same where the engine was stated; unscaled: the same of an engine
    that was not, in standard deviations alone, for classes without a scale.

    Source: `python -m benchmarks.typical`, which writes the file.
    """

    model_config = ConfigDict(extra="forbid")
    shape: Calibration
    devices: Annotated[int, Field(ge=1)]
    rows: Annotated[int, Field(ge=1)]
    residuals: dict[Phase, list[float]]
    with_engine: dict[Phase, list[float]]
    unscaled: dict[Phase, list[float]]
    cells: list[Cell]
    source: str

    def knows(self, chip: Chip, engine: str) -> bool:
        """Whether rows of a class with an engine were among them."""
        return bool(engine) and any((cell.chip, cell.engine) == (chip, engine) for cell in self.cells)

    def cell(self, chip: Chip, family: str, engine: str) -> Cell:
        """The cell of a class, of its usual engine where there is none of this one."""
        return self._cells.get((chip, family, engine)) or self._cells[chip, family, ""]

    @cached_property
    def _cells(self) -> Mapping[tuple[str, str, str], Cell]:
        return {(cell.chip, cell.family, cell.engine): cell for cell in self.cells}


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
    cell = known.cell(device.chip, family_of(precision(asked.precision)), engine_of(asked.engine))
    return profile_of(known, cell, device.mode)


def profile_of(known: Typical, cell: Cell, mode: str = "") -> Calibration:
    """The profile of a cell: the shape's phases by as much slower as the cell says, with errors of its standard deviation."""
    prefill, decode, shape = cell.prefill.ratio, cell.decode.ratio, known.shape
    return shape.model_copy(
        update={
            "typical": cell.chip,
            "engine": cell.engine,
            "mode": mode,
            "compute_efficiency": shape.compute_efficiency / prefill,
            "prefill_bandwidth_efficiency": shape.bandwidth_efficiency / prefill,
            "bandwidth_efficiency": shape.bandwidth_efficiency / decode,
            "prefill_overhead": (shape.prefill_overhead or shape.overhead) * prefill,
            "overhead": shape.overhead * decode,
            "held_out": {phase: _errors(known, cell, phase) for phase in known.unscaled},
            "held_out_models": known.devices,
            "source": f"typical of {CHIPS[cell.chip]}: {known.rows:,} rows of {known.devices} devices; {known.source}",
        }
    )


def _errors(known: Typical, cell: Cell, phase: Phase) -> list[float]:
    """Measured / predicted of devices left out, as far apart as those of the cell's class are."""
    level = cell.level(phase)
    if level.scale is None:
        return sorted(math.exp(level.sd * z) for z in known.unscaled[phase])
    scaled = known.with_engine if cell.engine else known.residuals
    return sorted(math.exp(level.sd * level.scale * z) for z in scaled[phase])
