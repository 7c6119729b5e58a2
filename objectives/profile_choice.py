"""Which calibrated profile prices a precision and a batch, and what is not known where it was measured under others."""

import math
from statistics import median
from typing import Literal

from objectives.device import Calibration, Device, Energy

FAR_OFF = 0.25  # held-out median error of a phase that is said wherever the profile is used
Phase = Literal["prefill", "decode"]
#: Precisions whose measured efficiencies carry over, the nearest first; "" is a profile of any. All but int8 and
#: nvfp4 are counted at the FP16 peak. NVFP4 has a peak of its own: its share of that says nothing of another. FP32 has none
#: that a device file states: only what was measured in it says how far below FP16's it stays.
TRANSFERABLE: dict[str, tuple[str, ...]] = {
    "fp16": ("fp16", "", "int4", "q8_0", "w4", "fp32"),
    "int4": ("int4", "", "q8_0", "w4", "fp16", "fp32"),
    "int8": ("int8", "", "fp16", "int4", "q8_0", "w4", "fp32"),
    "nvfp4": ("nvfp4", ""),
    "fp32": ("fp32", ""),
}
#: Least and largest measured / predicted at batch 8 from a calibration at batch 1: 31 rows of each phase in 7 groups
#: on Jetson AGX Orin and AGX Thor. Source: `benchmarks/calibration.py`, batch 8 from batch 1.
BATCH_8_FROM_1: dict[Phase, tuple[float, float]] = {"prefill": (1.16, 6.42), "decode": (0.86, 2.68)}


def calibration_for(device: Device, precision: str, batch: int = 1) -> tuple[Calibration | None, str]:
    """The profile of this power mode that computes most like the precision, and how to name it.

    Among profiles of one precision the nearest batch, then the smallest held-out error. (None, reason) where no
    profile computes alike.
    """
    here = [p for p in device.profiles if p.mode == device.mode]
    sources = TRANSFERABLE[precision]
    alike = [p for p in here if p.precision in sources]
    if not alike:
        what = f"no calibrated profile that {precision} could use" if here else "no calibrated profile"
        return None, f"datasheet peaks, {what} for this device"

    def distance(p: Calibration) -> tuple[int, float, bool, float]:
        apart = max(p.batch, batch) / min(p.batch, batch)
        return sources.index(p.precision), apart, p.held_out_error is None, p.held_out_error or 0.0

    best = min(alike, key=distance)
    return best, f"calibrated ({_named(best, precision, batch)})"


def energy_for(device: Device, profile: Calibration | None, precision: str, batch: int) -> Energy | None:
    """The coefficients of this power mode: of the profile's engine, of the precision and the batch where there are several."""
    engine = None if profile is None else profile.engine

    def distance(e: Energy) -> tuple[bool, bool, bool, float]:
        error = float("inf") if e.held_out_error is None else e.held_out_error
        return e.engine != engine, precision not in e.precisions, batch not in e.batches, error

    return min((e for e in device.energy if e.mode == device.mode), key=distance, default=None)


def energy_named(energy: Energy) -> str:
    """What joules are made of and how well that is known."""
    per_byte = f" + {energy.per_byte * 1e12:.3g} pJ x bytes" if energy.per_byte else ""
    made = f"{energy.base_power:.3g} W x time + {energy.per_flop * 1e12:.3g} pJ x FLOPs{per_byte}"
    parts = [f"energy_j is {made}, metered with {energy.engine or 'an unnamed engine'}"]
    if energy.held_out_error is not None:
        parts.append(f"{100 * energy.held_out_error:.1f} % off on models held out given their times")
    if energy.held_out:
        off = median(abs(1.0 / ratio - 1.0) for ratio in energy.held_out)
        parts.append(f"{100 * off:.0f} % with their times predicted")
    rail = f"of {energy.rail}, not the wall" if energy.rail else "of an unnamed rail"
    return f"{', '.join(parts)}; {rail}; throttling is not modelled"


def energy_unseen(energy: Energy, precision: str, batch: int, tokens: int, *, experts: bool) -> str:
    """What of a request the metered rows have not seen, "" where they have seen its like."""
    unseen = []
    if energy.batches and batch not in energy.batches:
        unseen.append(f"batch {batch} (metered: {', '.join(map(str, energy.batches))})")
    if energy.most_tokens is not None and tokens > energy.most_tokens:
        unseen.append(f"{tokens:,} tokens (metered: up to {energy.most_tokens:,})")
    if energy.precisions and precision not in energy.precisions:
        unseen.append(f"{precision} (metered: {', '.join(energy.precisions)})")
    if experts and not energy.experts:
        unseen.append("experts (metered: dense models)")
    return f"energy_j extrapolates, nothing was metered of: {', '.join(unseen)}" if unseen else ""


def _named(profile: Calibration, precision: str, batch: int) -> str:
    """Engine, the precision that is priced, and what was measured instead of it."""
    parts = [f"{profile.engine or 'unnamed engine'}, {precision if profile.precision else 'any precision'}"]
    if profile.precision not in ("", precision):
        article = "a" if profile.precision.startswith(("q", "w")) else "an"
        parts.append(f"efficiencies transferred from {article} {profile.precision} measurement")
    if profile.batch != batch:
        (low, high), (least, most) = BATCH_8_FROM_1["prefill"], BATCH_8_FROM_1["decode"]
        parts.append(
            f"measured at batch {profile.batch}, and prefill at batch {batch} cannot be known from it: at batch 8 it took "
            f"{low:.2g} to {high:.2g} times what batch 1 predicts, decode {least:.2g} to {most:.2g}"
        )
    for phase, ratios in profile.held_out.items():
        off = median(abs(1.0 / ratio - 1.0) for ratio in ratios)
        if off > FAR_OFF:
            parts.append(f"{phase} {100 * off:.0f} % off on models held out")
    return "; ".join(parts)


def widening(profile: Calibration, batch: int, phase: Phase) -> float:
    """Factor ≥ 1 on measured / predicted where the profile was measured at another batch.

    The worst of `BATCH_8_FROM_1` to the power ln(larger batch / smaller) / ln 8; 1 at the profile's own batch.
    """
    least, most = BATCH_8_FROM_1[phase]
    worst = most if batch > profile.batch else 1.0 / least
    return max(1.0, math.exp(math.log(worst) * abs(math.log(batch / profile.batch)) / math.log(8.0)))
