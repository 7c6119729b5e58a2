"""Devices: dense peaks, bandwidth and memory with their sources, power modes, calibration."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from objectives.quantities import Bytes, BytesPerSecond, FlopsPerSecond, Name, OpsPerSecond, milliseconds

_UNITS = {"fp16": "FLOP/s", "int8": "OP/s", "bandwidth": "B/s", "memory": "B", "cache": "B"}
SPARSE_SMELL_FLOP_PER_BYTE = 500.0


class Calibration(BaseModel):
    """Achieved share of the datasheet: an operator takes max(F/(η_c π), bytes/(η_b β)) + τ.

    Where: η_c `compute_efficiency` (and `_int8` for the INT8 peak), η_b `bandwidth_efficiency`,
    τ `overhead` per operator instance; `request_overhead` once per prefill (a server's constant).
    held_out: measured / predicted of every row whose model the fit had not seen, by phase.
    """

    model_config = ConfigDict(extra="forbid")
    engine: Name = ""
    precision: Name = ""
    mode: Name = ""
    batch: Annotated[int, Field(ge=1)] = 1
    compute_efficiency: Annotated[float, Field(gt=0, le=2)] = 1.0
    compute_efficiency_int8: Annotated[float, Field(gt=0, le=2)] | None = None
    bandwidth_efficiency: Annotated[float, Field(gt=0, le=2)] = 1.0
    overhead: Annotated[float, BeforeValidator(lambda v: v if v == 0 else milliseconds(v))] = 0.0
    request_overhead: Annotated[float, BeforeValidator(lambda v: v if v == 0 else milliseconds(v))] = 0.0
    held_out_error: Annotated[float, Field(ge=0)] | None = None
    held_out: dict[Literal["prefill", "decode"], list[Annotated[float, Field(gt=0)]]] = {}
    source: str = ""

    @property
    def overhead_s(self) -> float:
        """τ, seconds per operator instance."""
        return self.overhead * 1e-3

    @property
    def request_s(self) -> float:
        """Seconds per request, once in a prefill."""
        return self.request_overhead * 1e-3


class Mode(BaseModel):
    """A power mode: what differs from the device's default mode."""

    model_config = ConfigDict(extra="forbid")
    fp16: FlopsPerSecond | None = None
    int8: OpsPerSecond | None = None
    bandwidth: BytesPerSecond | None = None


class Device(BaseModel):
    """One accelerator: dense peaks in operations/s (1 multiply-accumulate = 2), bytes/s, bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    vendor: Name = ""
    fp16: FlopsPerSecond
    int8: OpsPerSecond
    bandwidth: BytesPerSecond
    memory: Bytes
    cache: Bytes | None = None
    confidence: Literal["verified", "derived", "recalled", "estimate", "measured"] = "estimate"
    source: str = ""
    note: str = ""
    dense_confirmed: bool = False
    other_peaks: dict[Name, FlopsPerSecond | OpsPerSecond] = {}
    modes: dict[Name, Mode] = {}
    mode_source: str = ""
    mode: Name = ""
    profiles: list[Calibration] = []

    @property
    def flop_per_byte(self) -> float:
        """Ridge point of the roofline, dense FP16 FLOP per byte."""
        return self.fp16 / self.bandwidth

    @property
    def memory_gb(self) -> float:
        """Memory capacity, GB of 10^9 bytes."""
        return self.memory / 1e9

    def in_mode(self, mode: str) -> "Device":
        """The device running in one of its power modes.

        Raises:
            ValueError: unknown mode, with the choices.
        """
        if mode not in self.modes:
            choices = ", ".join(self.modes) or "none"
            raise ValueError(
                f"expected a power mode of {self.name} ({choices}), got {mode!r}; choose one or drop @{mode}"
            )
        changed = self.modes[mode].model_dump(exclude_none=True)
        return self.model_copy(update=changed | {"mode": mode, "modes": {}})

    def warning(self) -> str | None:
        """What looks wrong about the figures, or None."""
        if self.flop_per_byte <= SPARSE_SMELL_FLOP_PER_BYTE or self.dense_confirmed:
            return None
        return (
            f"device {self.name}: {self.flop_per_byte:.0f} dense FP16 FLOP per byte exceeds "
            f"{SPARSE_SMELL_FLOP_PER_BYTE:.0f}; it looks like a sparsity figure. Halve it if it is, "
            "or set dense_confirmed: true in the device file"
        )

    def calibration_for(self, precision: str, batch: int = 1) -> tuple[Calibration | None, str]:
        """The profile of this power mode that is nearest in precision and batch, and how to name it.

        Among equally near ones the smallest held-out error; one of another precision is marked
        borrowed; (None, reason) when none is shipped.
        """
        here = [p for p in self.profiles if p.mode == self.mode]
        if not here:
            return None, "datasheet peaks, no calibrated profile for this device"

        def distance(p: Calibration) -> tuple[bool, float, bool, float]:
            apart = max(p.batch, batch) / min(p.batch, batch)
            return p.precision != precision, apart, p.held_out_error is None, p.held_out_error or 0.0

        best = min(here, key=distance)
        marks = [best.engine or "unnamed engine", best.precision or "any precision"]
        marks += [f"batch {best.batch}"] * (best.batch != batch) + ["borrowed"] * (best.precision != precision)
        return best, f"calibrated ({', '.join(marks)})"

    def mapping(self) -> dict[str, Any]:
        """The device as YAML content that reads back to equal figures."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        for name, unit in _UNITS.items():
            if name in content:
                content[name] = f"{content[name]!r} {unit}"
        content.pop("other_peaks", None)
        content.pop("modes", None)
        return content
