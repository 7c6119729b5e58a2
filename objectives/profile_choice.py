"""The choice of the calibrated profile for a precision, a batch and a power mode, and the errors of times on unmeasured devices."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, TypeVar

from objectives.device import CHIPS, Calibration, Device, Energy
from objectives.engines import RUNS, engine_of
from objectives.precision import precision
from objectives.transfers import MEASURED_FORMATS, Conditions, computing_as, extrapolations, rows_in, takes_as_measured
from objectives.typical.efficiencies import as_far, chip_kind, family_of, shipped, typical_profile
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
    """Return the profile for a device in its power mode, and its name.

    Of the engine that is asked for, if any, or that alone runs a format which nothing was measured in; among profiles of one precision those measured in the format itself, then the nearest
    batch, then the one that was measured with the most like lengths and experts, then the smallest held-out error. Where none computes
    alike what is typical of the class of chip, if wanted; (None, reason) of rates that were measured themselves, and of FP32, of which no class
    has rows.
    """
    here = [p for p in device.profiles if p.mode == device.mode]
    base, alike = base_of(asked.precision), computing_as(asked)
    in_format = any(takes_as_measured(p, base) for p in here)
    if here and not asked.engine and not in_format and all(p.engine for p in here):
        able = [name for name, runs in RUNS.items() if runs.runs_format(base)]
        of_weights = family_of(precision(base, own=asked.own)) in ("w4", "w8")
        asked = replace(asked, engine=able[0] if len(able) == 1 and of_weights else "")
    sources = tuple(dict.fromkeys([base, *TRANSFERABLE.get(alike, (alike, ""))]))
    usable, engine = [p for p in here if p.precision in sources], engine_of(asked.engine)
    of_engine = [p for p in usable if not engine or engine_of(p.engine) == engine]
    if of_engine or (typical and shipped().knows(device, engine)):
        usable = of_engine  # others where nothing is known of the engine in the class
    if not usable:
        return _without_profile(device, asked, measured=bool(here), typical=typical)

    def distance(p: Calibration) -> tuple[int, bool, float, int, bool, float]:
        otherwise = p.format != "" and p.format != base
        apart = max(p.batch, asked.batch) / min(p.batch, asked.batch)
        outside = len(extrapolations(p, asked))
        return sources.index(p.precision), otherwise, apart, outside, p.held_out_error is None, p.held_out_error or 0.0

    best = min(usable, key=distance)
    return _doubted(best, device, asked), f"calibrated ({_named(best, asked)})"


def _doubted(profile: Calibration, device: Device, asked: Conditions) -> Calibration:
    """A profile with errors that reach at least as far as those of devices of the class, and no memory, where another engine or kind of format is asked for."""
    base, engine = base_of(asked.precision), engine_of(profile.engine)
    another = bool(asked.engine) and engine_of(asked.engine) != engine
    alike = takes_as_measured(profile, base) or base == profile.precision
    seen_to_transfer = {profile.precision, computing_as(asked)} == MEASURED_FORMATS
    unpacked = device.chip != "cpu" and engine in RUNS and RUNS[engine].runs_format(base)
    if another or not alike:
        profile = profile.model_copy(update={"engine_gb": None, "memory_factor": None})
    if not another and (alike or seen_to_transfer or unpacked):
        return profile
    usual = typical_profile(device, asked)
    errors = {phase: as_far(profile.held_out.get(phase, []), ratios) for phase, ratios in usual.held_out.items()}
    counted = {"borrowed": device.chip, "held_out": errors, "held_out_models": usual.held_out_models}
    return profile.model_copy(update=counted)


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
    """Return the energy coefficients of this power mode, for the profile's engine, precision and batch if there are several."""
    engine = None if profile is None else profile.engine

    def distance(e: Energy) -> tuple[bool, bool, bool, float]:
        error = float("inf") if e.held_out_error is None else e.held_out_error
        return e.engine != engine, not _metered(e, base_of(precision)), batch not in e.batches, error

    return min((e for e in device.energy if e.mode == device.mode), key=distance, default=None)


def energy_named(energy: Energy) -> str:
    """Return the terms of the energy and their accuracy."""
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
    """Return a sentence on conditions of a request outside of the metered rows, "" without any."""
    unseen = []
    if energy.batches and batch not in energy.batches:
        unseen.append(f"batch {batch} (metered: {', '.join(map(str, energy.batches))})")
    if energy.most_tokens is not None and tokens > energy.most_tokens:
        unseen.append(f"{tokens:,} tokens (metered: up to {energy.most_tokens:,})")
    if energy.precisions and not _metered(energy, precision):
        unseen.append(f"{precision} (metered: {', '.join(energy.precisions)})")
    if experts and not energy.experts:
        unseen.append("experts (metered: dense models)")
    return f"energy_j extrapolates, not metered: {', '.join(unseen)}" if unseen else ""


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
    """Return each phase whose held-out median error is above `FAR_OFF`, with that error."""
    missed = {phase: profile.missed(phase) for phase in profile.held_out}
    return [
        f"{phase} {100 * off:.0f} % off on models held out"
        for phase, off in missed.items()
        if off is not None and off > FAR_OFF
    ]


#: Source: `python -m benchmarks.datasheet`: median, 10th and 90th percentile of measured / predicted at batch 1.
PREFILL, DECODE = (2.1, 1.1, 5.6), (1.6, 1.2, 3.2)
NPU_PREFILL = (4.6, 4.3, 5.4)
CURE = "to be exact measure (plas measure, plas calibrate)"


def doubts(device: Device, calibration: Calibration | None) -> list[str]:
    """Return sentences on the error of times if nothing was measured on the device; none for measured devices."""
    if calibration is not None:
        return [_typical(device, calibration)] if calibration.typical else []
    if device.confidence == "measured" or any(p.mode == device.mode for p in device.profiles):
        return []
    whose, prefill = ("on the NPU of an RK3588", NPU_PREFILL) if device.chip == "npu" else ("on other devices", PREFILL)
    return [
        f"times are at datasheet peaks, which devices rarely reach: {whose} {_took('prefill', prefill)}, "
        f"{_took('on other devices decode' if device.chip == 'npu' else 'decode', DECODE)}, so that picks overshoot limits on "
        f"time; {CURE}"
    ]


def measured_elsewhere() -> str:
    """Return how much longer than at datasheet peaks measured devices take, without NPUs."""
    return f"measured, {_took('prefill', PREFILL)}, on an NPU {NPU_PREFILL[0]:g}, {_took('decode', DECODE)}"


def _typical(device: Device, calibration: Calibration) -> str:
    """What times of a class are worth."""
    engine = f" with {calibration.engine}" if calibration.engine else f" with any engine{_nearer(device)}"
    kind, comma, why = CHIPS[device.chip].partition(",")
    chip = "; state its chip (gpu, soc, npu, …) for a narrower range" if device.chip == "any" else ""
    return f"this device was not measured{' in this format or with this engine' * bool(device.profiles)}: times are typical of {kind}{engine}{comma}{why}{chip}; {CURE}"


def _nearer(device: Device) -> str:
    """Engines of which stating one brought times of devices left out nearer."""
    start = f"{device.chip} {chip_kind(device)} "
    names = [name.removeprefix(start) for name in shipped().helpful if name.startswith(start)]
    return f" (--set engine={' or '.join(names)} brings them nearer)" if names else ""


def _took(phase: str, ratio: tuple[float, float, float]) -> str:
    """`prefill took 2.1 times what is predicted (1.1 to 5.6)`."""
    middle, low, high = ratio
    return f"{phase} took {middle:g} times what is predicted ({low:g} to {high:g})"


#: What says how far two modes lie apart: the shares of the roof that a phase is bound by, or the power at rest.
GAPS = {"prefill": "compute_efficiency", "decode": "bandwidth_efficiency", "energy": "base_power"}
APART = 0.25  # of the log ratio of two modes' figures, by which what lies between them is taken to be off further
T = TypeVar("T", Calibration, Energy)


def in_unmeasured_mode(device: Device, mode: str) -> dict[str, list[Any]]:
    """Return `profiles` and `energy` of a mode without its own, interpolated in the logarithm of the peak.

    Beyond the measured modes it is that of the nearest one. Measured / predicted of both modes' rows are made wider by `APART`
    of what the two differ by: the Orin Nano's times at 25 W and 15 W are 8 and 37 % too long, of 13 and 40 % given.
    """
    profiles, energies = ([each for each in those if each.mode == mode] for those in (device.profiles, device.energy))
    return {
        "profiles": [] if profiles else _placed(device, mode, device.profiles),
        "energy": [] if energies else _placed(device, mode, device.energy),
    }


def _placed(device: Device, mode: str, measured: Sequence[T]) -> list[T]:
    """One of every kind that was measured in other modes."""
    kinds: dict[tuple[Any, ...], list[T]] = {}
    for each in measured:
        kinds.setdefault(
            tuple(getattr(each, key, None) for key in ("engine", "precision", "format", "batch")), []
        ).append(each)
    return [_between(device, mode, those) for those in kinds.values()]


def _between(device: Device, mode: str, measured: Sequence[T]) -> T:
    """What lies between the two measured modes whose peaks are next to the mode's own."""
    peaks = [_peak(device, each.mode) for each in measured]
    own, order = _peak(device, mode), sorted(range(len(measured)), key=peaks.__getitem__)
    below, above = ([i for i in order if peaks[i] <= own], [i for i in order if peaks[i] >= own])
    low, high = (below or order)[-1 if below else 0], (above or order)[0 if above else -1]
    share = 0.0 if peaks[low] == peaks[high] else math.log(own / peaks[low]) / math.log(peaks[high] / peaks[low])
    one, other = measured[low], measured[high]
    names = dict.fromkeys(f"@{each.mode}" if each.mode else "the default mode" for each in (one, other))
    return (one if share <= 0.5 else other).model_copy(
        update={
            "mode": mode,
            "between": " and ".join(names),
            "held_out": _wider(one, other),
            **dict(_interpolated(one, other, share)),
        }
    )


def _peak(device: Device, mode: str) -> float:
    """The FP16 peak in a mode, of a device of integers the INT8 one; 1 of one that states neither."""
    peaks = (device.in_mode(mode) if mode in device.modes else device).peaks
    return peaks.get("fp16", peaks.get("int8", 1.0))


def _interpolated(low: T, high: T, share: float) -> Iterator[tuple[str, float]]:
    """Coefficients that both have, in their logarithm."""
    for name, value in low:
        other = getattr(high, name)
        if isinstance(value, float) and isinstance(other, float) and min(value, other) > 0.0:
            yield name, value ** (1.0 - share) * other**share


def _wider(low: T, high: T) -> Any:
    """Measured / predicted of both modes' rows, by as much longer and shorter: by phase, or of energy."""
    both = (low,) if low is high else (low, high)
    if isinstance(low, Energy):
        return _spread([ratio for each in both for ratio in each.held_out], _gap(low, high, "energy"))
    return {
        phase: _spread([r for each in both for r in each.held_out.get(phase, [])], _gap(low, high, phase))
        for phase in low.held_out
    }


def _gap(low: T, high: T, of: str) -> float:
    """Factor of which what lies between may be off further."""
    first, second = (getattr(each, GAPS[of]) for each in (low, high))
    return math.exp(APART * abs(math.log(second / first))) if min(first, second) > 0.0 else 1.0


def _spread(ratios: Sequence[float], factor: float) -> list[float]:
    return sorted(ratio * by for ratio in ratios for by in (factor, 1.0 / factor))
