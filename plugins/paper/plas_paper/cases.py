"""Closed forms at a given width: D1, D2, D3, P1, P2, P3, and the same under a total-latency budget.

Every case has one price per layer, u = μ·l, from which r*, gqa* and l* follow explicitly. The
coupling ("implicit" in the paper) is the one equation that the budget is met, monotone in u, so
that bracketing always finds its root. Nothing but ρ is bounded here; the program handles bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log

import numpy as np
from scipy.optimize import brentq

from plas_paper.costs import Setting

Coefficients = Mapping[str, float]
PRICES = 1e4  # logarithms of prices that cover any device
LARGEST, LEAST_RATE = 700.0, -200.0  # logarithms: of what float64 holds, of any activation rate


@dataclass(frozen=True)
class LayerCost:
    """The cost of a layer: fixed + per_inverse_gqa / gqa + per_ratio · r, in the budget's unit."""

    fixed: float
    per_inverse_gqa: float
    per_ratio: float

    def __call__(self, ratio: float, gqa: float) -> float:
        return self.fixed + self.per_inverse_gqa / gqa + self.per_ratio * ratio

    def log(self, ratio: float, gqa: float) -> float:
        """ln of the cost at logarithms of r and gqa."""
        terms = (log(self.fixed), log(self.per_inverse_gqa) - gqa, log(self.per_ratio) + ratio)
        return float(np.logaddexp.reduce(terms))

    def plus(self, other: "LayerCost", times: float = 1.0) -> "LayerCost":
        """This and `times` the other, both per layer."""
        return LayerCost(
            self.fixed + times * other.fixed,
            self.per_inverse_gqa + times * other.per_inverse_gqa,
            self.per_ratio + times * other.per_ratio,
        )


@dataclass(frozen=True)
class ClosedForm:
    """An optimum of one case at one width: who binds, ρ*, l*, r*, gqa*."""

    case: str
    width: float
    activation_rate: float
    depth: float
    ffn_ratio: float
    gqa: float


def prefill_layer(setting: Setting, width: float) -> LayerCost:
    """ξ_F d², FLOPs of a token in a layer."""
    return LayerCost(4 * width**2, 4 * width**2, 6 * width**2)


def decode_layer(setting: Setting, width: float) -> LayerCost:
    """Γ = ξ_W^dec d² b_w + 2 B S̄ d b_kv / gqa, bytes of a step in a layer [app:D1]."""
    s = setting.scenario
    weights = width**2 * s.precision.weight_bytes
    return LayerCost(
        2 * weights, 2 * weights + 2 * s.batch * setting.context * width * s.precision.kv_bytes, 3 * weights
    )


def memory_layer(setting: Setting, width: float, rate: float) -> LayerCost:
    """ξ_W^all d² b_w, bytes stored of a layer [app:D2]."""
    weights = width**2 * setting.scenario.precision.weight_bytes
    return LayerCost(2 * weights, 2 * weights, 3 * weights / rate)


def memory_rate(c: Coefficients, width: float) -> float | None:
    """ρ* of the memory-constrained case [eq:rho-memory]; None unless α_ρ > α_r, where it does not exist.

    [α_r κ_d / ((α_ρ − α_r) κ_ρ)]^(1/α_ρ) · d^((β1 − β2)/α_ρ); with r interior only (ERRATA 23).
    """
    if c["alpha_rho"] <= c["alpha_r"]:
        return None
    base = log(c["alpha_r"] * c["kappa_d"]) - log((c["alpha_rho"] - c["alpha_r"]) * c["kappa_rho"])
    return exp(min((base + (c["beta_1"] - c["beta_2"]) * log(width)) / c["alpha_rho"], LARGEST))


def decode_dual_rate(
    eta: float, ratio: float, gqa: float, correction: float, *, paper_form: bool = False
) -> tuple[float, float]:
    """ρ* and ξ_W^all where decode latency and memory bind [thm:dual-constrained (b), ERRATA 5].

    ξ_all = (α + 3r + δ)/η, ρ* = 3ηr / (α(1−η) + 3r + δ), with α = 2 + 2/gqa, δ `correction`. The
    paper divides δ by ξ_all once too often and gets a quadratic, which misses its own ratio.
    """
    attention = 2.0 + 2.0 / gqa
    if paper_form:
        plain = attention + 3.0 * ratio
        storage = (plain + (plain**2 + 4.0 * eta * correction) ** 0.5) / (2.0 * eta)
    else:
        storage = (attention + 3.0 * ratio + correction) / eta
    return 3.0 * ratio / (storage - attention), storage


def cache_correction(setting: Setting, width: float, gqa: float) -> float:
    """δ = 2 B S̄ b_kv / (gqa d b_w), the KV cache in units of ξ."""
    s = setting.scenario
    return 2.0 * s.batch * setting.context * s.precision.kv_bytes / (gqa * width * s.precision.weight_bytes)


def prefill_dual_rate(eta_p: float, ratio: float, gqa: float, weight_bytes: float) -> float:
    """ρ* where prefill latency and memory bind [eq:rho-dual-prefill]: 3 η_p b_w r / (α(2 − η_p b_w) + 6r)."""
    share = eta_p * weight_bytes
    return 3.0 * share * ratio / ((2.0 + 2.0 / gqa) * (2.0 - share) + 6.0 * ratio)


@dataclass(frozen=True)
class Shape:
    """Logarithms of depth, FFN ratio and gqa, so that no exponent of a law takes them out of range."""

    depth: float
    ratio: float
    gqa: float

    def log_cost(self, cost: LayerCost) -> float:
        """ln of what all layers cost."""
        return self.depth + cost.log(self.ratio, self.gqa)

    def form(self, case: str, width: float, rate: float) -> ClosedForm:
        """The optimum with these variables."""
        depth, ratio, gqa = (exp(min(max(x, -LARGEST), LARGEST)) for x in (self.depth, self.ratio, self.gqa))
        return ClosedForm(case, width, rate, depth, ratio, gqa)


def at_price(c: Coefficients, width: float, rate: float, cost: LayerCost, price: float) -> Shape:
    """l, r, gqa that the conditions for l, r and gqa give at a price per layer u of `cost`, all in logarithms [app:D1, app:P1, app:D2].

    α_r D̃ / (r^(α_r+1) d^β2) = u·∂cost/∂r; α_m κ_m gqa^(α_m+1) / d^α_m = u·per_inverse_gqa; α_l κ_l / l^α_l = u·cost.
    With the KV term −κ_m ln d_m the second is κ_m gqa = u·per_inverse_gqa.
    """
    steep = c.get("alpha_m", 0.0)
    kv = c["kappa_m"] * c.get("alpha_m", 1.0)
    wide = log(width)
    gain = np.logaddexp(
        log(c["kappa_rho"]) + c["alpha_rho"] * log(rate) - c["beta_1"] * wide, log(c["kappa_d"]) - c["beta_2"] * wide
    )
    ratio = (log(c["alpha_r"]) + float(gain) - price - log(cost.per_ratio)) / (c["alpha_r"] + 1)
    gqa = (price + log(cost.per_inverse_gqa) + steep * wide - log(kv)) / (steep + 1)
    depth = (log(c["alpha_l"] * c["kappa_l"]) - price - cost.log(ratio, gqa)) / c["alpha_l"]
    return Shape(depth, ratio, gqa)


def single(case: str, c: Coefficients, width: float, rate: float, cost: LayerCost, budget: float) -> ClosedForm:
    """The optimum under one budget at a given ρ: cases D1, P1, and D2 = P2 with ρ from `memory_rate`."""

    def spent(price: float) -> float:
        return at_price(c, width, rate, cost, price).log_cost(cost) - log(budget)

    return at_price(c, width, rate, cost, _price(c, spent)).form(case, width, rate)


def memory_only(setting: Setting, width: float, memory: float, least_rate: float = 0.0) -> ClosedForm:
    """D2 and P2: memory alone; ρ* is bounded by [least_rate, 1] and the rest solved again there."""
    c = setting.scenario.law.coefficients
    formula = memory_rate(c, width)
    rate = 1.0 if formula is None else min(max(formula, least_rate), 1.0)
    return single("memory", c, width, rate, memory_layer(setting, width, rate), memory)


def dual(
    setting: Setting, width: float, latency: LayerCost, budget: float, memory: float, least_rate: float
) -> ClosedForm | None:
    """D3 and P3, and their sub-regime at ρ = ρ_min: both budgets met with equality, by the price ratio t = u_M / u_T.

    None where no prices of both budgets meet both, so that one of them does not bind.
    """
    c = setting.scenario.law.coefficients

    def at(log_ratio: float) -> tuple[float, Shape]:
        times = exp(log_ratio)
        rate = min(max(_dual_rate(c, setting, width, latency, times), least_rate), 1.0)
        both = latency.plus(memory_layer(setting, width, rate), times)

        def spent(price: float) -> float:
            return at_price(c, width, rate, both, price).log_cost(latency) - log(budget)

        return rate, at_price(c, width, rate, both, _price(c, spent))

    def over(log_ratio: float) -> float:
        rate, shape = at(log_ratio)
        return shape.log_cost(memory_layer(setting, width, rate)) - log(memory)

    scale = log(latency.per_ratio / memory_layer(setting, width, 1.0).per_ratio)
    ends = scale - 40.0, scale + 40.0
    if over(ends[0]) * over(ends[1]) > 0.0:
        return None
    rate, shape = at(_root(over, *ends))
    return shape.form("latency and memory", width, rate)


def _dual_rate(c: Coefficients, setting: Setting, width: float, latency: LayerCost, times: float) -> float:
    """ρ at a price ratio: κ_ρ ρ^α_ρ d^(β2−β1) [α_ρ (c_T/c_M) ρ/t + α_ρ − α_r] = α_r κ_d; 1 where α_ρ ≤ α_r leaves none below.

    From the conditions for r and ρ, with c_T, c_M the costs per unit of r of latency and of memory at ρ = 1; 0 below any rate.
    """
    share = latency.per_ratio / memory_layer(setting, width, 1.0).per_ratio / times
    steep = c["kappa_rho"] * width ** (c["beta_2"] - c["beta_1"])

    def surplus(log_rate: float) -> float:
        rate = exp(log_rate)
        left = c["alpha_rho"] * share * rate + c["alpha_rho"] - c["alpha_r"]
        return float(steep * rate ** c["alpha_rho"] * left - c["alpha_r"] * c["kappa_d"])

    if surplus(0.0) <= 0.0:
        return 1.0
    return 0.0 if surplus(LEAST_RATE) >= 0.0 else exp(_root(surplus, LEAST_RATE, 0.0))


def _price(c: Coefficients, function: Callable[[float], float]) -> float:
    """Logarithm of the price at which a falling function of it is 0; its slope is at least min(1, 1/α_l)."""
    reach = PRICES * max(1.0, c["alpha_l"])
    return _root(function, -reach, reach)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-14, rtol=1e-14, maxiter=300))
