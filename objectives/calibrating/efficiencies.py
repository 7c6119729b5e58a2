"""Robust fit of compute efficiency per peak, bandwidth efficiency and overhead per operator.

Residuals are log(predicted / measured) under a soft-L1 loss, so that a row far off pulls linearly;
priors keep what the data does not determine at usual values, bounds keep it possible.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from objectives.calibrating.terms import Terms
from objectives.device import Calibration, Device, Peak
from search_spaces.arrays import FloatArray

PRIOR = {"compute": 0.5, "second": 0.4, "bandwidth": 0.8, "overhead_us": 5.0, "request_ms": 20.0}
SPREAD = {"compute": 0.5, "second": 0.5, "bandwidth": 0.25, "overhead_us": 1.0, "request_ms": 2.0}
PRIOR_WEIGHT = 0.02  # a prior one spread away weighs like a row 2 % off
TAIL = 0.05  # log error from which a row pulls linearly


@dataclass(frozen=True)
class Freedom:
    """Which parameters the data may move; the others stay at their priors."""

    second: bool
    overhead: bool
    request: bool
    largest: float

    @property
    def names(self) -> tuple[str, ...]:
        """Free parameters in the order of the vector."""
        extra = {"second": self.second, "overhead_us": self.overhead, "request_ms": self.request}
        return ("compute", "bandwidth", *(name for name, free in extra.items() if free))


def freedom(terms: Terms, device: Device, models: int, *, request: bool = False) -> Freedom:
    """τ and a request's constant need two models and both phases; an efficiency above 1 an estimated peak."""
    both = bool(terms.requests.any()) and not bool(terms.requests.all())
    largest = 2.0 if device.confidence == "estimate" else 1.0
    return Freedom(bool(terms.second_peak.any()), models > 1 and both, request and models > 1 and both, largest)


def fit(terms: Terms, free: Freedom) -> Calibration:
    """The calibration of a group of rows that share device, mode, engine and format."""
    names = free.names
    prior = np.log([PRIOR[name] for name in names])
    spread = np.array([SPREAD[name] for name in names])
    top = {
        "compute": free.largest,
        "second": free.largest,
        "bandwidth": free.largest,
        "overhead_us": 1e4,
        "request_ms": 1e5,
    }
    lower = np.log([0.01 if top[name] <= 2 else 1e-3 for name in names])
    upper = np.log([top[name] for name in names])
    target = np.log(terms.ms)

    def residuals(vector: FloatArray) -> FloatArray:
        error = np.log(terms.predict(calibration(names, vector, terms.second))) - target
        robust = np.sign(error) * TAIL * np.sqrt(2.0 * (np.sqrt(1.0 + (error / TAIL) ** 2) - 1.0))
        return np.concatenate([robust, PRIOR_WEIGHT * (vector - prior) / spread])

    solution = least_squares(residuals, prior, bounds=(lower, upper), x_scale=spread)
    return calibration(names, solution.x, terms.second)


def calibration(names: tuple[str, ...], vector: FloatArray, second: Peak) -> Calibration:
    """Parameters as a profile; a request's constant is 0 unless free, `second` the low-precision peak."""
    value = {**PRIOR, "request_ms": 0.0, **dict(zip(names, np.exp(vector).tolist(), strict=True))}
    low = {f"compute_efficiency_{second}": value["second"]} if "second" in names else {}
    return Calibration.model_construct(
        compute_efficiency=value["compute"],
        **low,
        bandwidth_efficiency=value["bandwidth"],
        overhead=value["overhead_us"] * 1e-3,
        request_overhead=value["request_ms"],
    )
