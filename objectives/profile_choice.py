"""Which calibrated profile prices a precision and a batch, and what is not known where it was measured under others."""

import math
from statistics import median
from typing import Literal

from objectives.device import Calibration, Device

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
