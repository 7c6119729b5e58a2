"""Budgets divided by what the device and the workload give: F̄_p, M̄_d, M_budget, and their ratios."""

from collections.abc import Mapping
from dataclasses import dataclass

from nas.theory.costs import Setting


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
