"""Robust fit of a calibration's coefficients to measured phases, and which of them the data can tell.

Residuals are log(predicted / measured) under a soft-L1 loss, so that a row far off pulls linearly;
priors keep what the data does not determine at usual values, bounds keep it possible.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from objectives.calibrating.terms import Terms
from objectives.device import Calibration, Device, Peak
from search_spaces.arrays import FloatArray

PRIOR_WEIGHT = 0.02  # a prior one spread away weighs like a row 2 % off
TAIL = 0.05  # log error from which a row pulls linearly
LONGER = 4.0  # ratio of the longest context to the shortest from which attention is told apart


@dataclass(frozen=True)
class Parameter:
    """A coefficient: what it is without data, how far in log it may lie from that, and its bounds.

    unused: its value where it is not a parameter at all, None where the prior then holds.
    """

    prior: float
    spread: float
    least: float
    most: float
    unused: float | None = None


#: Priors of prefill and experts are about the medians over the groups of the public table that can tell them
#: (`benchmarks/held_out.py`): 15 µs a launch of 60-token prefills, bandwidth in the prefill 0.7 to 1.8 of the datasheet,
#: experts at .83 to .96 of the bandwidth of dense operators, an overlap that makes uniform routing at batch 8 right.
PARAMETERS = {
    "compute": Parameter(0.5, 0.5, 0.01, 1.0),
    "second": Parameter(0.4, 0.5, 0.01, 1.0),
    "bandwidth": Parameter(0.8, 0.25, 0.01, 1.0),
    "overhead_us": Parameter(5.0, 1.0, 1e-3, 1e4),
    "request_ms": Parameter(20.0, 2.0, 1e-3, 1e5, unused=0.0),
    "prefill_bandwidth": Parameter(0.8, 0.5, 0.01, 4.0),
    "prefill_overhead_us": Parameter(15.0, 1.2, 1e-3, 1e4),
    "attention_compute": Parameter(1.0, 1.0, 0.02, 2.0, unused=1.0),
    "attention_bandwidth": Parameter(1.0, 1.0, 0.02, 2.0, unused=1.0),
    "expert_compute": Parameter(0.8, 0.3, 0.05, 2.0),
    "expert_bandwidth": Parameter(0.9, 0.1, 0.2, 1.0),
    "routing_overlap": Parameter(0.45, 0.3, 0.01, 0.95),
}
#: Coefficients that a group keeps only where they bring its held-out error down.
OPTIONAL = ("prefill_bandwidth", "prefill_overhead_us", "attention_compute", "attention_bandwidth")
_BASE = ("compute", "bandwidth")


@dataclass(frozen=True)
class Freedom:
    """Which parameters the data may move, and which are left out; the others stay at their priors."""

    names: tuple[str, ...]
    without: tuple[str, ...]
    largest: float

    def but(self, names: Iterable[str]) -> "Freedom":
        """The same without some of the optional parameters."""
        gone = (*self.without, *names)
        return replace(self, names=tuple(name for name in self.names if name not in gone), without=gone)


def freedom(
    terms: Terms, device: Device, models: int, *, request: bool = False, without: Iterable[str] = ()
) -> Freedom:
    """What rows can tell: τ and a request's constant of two models and both phases; an efficiency above 1 of an estimated peak.

    Prefill apart from decode needs both phases, attention contexts that differ by `LONGER`, experts rows with experts.
    """
    reading = terms.requests > 0
    both = bool(reading.any() and not reading.all())
    routed = terms.experts.any(axis=1)
    told = {
        "second": bool(terms.second_peak.any()),
        "overhead_us": models > 1 and both,
        "request_ms": request and models > 1 and both,
        "prefill_bandwidth": both,
        "prefill_overhead_us": both,
        "attention_compute": _long(terms.lengths[reading]),
        "attention_bandwidth": _long(terms.lengths[~reading]),
        "expert_compute": bool((routed & reading).any()),
        "expert_bandwidth": bool((routed & ~reading).any()),
        "routing_overlap": bool((routed & (terms.routing[:, 2] > 1) & ~reading).any()),
    }
    names = (*_BASE, *(name for name, can in told.items() if can))
    unknown = tuple(name for name in OPTIONAL if not told[name])
    return Freedom(names, unknown, 2.0 if device.confidence == "estimate" else 1.0).but(without)


def _long(lengths: FloatArray) -> bool:
    """Whether contexts differ enough to tell what grows with them."""
    return bool(len(lengths) and lengths.max() >= LONGER * max(lengths.min(), 1))


def fit(terms: Terms, free: Freedom) -> Calibration:
    """The calibration of a group of rows that share device, mode, engine and format."""
    chosen = [PARAMETERS[name] for name in free.names]
    prior, spread = np.log([p.prior for p in chosen]), np.array([p.spread for p in chosen])
    most = [free.largest if name in ("second", *_BASE) else p.most for name, p in zip(free.names, chosen, strict=True)]
    lower, upper = np.log([p.least for p in chosen]), np.log(most)
    target = np.log(terms.ms)

    def residuals(vector: FloatArray) -> FloatArray:
        error = np.log(terms.predict(calibration(free, vector, terms.second))) - target
        robust = np.sign(error) * np.sqrt(2.0 * penalty(error))
        return np.concatenate([robust, PRIOR_WEIGHT * (vector - prior) / spread])

    solution = least_squares(residuals, prior, bounds=(lower, upper), x_scale=spread)
    return calibration(free, solution.x, terms.second)


def penalty(error: FloatArray) -> FloatArray:
    """Soft-L1 loss of log errors: half their square up to `TAIL`, linear far beyond."""
    found: FloatArray = TAIL**2 * (np.sqrt(1.0 + (error / TAIL) ** 2) - 1.0)
    return found


def calibration(free: Freedom, vector: FloatArray, second: Peak) -> Calibration:
    """Parameters as a profile; those that are left out at what changes nothing, `second` the low-precision peak."""
    value = {name: p.prior if p.unused is None else p.unused for name, p in PARAMETERS.items()}
    value |= dict(zip(free.names, np.exp(vector).tolist(), strict=True))
    found: dict[str, Any] = {} if "second" not in free.names else {f"compute_efficiency_{second}": value["second"]}
    if "prefill_bandwidth" in free.names:
        found["prefill_bandwidth_efficiency"] = value["prefill_bandwidth"]
    if "prefill_overhead_us" in free.names:
        found["prefill_overhead"] = value["prefill_overhead_us"] * 1e-3
    alike = ("attention_compute", "attention_bandwidth", "expert_compute", "expert_bandwidth", "routing_overlap")
    found |= {name: value[name] for name in alike}
    return Calibration.model_construct(
        compute_efficiency=value["compute"],
        bandwidth_efficiency=value["bandwidth"],
        overhead=value["overhead_us"] * 1e-3,
        request_overhead=value["request_ms"],
        **found,
    )
