"""Budgets divided by what the device gives (F̄_p, M̄_d, M), and which of them bind at a width: corrected thresholds, the paper's rule."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from plas_paper.costs import COSTS, LATENCIES, Setting
from plas_paper.program import Box, Convex, Program, solve

LATENCY, MEMORY, DUAL, NEITHER = "latency", "memory", "latency and memory", "neither"
MUCH = 1.0 / 3.0  # what we read into the paper's "much less" and "much greater"
FELT = 1e-9  # nats that a budget must cost to bind


@dataclass(frozen=True)
class Regime:
    """One latency budget against the memory budget, both divided by the other's share at the single optima.

    ratio is η, or what it is for the metric at hand; `low` is the ratio of the latency limit to the
    memory of the latency-only optimum, `high` that of the latency of the memory-only optimum to the memory
    limit: latency alone binds for ratio ≤ low, memory alone for ratio ≥ high, both between (ERRATA 6). A
    budget that alone would not raise the loss (`latency_alone_binds`, `memory_alone_binds`) has no such threshold.
    """

    metric: str
    ratio: float
    low: float
    high: float
    latency_alone_binds: bool = True
    memory_alone_binds: bool = True

    @property
    def binds(self) -> str:
        """The corrected diagnosis; neither where the best design of the bounds meets both budgets."""
        if not self.latency_alone_binds and not self.memory_alone_binds:
            return NEITHER
        spare_memory, spare_latency = self.ratio <= self.low, self.ratio >= self.high
        if spare_memory == spare_latency:  # both: the same optimum just uses up either budget
            return DUAL
        return LATENCY if spare_memory else MEMORY

    @property
    def paper_binds(self) -> str:
        """The paper's rule: much less than 1 is memory, much greater is latency (inverted, ERRATA 6)."""
        return paper_rule(self.ratio)


def paper_rule(ratio: float) -> str:
    """The paper's diagnosis of η, or of η_p·b_w/2."""
    return MEMORY if ratio < MUCH else LATENCY if ratio > 1.0 / MUCH else DUAL


def plain_unit(metric: str, setting: Setting) -> float:
    """The factor from limit / GB to the dimensionless η: β/S_out for decode, π b_w / (2 B S_in) for the prefill.

    A total has no unit of its own; its limit counts as if spent on decoding.
    """
    s = setting.scenario
    if metric == "prefill_ms":
        return 1e-3 * setting.peak / (s.batch * s.input_tokens) * s.precision.weight_bytes / 2.0 / 1e9
    steps = 1 if metric == "tpot_ms" else s.output_tokens
    return 1e-3 * s.device.bandwidth / steps / 1e9


def regime(loss: Convex, box: Box, setting: Setting, metric: str, limit: float, memory_gb: float) -> Regime:
    """The regime of one latency budget (ms) and a memory budget (GB) inside a box."""
    latency, memory, unit = COSTS[metric](setting), COSTS["memory_gb"](setting), plain_unit(metric, setting)
    best = solve(Program(loss, {}, box)).value
    fast = solve(Program(loss, {metric: latency.times(1.0 / limit)}, box))
    small = solve(Program(loss, {"memory_gb": memory.times(1.0 / memory_gb)}, box))
    low = unit * limit / float(memory(box.cheaper(fast.logs, ~loss.seen)))
    high = unit * float(latency(box.cheaper(small.logs, ~loss.seen))) / memory_gb
    binds = (fast.value > best + FELT, small.value > best + FELT)
    return Regime(metric, unit * limit / memory_gb, low, high, *binds)


def thresholds(loss: Convex, box: Box, setting: Setting, metric: str, memory_gb: float) -> tuple[float, float]:
    """η_lo and η_hi at a memory budget: where the latency-only optimum just fills it, and what the memory-only one takes."""
    unit = plain_unit(metric, setting)

    def spare(ratio: float) -> float:
        own = regime(loss, box, setting, metric, ratio * memory_gb / unit, memory_gb)
        return own.low - ratio

    high = regime(loss, box, setting, metric, memory_gb / unit, memory_gb).high
    return float(brentq(spare, 1e-3 * high, high, xtol=1e-9)), high


def regimes(loss: Convex, box: Box, setting: Setting, limits: dict[str, float]) -> tuple[Regime, ...]:
    """One regime per latency budget; none without a memory budget."""
    plain = replace(setting, experts=None)
    if "memory_gb" not in limits:
        return ()
    return tuple(
        regime(loss, box, plain, metric, limits[metric], limits["memory_gb"])
        for metric in LATENCIES
        if metric in limits
    )


@dataclass(frozen=True)
class NormalisedBudgets:
    """F̄_p (FLOP per token), M̄_d and M (bytes), None where no such budget is given.

    Source: paper [tab:ext_notation]; η_p has the unit FLOP per byte, η_p·b_w/2 has none (ERRATA 7).
    """

    prefill_flops: float | None
    decode_bytes: float | None
    memory_bytes: float | None
    weight_bytes: float

    @property
    def eta(self) -> float | None:
        """η = M̄_d / M, dimensionless."""
        return self._ratio(self.decode_bytes)

    @property
    def eta_p(self) -> float | None:
        """η_p = F̄_p / M, FLOP per byte."""
        return self._ratio(self.prefill_flops)

    @property
    def eta_p_plain(self) -> float | None:
        """η_p b_w / 2, dimensionless: what η is for the prefill."""
        return None if self.eta_p is None else self.eta_p * self.weight_bytes / 2.0

    def _ratio(self, budget: float | None) -> float | None:
        return None if budget is None or self.memory_bytes is None else budget / self.memory_bytes


def normalised(limits: Mapping[str, float], setting: Setting) -> NormalisedBudgets:
    """Budgets in ms and GB as F̄_p = T π / (B S_in), M̄_d = T β / S_out, M."""
    s = setting.scenario
    prefill, memory = limits.get("prefill_ms"), limits.get("memory_gb")
    steps = [limits["decode_ms"] / s.output_tokens] if "decode_ms" in limits else []
    steps += [limits["tpot_ms"]] if "tpot_ms" in limits else []
    return NormalisedBudgets(
        None if prefill is None else prefill * 1e-3 * setting.peak / (s.batch * s.input_tokens),
        min(steps) * 1e-3 * s.device.bandwidth if steps else None,
        None if memory is None else memory * 1e9,
        s.precision.weight_bytes,
    )
