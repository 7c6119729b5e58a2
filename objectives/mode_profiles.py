"""Profiles and energies of a power mode in which nothing was measured, between those of modes in which something was."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from objectives.device import Calibration, Device, Energy

#: What says how far two modes lie apart: the shares of the roof that a phase is bound by, or the power at rest.
GAPS = {"prefill": "compute_efficiency", "decode": "bandwidth_efficiency", "energy": "base_power"}
APART = 0.25  # of the log ratio of two modes' figures, by which what lies between them is taken to be off further
T = TypeVar("T", Calibration, Energy)


def in_unmeasured_mode(device: Device, mode: str) -> dict[str, list[Any]]:
    """Further `profiles` and `energy` of a mode that has none: of each engine, format and batch, interpolated in the logarithm of the peak.

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
    own = device.modes[mode].fp16 if mode in device.modes else None
    return own or device.fp16


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
