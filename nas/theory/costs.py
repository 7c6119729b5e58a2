"""Costs as posynomials of the five variables: closed-form latencies, memory, parameters.

The router depends on E itself and not on ρ alone. It is counted for a given (E, K) and left out
otherwise, which keeps every posynomial at or below the true cost.
"""

from collections.abc import Callable
from dataclasses import dataclass

from nas.errors import UsageError
from nas.theory.posynomial import Posynomial
from objectives.scenario import Scenario

GB, MS = 1e9, 1e3
_Terms = list[tuple[float, tuple[float, ...]]]


@dataclass(frozen=True)
class Setting:
    """Quantities that a cost depends on besides the variables; `experts` is (E, K) where it is decided."""

    scenario: Scenario
    head_dim: int = 64
    vocabulary: int = 0
    tied: bool = True
    experts: tuple[int, int] | None = None

    @property
    def context(self) -> float:
        """S̄ = S_in + (S_out + 1)/2, tokens [eq:S_bar]."""
        return self.scenario.input_tokens + (self.scenario.output_tokens + 1) / 2

    @property
    def peak(self) -> float:
        """Peak of the linear operators, FLOP/s."""
        device = self.scenario.device
        return device.peak(self.scenario.precision.linear_peak)


def flops(setting: Setting) -> Posynomial:
    """l ξ_F d², FLOPs of a token's linear operators, ξ_F = 4 + 4/gqa + 6r [eq:xi_F]."""
    return Posynomial.from_terms(_layer(2.0, stored=False))


def decode_bytes(setting: Setting) -> Posynomial:
    """l (ξ_W^dec d² b_w + 2 B S̄ d b_kv / gqa), bytes of a step [eq:decode_constraint_expanded, ERRATA 16]."""
    s = setting.scenario
    cache = 2.0 * s.batch * setting.context * s.precision.kv_bytes
    return Posynomial.from_terms([*_layer(s.precision.weight_bytes, stored=False), (cache, (1, 1, 0, -1, 0))])


def weight_bytes(setting: Setting) -> Posynomial:
    """l ξ_W^all d² b_w, bytes stored, ξ_W^all = 2 + 2/gqa + 3r/ρ [eq:memory_footprint]."""
    return Posynomial.from_terms(_layer(setting.scenario.precision.weight_bytes, stored=True))


def _layer(unit: float, *, stored: bool) -> _Terms:
    return [(2 * unit, (1, 2, 0, 0, 0)), (2 * unit, (1, 2, 0, -1, 0)), (3 * unit, (1, 2, 1, 0, -float(stored)))]


def prefill_ms(setting: Setting) -> Posynomial:
    """l B S_in d² ξ_F / π, ms [eq:prefill_latency]."""
    s = setting.scenario
    return flops(setting).times(MS * s.batch * s.input_tokens / setting.peak)


def decode_ms(setting: Setting) -> Posynomial:
    """S_out steps of `decode_bytes` / β, ms [eq:decode_latency_full]."""
    s = setting.scenario
    return decode_bytes(setting).times(MS * s.output_tokens / s.device.bandwidth)


def tpot_ms(setting: Setting) -> Posynomial:
    """A decode step, ms."""
    return decode_bytes(setting).times(MS / setting.scenario.device.bandwidth)


def total_ms(setting: Setting) -> Posynomial:
    """Prefill and decode, ms."""
    return prefill_ms(setting) + decode_ms(setting)


def memory_gb(setting: Setting) -> Posynomial:
    """Weights, GB."""
    return weight_bytes(setting).times(1.0 / GB)


def params_total(setting: Setting) -> Posynomial:
    """Parameters stored."""
    return Posynomial.from_terms([*_layer(1.0, stored=True), *_small(setting), *_table(setting)])


def params_active(setting: Setting) -> Posynomial:
    """Parameters that a token uses."""
    return Posynomial.from_terms([*_layer(1.0, stored=False), *_small(setting), *_table(setting)])


def _small(setting: Setting) -> _Terms:
    """Norms, QK-norm per head, the final norm, the router where (E, K) is decided."""
    experts = 0 if setting.experts is None or setting.experts[0] == 1 else setting.experts[0]
    per_layer: _Terms = [(2.0 + experts, (1, 1, 0, 0, 0)), (2.0 * setting.head_dim, (1, 0, 0, 0, 0))]
    return [*per_layer, (1.0, (0, 1, 0, 0, 0))]


def _table(setting: Setting) -> _Terms:
    return [(setting.vocabulary * (1.0 if setting.tied else 2.0), (0, 1, 0, 0, 0))]


def resident_gb(setting: Setting) -> Posynomial:
    """Weights, embeddings, KV cache at full context, peak activations, GB."""
    s, p = setting.scenario, setting.scenario.precision
    read, written = float(s.input_tokens), float(s.output_tokens)
    tokens = s.batch * read * p.activation_bytes
    scores = 0.0 if s.attention == "fused" else tokens * read / setting.head_dim
    terms = [
        *_layer(p.weight_bytes, stored=True),
        *((c * p.small_bytes, a) for c, a in _small(setting)),
        *((c * (s.head_bytes or p.head_bytes), a) for c, a in _table(setting)),
        (2.0 * s.batch * (read + written) * p.kv_bytes, (1, 1, 0, -1, 0)),
        (4.0 * tokens + scores, (0, 1, 0, 0, 0)),
        (2.0 * tokens, (0, 1, 0, -1, 0)),
        (2.0 * tokens, (0, 1, 1, 0, 0)),
    ]
    return Posynomial.from_terms(terms).times(1.0 / GB)


COSTS: dict[str, Callable[[Setting], Posynomial]] = {
    cost.__name__: cost
    for cost in (
        *(prefill_ms, decode_ms, tpot_ms, total_ms),
        *(memory_gb, resident_gb, params_total, params_active),
    )
}
LATENCIES = ("prefill_ms", "decode_ms", "tpot_ms", "total_ms")


def cost_of(metric: str, setting: Setting) -> Posynomial:
    """A metric's posynomial.

    Raises:
        UsageError: a metric that has none.
    """
    if metric not in COSTS:
        raise UsageError(f"theory: expected a budget on one of {', '.join(COSTS)}, got {metric}; name one of them")
    return COSTS[metric](setting)
