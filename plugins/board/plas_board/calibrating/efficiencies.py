"""Robust fit of a calibration's coefficients to measured phases, and which of them the rows determine.

Residuals are log(predicted / measured) under a soft-L1 loss, so that a row far off pulls linearly;
priors keep what the data does not determine at usual values, bounds keep it possible.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from objectives.device import Calibration, Device, Peak, Phase
from objectives.typical.efficiencies import Cell
from plas_board.calibrating.terms import Beside, Terms, predict_with_slopes
from search_spaces.arrays import BoolArray, FloatArray

PRIOR_WEIGHT = 0.02  # a prior one spread away weighs like a row 2 % off
TAIL = 0.05  # log error from which a row pulls linearly
LONGER = 4.0  # ratio of the longest context to the shortest from which attention is told apart
NEAR = 0.1  # of the seconds of bytes, from which arithmetic may bind at lower efficiencies
FITS = 0.5  # share of hits from which a model counts as one that the cache holds
BINDING = 0.05  # `decode_attention_compute` at which arithmetic binds in decoding, as it does not at the prior


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


#: Priors are what groups of the public table that can tell them share (`benchmarks/held_out.py`): 15 µs a launch of
#: prefills of 60 tokens; experts at .83 to .96 of the bandwidth of dense operators, and an overlap with which uniform
#: routing at batch 8 is right. Compute of experts differs between groups on both sides of dense operators'.
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
    "decode_attention_compute": Parameter(0.5, 1.0, 0.005, 2.0),
    "scan_compute": Parameter(0.04, 1.0, 1e-3, 2.0),
    "cache_efficiency": Parameter(0.8, 0.5, 0.05, 2.0),
    "expert_compute": Parameter(1.0, 0.5, 0.05, 2.0, unused=1.0),
    "expert_bandwidth": Parameter(0.9, 0.1, 0.2, 1.0),
    "routing_overlap": Parameter(0.45, 0.3, 0.01, 0.95),
    "beside_compute": Parameter(1.0, 1.0, 0.05, 20.0, unused=1.0),
    "beside_bandwidth": Parameter(1.0, 0.3, 0.2, 5.0, unused=1.0),
}
#: Coefficients that a group keeps only where they bring its held-out error down.
OPTIONAL = (
    *(
        "prefill_bandwidth",
        "prefill_overhead_us",
        "attention_compute",
        "attention_bandwidth",
        "decode_attention_compute",
    ),
    *("cache_efficiency", "expert_compute", "expert_bandwidth", "routing_overlap"),
)
BELOW = ("estimate", "measured")  # rates that may lie below the peak: guessed, or what one program sustained
_ABSENT = (
    "prefill_bandwidth",
    "prefill_overhead_us",
    "decode_attention_compute",
    "cache_efficiency",
)  # of a profile that does not keep them
_BASE = ("compute", "bandwidth")


Priors = Mapping[str, Parameter]


def class_priors(cell: Cell, shape: Calibration, measured: Collection[Phase]) -> Priors:
    """Priors of a device of a class: the efficiency of a phase without rows is what is typical of it, as far apart as its devices are.

    Of a phase with rows it stays the general one: with the class's instead, models held out are further off in six groups of
    studies/accuracy/results.md and nearer in none but two.
    """
    found = PARAMETERS | {"scan_compute": replace(PARAMETERS["scan_compute"], prior=shape.scan_compute)}
    for name, phase, usual in (
        ("compute", "prefill", shape.compute_efficiency),
        ("second", "prefill", shape.compute_efficiency),
        ("bandwidth", "decode", shape.bandwidth_efficiency),
    ):
        level = cell.prefill if phase == "prefill" else cell.decode
        if phase not in measured:
            found[name] = replace(found[name], prior=min(usual / level.ratio, found[name].most), spread=level.sd)
    return found


@dataclass(frozen=True)
class Freedom:
    """Which parameters the data may move; the others stay at their priors, or are none. `largest`: of an efficiency."""

    names: tuple[str, ...]
    largest: float
    priors: Priors = field(default_factory=lambda: PARAMETERS)

    @property
    def optional(self) -> tuple[str, ...]:
        """Those of them that must earn their place."""
        return tuple(name for name in self.names if name in OPTIONAL)

    def keeping(self, kept: Iterable[str]) -> "Freedom":
        """The same with some of the optional parameters only."""
        left = tuple(kept)
        return replace(self, names=tuple(name for name in self.names if name not in OPTIONAL or name in left))


def freedom(
    terms: Terms, device: Device, models: int, priors: Priors = PARAMETERS, *, request: bool = False
) -> Freedom:
    """The constants that rows determine: τ and a request's constant of two models and both phases.

    An efficiency may exceed 1 of a rate that lies `BELOW` the peak. Prefill apart from decode needs both phases, attention
    contexts that differ by `LONGER`, its arithmetic in decoding rows where that is `NEAR` its bytes, experts rows with
    experts, a cache models that it holds and others, efficiencies at another batch rows of that.
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
        "decode_attention_compute": _long(terms.lengths[~reading]) and _near(terms, ~reading),
        "cache_efficiency": bool((terms.hits > FITS).any() and (terms.hits[~reading] < FITS).any()),
        "scan_compute": bool((terms.scan.any(axis=1) & reading).any()),
        "expert_compute": bool((routed & reading).any()),
        "expert_bandwidth": bool((routed & ~reading).any()),
        "routing_overlap": bool((routed & (terms.routing[:, 2] > 1) & ~reading).any()),
        "beside_compute": bool((terms.beside & reading).any()),
        "beside_bandwidth": bool((terms.beside & ~reading).any()),
    }
    names = (*_BASE, *(name for name, can in told.items() if can))
    return Freedom(names, 2.0 if device.confidence in BELOW else 1.0, priors)


def _long(lengths: FloatArray) -> bool:
    """Whether contexts differ enough to determine what grows with them."""
    return bool(len(lengths) and lengths.max() >= LONGER * max(lengths.min(), 1))


def _near(terms: Terms, rows: BoolArray) -> bool:
    """Whether arithmetic of the attention core comes near to its bytes at the datasheet's rates, as it does on processors."""
    core = terms.attention & rows[:, None]
    return bool((terms.compute[core] >= NEAR * terms.memory[core]).any())


def fit(terms: Terms, free: Freedom) -> Calibration:
    """The calibration of a group of rows that share device, mode, engine and format."""
    chosen = [free.priors[name] for name in free.names]
    prior, spread = np.log([p.prior for p in chosen]), np.array([p.spread for p in chosen])
    most = [free.largest if name in ("second", *_BASE) else p.most for name, p in zip(free.names, chosen, strict=True)]
    bounds = np.log([p.least for p in chosen]), np.log(most)

    def residuals(vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        c, beside = calibration(free, vector, terms.second)
        ms, slopes = predict_with_slopes(terms, c, beside)
        error = np.log(ms / terms.ms)
        robust, slope = _robust(error)
        rows = np.stack([slopes[name] for name in free.names], axis=1) * (slope / ms)[:, None]
        pulled = PRIOR_WEIGHT * (vector - prior) / spread
        return np.concatenate([robust, pulled]), np.concatenate([rows, np.diag(PRIOR_WEIGHT / spread)])

    first = minimise(residuals, prior, bounds)
    if "decode_attention_compute" not in free.names or _binds(terms, *calibration(free, first, terms.second)):
        return calibration(free, first, terms.second)[0]
    binding = np.where(np.array(free.names) == "decode_attention_compute", np.log(BINDING), prior)
    found = (first, minimise(residuals, binding, bounds))
    best = min(found, key=lambda vector: float(np.sum(residuals(vector)[0] ** 2)))
    return calibration(free, best, terms.second)[0]


def _binds(terms: Terms, c: Calibration, beside: Beside) -> bool:
    """Whether the attention core of every decode step takes arithmetic.

    The larger side of a roof alone has slopes, so that no step leads to the other: from the priors' side, bytes, a fit
    may have to begin again on this one.
    """
    steps = terms.requests == 0
    return bool(predict_with_slopes(terms, c, beside)[1]["decode_attention_compute"][steps].all())


def _robust(error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residuals whose squares are twice the penalty, and their slopes."""
    robust = np.sign(error) * np.sqrt(2.0 * penalty(error))
    steep = error / np.sqrt(1.0 + (error / TAIL) ** 2)
    slope = np.where(np.abs(error) < 1e-9, 1.0, steep / np.where(robust == 0.0, 1.0, robust))
    return robust, slope


def penalty(error: FloatArray) -> FloatArray:
    """Soft-L1 loss of log errors: half their square up to `TAIL`, linear far beyond."""
    found: FloatArray = TAIL**2 * (np.sqrt(1.0 + (error / TAIL) ** 2) - 1.0)
    return found


UNFITTED = Calibration.model_construct()  # to copy it takes an eighth of the time of making one


def calibration(free: Freedom, vector: FloatArray, second: Peak) -> tuple[Calibration, Beside]:
    """Parameters as a profile, and what differs beside it; those that are left out at what changes nothing."""
    value: dict[str, Any] = {name: p.prior if p.unused is None else p.unused for name, p in free.priors.items()}
    value |= dict(zip(free.names, np.exp(vector).tolist(), strict=True))
    value |= {name: None for name in _ABSENT if name not in free.names}
    alike = ("scan_compute", *(name for name in OPTIONAL if not name.startswith("prefill")))
    fields: dict[str, Any] = {name: value[name] for name in alike}
    if "second" in free.names:
        fields[f"compute_efficiency_{second}"] = value["second"]
    launch = value["prefill_overhead_us"]
    fields |= {
        "compute_efficiency": value["compute"],
        "bandwidth_efficiency": value["bandwidth"],
        "overhead": value["overhead_us"] * 1e-3,
        "prefill_bandwidth_efficiency": value["prefill_bandwidth"],
        "prefill_overhead": None if launch is None else launch * 1e-3,
        "request_overhead": value["request_ms"],
    }
    return UNFITTED.model_copy(update=fields), Beside(value["beside_compute"], value["beside_bandwidth"])


STEPS = 40
ENOUGH = 1e-6  # relative gain of a step below which the next cannot matter
_LEAST, _MOST = 1e-9, 1e9  # of the damping

Residuals = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def minimise(residuals: Residuals, start: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The x within bounds of least |r(x)|², from a start within: damped steps, projected on the bounds.

    A parameter at a bound that the slopes push outwards stays there for the step.

    Source: Marquardt 1963; Kanzow, Yamashita and Fukushima 2004 for the projection.

    Args:
        residuals: r, (n,), and its slopes, (n, parameters).
        start: where to begin, (parameters,).
        bounds: least and largest, each (parameters,).
    """
    x, (lower, upper) = np.clip(start, *bounds), bounds
    r, slopes = residuals(x)
    cost, damping = float(r @ r), 1e-3
    for _ in range(STEPS):
        downhill = -slopes.T @ r
        free = ~(((x <= lower) & (downhill < 0)) | ((x >= upper) & (downhill > 0)))
        if not free.any():
            break
        gained = False
        while damping <= _MOST and not gained:
            curved = slopes[:, free].T @ slopes[:, free]
            curved[np.diag_indices_from(curved)] *= 1.0 + damping
            step = np.zeros_like(x)
            step[free] = np.linalg.solve(curved, downhill[free])
            tried = np.clip(x + step, lower, upper)
            r_there, slopes_there = residuals(tried)
            there = float(r_there @ r_there)
            gained = there < cost
            damping = max(damping / 5.0, _LEAST) if gained else damping * 5.0
        if not gained:
            break
        small = cost - there <= ENOUGH * cost
        x, r, slopes, cost = tried, r_there, slopes_there, there
        if small:
            break
    return x
