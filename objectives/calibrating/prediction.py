"""Times of measured phases under a calibration, and how they change with each of its coefficients."""

from dataclasses import dataclass

import numpy as np

from objectives.calibrating.terms import Terms
from objectives.device import Calibration
from search_spaces.arrays import BoolArray, FloatArray

Slopes = dict[str, FloatArray]


@dataclass(frozen=True)
class Beside:
    """By what the efficiencies of rows at another batch differ from the calibration's."""

    compute: float = 1.0
    bandwidth: float = 1.0


def predict(t: Terms, c: Calibration) -> FloatArray:
    """Milliseconds of rows under a calibration, (n,).

    The attention core is taken on the side that is larger over the whole phase.
    """
    return predict_with_slopes(t, c)[0]


def predict_with_slopes(t: Terms, c: Calibration, beside: Beside | None = None) -> tuple[FloatArray, Slopes]:
    """Milliseconds, (n,), and by coefficient the milliseconds that they change by in its logarithm, each (n,)."""
    reading = t.requests > 0
    other = beside or Beside()
    compute, second, speed = _efficiencies(t, c, reading, other)
    launch = t.launches * np.where(reading, c.overhead_s("prefill"), c.overhead_s("decode"))
    epilogue = t.epilogue / compute
    streamed = c.bandwidth_efficiency * np.where(t.beside, other.bandwidth, 1.0)
    core, found = _bound(t, c, np.where(t.second_peak, second[:, None], compute[:, None]), speed, streamed)
    if t.cache_speed and c.cache_efficiency is not None:
        core, found = _with_cache(t, c, core, found, compute, second, other)
    found["compute"] = found["compute"] - epilogue
    own_launches = c.prefill_overhead is not None
    found["overhead_us"] = np.where(reading & own_launches, 0.0, launch)
    found["prefill_overhead_us"] = np.where(reading & own_launches, launch, 0.0)
    if c.prefill_bandwidth_efficiency is not None:
        apart = found["bandwidth"] - found["expert_bandwidth"]
        found["prefill_bandwidth"] = np.where(reading, apart, 0.0)
        found["bandwidth"] = found["bandwidth"] - found["prefill_bandwidth"]
    found["beside_compute"] = np.where(t.beside, found["compute"] + found["second"], 0.0)
    of_bytes = sum(found[name] for name in ("bandwidth", "prefill_bandwidth", "cache_efficiency") if name in found)
    found["beside_bandwidth"] = np.where(t.beside, of_bytes, 0.0)
    request = t.requests * c.request_overhead
    slopes = {name: 1e3 * slope for name, slope in found.items()} | {"request_ms": request}
    return 1e3 * (core + epilogue + launch) + request, slopes


def _efficiencies(
    t: Terms, c: Calibration, reading: BoolArray, other: Beside
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of the FP16 peak, of the second peak and of the bandwidth, each (n,)."""
    factor = np.where(t.beside, other.compute, 1.0)
    speed = np.where(reading, c.bandwidth("prefill"), c.bandwidth("decode")) * np.where(t.beside, other.bandwidth, 1.0)
    return c.compute_efficiency * factor, c.efficiency(t.second) * factor, speed


def _with_cache(
    t: Terms, c: Calibration, core: FloatArray, found: Slopes, compute: FloatArray, second: FloatArray, other: Beside
) -> tuple[FloatArray, Slopes]:
    """(1 − h) times what memory takes + h times what the cache takes."""
    assert c.cache_efficiency is not None
    faster = max(c.cache_efficiency * t.cache_speed, c.bandwidth_efficiency)
    speed = faster * np.where(t.beside, other.bandwidth, 1.0)
    share = np.where(t.second_peak, second[:, None], compute[:, None])
    within, inner = _bound(t, c, share, speed, speed)
    blended = {name: (1.0 - t.hits) * found[name] + t.hits * inner[name] for name in found}
    blended["bandwidth"] = (1.0 - t.hits) * found["bandwidth"]
    blended["cache_efficiency"] = t.hits * inner["bandwidth"]
    return (1.0 - t.hits) * core + t.hits * within, blended


def _bound(
    t: Terms, c: Calibration, share: FloatArray, speed: FloatArray, streamed: FloatArray
) -> tuple[FloatArray, Slopes]:
    """Seconds of the larger sides, (n,), and the slopes of the efficiencies; `streamed` is the share that experts get."""
    reading, own = (t.requests > 0)[:, None], c.decode_attention_compute is not None
    in_prefill, in_decode, experts = (
        c.factors("attention", "prefill"),
        c.factors("attention", "decode"),
        c.factors("experts", "decode"),
    )
    of_flops, of_bytes = (
        np.where(t.attention, np.where(reading, p, d), np.where(t.experts, e, 1.0))
        for p, d, e in zip(in_prefill, in_decode, experts, strict=True)
    )
    fewer, slope = _fewer_experts(t, c.routing_overlap)
    rate = of_bytes * np.where(t.experts, streamed[:, None], speed[:, None])
    compute, memory = t.compute / (share * of_flops), (t.memory + t.expert_memory * fewer[:, None]) / rate
    larger = compute >= memory
    flops, traffic = np.where(larger, compute, 0.0), np.where(larger, 0.0, memory)
    overlap = np.where(larger, 0.0, t.expert_memory / rate).sum(axis=1) * slope
    slopes = {
        "compute": -np.where(t.second_peak, 0.0, flops).sum(axis=1),
        "second": -np.where(t.second_peak, flops, 0.0).sum(axis=1),
        "bandwidth": -traffic.sum(axis=1),
        "attention_compute": -np.where(t.attention & (reading | (not own)), flops, 0.0).sum(axis=1),
        "decode_attention_compute": -np.where(t.attention & ~reading & own, flops, 0.0).sum(axis=1),
        "attention_bandwidth": -np.where(t.attention, traffic, 0.0).sum(axis=1),
        "expert_compute": -np.where(t.experts, flops, 0.0).sum(axis=1),
        "expert_bandwidth": -np.where(t.experts, traffic, 0.0).sum(axis=1),
        "routing_overlap": overlap,
    }
    return (flops + traffic).sum(axis=1), slopes


def _fewer_experts(t: Terms, overlap: float) -> tuple[FloatArray, FloatArray]:
    """Distinct experts under an overlap of routing less those without, and the slope in its logarithm, each (n,)."""
    experts, chosen, tokens = t.routing.T
    missed = 1.0 - chosen / experts
    with np.errstate(divide="ignore", invalid="ignore"):
        left = missed ** (1.0 + (1.0 - overlap) * (tokens - 1.0))
        slope = np.where(missed > 0, experts * left * np.log(missed) * (tokens - 1.0) * overlap, 0.0)
    return experts * (missed**tokens - left), slope
