"""Profiles of a power mode in which nothing was measured, between those of modes in which something was."""

import math
from collections.abc import Iterator, Sequence

from objectives.device import Calibration, Device, Phase

SHARES: dict[Phase, str] = {"prefill": "compute_efficiency", "decode": "bandwidth_efficiency"}
APART = 0.25  # of the log ratio of two modes' shares, by which times between them are taken to be off further
_Pair = tuple[float, Calibration]


def between_modes(device: Device, mode: str) -> list[Calibration]:
    """Profiles of a mode that has none: an engine's, format's and batch's, each interpolated in the logarithm of the peak.

    Beyond the measured modes it is that of the nearest one. Measured / predicted of both modes' rows are made wider by `APART`
    of what the shares of the two differ by: the Orin Nano's at 25 W and 15 W are 7 and 27 % off, of 12 and 34 % given.
    """
    if any(p.mode == mode for p in device.profiles):
        return []
    found: dict[tuple[str, str, str, int], list[_Pair]] = {}
    for p in device.profiles:
        key = (p.engine, p.precision, p.format, p.batch)
        found.setdefault(key, []).append((_peak(device, p.mode), p))
    return [_between(_peak(device, mode), mode, sorted(those, key=_first)) for those in found.values()]


def _peak(device: Device, mode: str) -> float:
    own = device.modes[mode].fp16 if mode in device.modes else None
    return own or device.fp16


def _first(pair: _Pair) -> float:
    return pair[0]


def _between(peak: float, mode: str, known: Sequence[_Pair]) -> Calibration:
    """The profile at a peak."""
    low = max((pair for pair in known if pair[0] <= peak), key=_first, default=known[0])
    high = min((pair for pair in known if pair[0] >= peak), key=_first, default=known[-1])
    share = 0.0 if low[0] == high[0] else math.log(peak / low[0]) / math.log(high[0] / low[0])
    names = " and ".join(dict.fromkeys(f"@{p.mode}" if p.mode else "the default mode" for _, p in (low, high)))
    nearest = low[1] if share <= 0.5 else high[1]
    return nearest.model_copy(
        update={
            "mode": mode,
            "between": names,
            "held_out": {phase: sorted(_wider(low[1], high[1], phase)) for phase in nearest.held_out},
            **dict(_interpolated(low[1], high[1], share)),
        }
    )


def _interpolated(low: Calibration, high: Calibration, share: float) -> Iterator[tuple[str, float]]:
    """Coefficients that both have, in their logarithm."""
    for name, value in low:
        other = getattr(high, name)
        if isinstance(value, float) and isinstance(other, float) and min(value, other) > 0.0:
            yield name, value ** (1.0 - share) * other**share


def _wider(low: Calibration, high: Calibration, phase: Phase) -> Iterator[float]:
    """Measured / predicted of both modes' rows, by as much longer and shorter."""
    apart = math.exp(APART * abs(math.log(getattr(high, SHARES[phase]) / getattr(low, SHARES[phase]))))
    for profile in (low, high) if low is not high else (low,):
        for ratio in profile.held_out.get(phase, []):
            yield from (ratio / apart, ratio * apart)
