"""Which calibrated profile prices a precision and a batch, and what is not known where it was measured under others."""

from statistics import median

from objectives.device import Calibration, Device
from objectives.transfers import Asked, transfers

FAR_OFF = 0.25  # held-out median error of a phase that is said wherever the profile is used
#: Precisions whose measured efficiencies carry over, the nearest first; "" is a profile of any. All but int8 and
#: nvfp4 run their products at the FP16 peak. NVFP4 has a peak of its own: its share of that says nothing of another.
TRANSFERABLE: dict[str, tuple[str, ...]] = {
    "fp16": ("fp16", "", "int4", "q8_0", "w4", "fp32"),
    "int4": ("int4", "", "q8_0", "w4", "fp16", "fp32"),
    "int8": ("int8", "", "fp16", "int4", "q8_0", "w4", "fp32"),
    "nvfp4": ("nvfp4", ""),
}


def calibration_for(device: Device, asked: Asked) -> tuple[Calibration | None, str]:
    """The profile of this power mode that computes most like what is asked, and how to name it.

    Among profiles of one precision the nearest batch, then the smallest held-out error. (None, reason) where no
    profile computes alike.
    """
    here = [p for p in device.profiles if p.mode == device.mode]
    sources = TRANSFERABLE[asked.precision]
    alike = [p for p in here if p.precision in sources]
    if not alike:
        what = f"no calibrated profile that {asked.precision} could use" if here else "no calibrated profile"
        return None, f"datasheet peaks, {what} for this device"

    def distance(p: Calibration) -> tuple[int, float, bool, float]:
        apart = max(p.batch, asked.batch) / min(p.batch, asked.batch)
        return sources.index(p.precision), apart, p.held_out_error is None, p.held_out_error or 0.0

    best = min(alike, key=distance)
    return best, f"calibrated ({_named(best, asked)})"


def _named(profile: Calibration, asked: Asked) -> str:
    """Engine, the precision that is priced, and in what that lies outside of what was measured."""
    parts = [f"{profile.engine or 'unnamed engine'}, {asked.precision if profile.precision else 'any precision'}"]
    parts += [transfer.said for transfer in transfers(profile, asked)]
    for phase, ratios in profile.held_out.items():
        off = median(abs(1.0 / ratio - 1.0) for ratio in ratios)
        if off > FAR_OFF:
            parts.append(f"{phase} {100 * off:.0f} % off on models held out")
    return "; ".join(parts)
