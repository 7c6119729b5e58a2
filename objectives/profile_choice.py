"""Chooses the calibrated profile for a precision and a batch, and says what is not known where it was measured under others."""

from statistics import median

from objectives.device import CHIPS, Calibration, Device, Energy
from objectives.engines import engine_of
from objectives.transfers import Conditions, computing_as, extrapolations, rows_in
from objectives.typical.efficiencies import shipped, typical_profile
from search_spaces.formats import base_of

OF_DEVICE = ("shipped", "typical")  # words for the profiles of a device, without and with what is typical of its class
FAR_OFF = 0.25  # held-out median error of a phase that is said wherever the profile is used
_FEW, _MORE = ("int4", "mxfp4"), ("q5_k_m", "q6_k", "q8_0", "w4")
#: Precisions whose measured efficiencies carry over, the nearest first; "" is a profile of any. All but int8 are counted at
#: the FP16 peak. Any other format takes a profile of its own or of any: NVFP4 has a peak of its own, whose share says
#: nothing of another, and of FP32, which no device file states, only what was measured in it says how far below FP16's it stays.
TRANSFERABLE: dict[str, tuple[str, ...]] = {
    "fp16": ("fp16", "", *_FEW, *_MORE, "fp32"),
    "int4": ("int4", "", "mxfp4", *_MORE, "fp16", "fp32"),
    "mxfp4": ("mxfp4", "", "int4", *_MORE, "fp16", "fp32"),
    **{name: (name, "", *(other for other in (*_MORE, *_FEW) if other != name), "fp16", "fp32") for name in _MORE[:3]},
    "int8": ("int8", "", "fp16", *_FEW, *_MORE, "fp32"),
}


def calibration_for(device: Device, asked: Conditions, *, typical: bool = True) -> tuple[Calibration | None, str]:
    """The profile that prices a device in its power mode, and how to name it.

    Of the engine that is asked for, if any; among profiles of one precision those measured in the format itself, then the nearest
    batch, then the one that was measured with the most like lengths and experts, then the smallest held-out error. Where none computes
    alike what is typical of the class of chip, if wanted; (None, reason) of rates that were measured themselves, and of FP32, of which no class
    has rows.
    """
    here = [p for p in device.profiles if p.mode == device.mode]
    base, alike = base_of(asked.precision), computing_as(asked.precision)
    sources = tuple(dict.fromkeys([base, *TRANSFERABLE.get(alike, (alike, ""))]))
    usable = _of_engine([p for p in here if p.precision in sources], device, asked, typical)
    if not usable:
        return _without_profile(device, asked, measured=bool(here), typical=typical)

    def distance(p: Calibration) -> tuple[int, bool, float, int, bool, float]:
        otherwise = p.format != "" and p.format != base
        apart = max(p.batch, asked.batch) / min(p.batch, asked.batch)
        outside = len(extrapolations(p, asked))
        return sources.index(p.precision), otherwise, apart, outside, p.held_out_error is None, p.held_out_error or 0.0

    best = min(usable, key=distance)
    return best, f"calibrated ({_named(best, asked)})"


def _of_engine(profiles: list[Calibration], device: Device, asked: Conditions, typical: bool) -> list[Calibration]:
    """Those of the engine that is asked for; others where nothing is known of it in the class."""
    engine = engine_of(asked.engine)
    own = [p for p in profiles if not engine or engine_of(p.engine) == engine]
    return own if own or (typical and shipped().knows(device.chip, engine)) else profiles


def _without_profile(
    device: Device, asked: Conditions, *, measured: bool, typical: bool
) -> tuple[Calibration | None, str]:
    """What is typical of the class; (None, reason) where nothing is, and of rates that were measured themselves."""
    what = f"no calibrated profile that {asked.precision} could use" if measured else "no calibrated profile"
    if device.confidence == "measured":
        return None, f"rates as its file says they were measured, {what} for this device"
    if not typical or base_of(asked.precision) == "fp32":
        return None, f"datasheet peaks, {what} for this device"
    found = typical_profile(device, asked)
    return (
        found,
        f"typical of {CHIPS[device.chip]}{f' with {found.engine}' if found.engine else ''}, {what} for this device",
    )


def energy_for(device: Device, profile: Calibration | None, precision: str, batch: int) -> Energy | None:
    """The coefficients of this power mode: of the profile's engine, of the precision and the batch where there are several."""
    engine = None if profile is None else profile.engine

    def distance(e: Energy) -> tuple[bool, bool, bool, float]:
        error = float("inf") if e.held_out_error is None else e.held_out_error
        return e.engine != engine, not _metered(e, base_of(precision)), batch not in e.batches, error

    return min((e for e in device.energy if e.mode == device.mode), key=distance, default=None)


def energy_named(energy: Energy) -> str:
    """The terms of the energy and their accuracy."""
    per_byte = f" + {energy.per_byte * 1e12:.3g} pJ x bytes" if energy.per_byte else ""
    made = f"{energy.base_power:.3g} W x time + {energy.per_flop * 1e12:.3g} pJ x FLOPs{per_byte}"
    parts = [f"energy_j is {made}, metered with {energy.engine or 'an unnamed engine'}"]
    parts += [f"between {energy.between}"] if energy.between else []
    if energy.held_out_error is not None:
        parts.append(f"{100 * energy.held_out_error:.1f} % off on models held out given their times")
    if energy.held_out:
        off = median(abs(1.0 / ratio - 1.0) for ratio in energy.held_out)
        parts.append(f"{100 * off:.0f} % with their times predicted")
    rail = f"of {energy.rail}, not the wall" if energy.rail else "of an unnamed rail"
    return f"{', '.join(parts)}; {rail}; throttling is not modelled"


def energy_unseen(energy: Energy, precision: str, batch: int, tokens: int, *, experts: bool) -> str:
    """Conditions of a request outside of the metered rows, "" without any."""
    unseen = []
    if energy.batches and batch not in energy.batches:
        unseen.append(f"batch {batch} (metered: {', '.join(map(str, energy.batches))})")
    if energy.most_tokens is not None and tokens > energy.most_tokens:
        unseen.append(f"{tokens:,} tokens (metered: up to {energy.most_tokens:,})")
    if energy.precisions and not _metered(energy, precision):
        unseen.append(f"{precision} (metered: {', '.join(energy.precisions)})")
    if experts and not energy.experts:
        unseen.append("experts (metered: dense models)")
    return f"energy_j extrapolates, nothing was metered of: {', '.join(unseen)}" if unseen else ""


def _metered(energy: Energy, precision: str) -> bool:
    """Whether rows in a precision were metered; rows of int4 are of w4a16 too."""
    return precision in energy.precisions or precision in map(rows_in, energy.precisions)


def _named(profile: Calibration, asked: Conditions) -> str:
    """Engine, the precision that is priced, and in what that lies outside of what was measured."""
    parts = [f"{profile.engine or 'unnamed engine'}, {asked.precision if profile.precision else 'any precision'}"]
    parts += [f"from {profile.between}"] if profile.between else []
    parts += [transfer.sentence for transfer in extrapolations(profile, asked)]
    return "; ".join([*parts, *far_off(profile)])


def far_off(profile: Calibration) -> list[str]:
    """Each phase whose held-out median error is above `FAR_OFF`, with that error."""
    missed = {phase: profile.missed(phase) for phase in profile.held_out}
    return [
        f"{phase} {100 * off:.0f} % off on models held out"
        for phase, off in missed.items()
        if off is not None and off > FAR_OFF
    ]
