"""Costs as posynomials of the five variables: latencies, memory, parameters; operator latencies by cuts.

The router depends on E itself and not on ρ alone. It is counted for a given (E, K) and left out
otherwise, which keeps every posynomial at or below the true cost.

Operator latencies of one (E, K) are sums of the larger of two posynomials. Each operator's compute and memory side is
a combination of seven monomials of width, ratio and gqa, whose coefficients are read off the operator model itself.
Choosing one side for every operator gives a posynomial that is nowhere above the latency; choosing the larger sides at a
point makes it equal there. So the program is solved again with such cuts until its optimum meets them all, and the bound
is certified at every step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nas.errors import UsageError
from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Pass, Phase, phases
from objectives.latency.roofline import epilogue_seconds, launch_seconds, phase_times
from objectives.scenario import Scenario
from plas_paper.program import Posynomial
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

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
    """Weights, embeddings, KV cache at full context, peak activations, what the engine holds besides, GB."""
    s, p = setting.scenario, setting.scenario.precision
    read, written = float(s.input_tokens), float(s.output_tokens)
    tokens = s.tokens_at_once * p.activation_bytes
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
    own, factor = s.engine_memory
    beside: _Terms = [(own * GB / factor, (0, 0, 0, 0, 0))] if own else []
    return Posynomial.from_terms([*terms, *beside]).times(factor / GB)


COSTS: dict[str, Callable[[Setting], Posynomial]] = {
    cost.__name__: cost
    for cost in (*(prefill_ms, decode_ms, tpot_ms, total_ms), *(memory_gb, resident_gb, params_total, params_active))
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


MONOMIALS = np.array(  # of one layer, in the order of VARIABLES
    [(0, 2, 0, 0, 0), (0, 2, 0, -1, 0), (0, 2, 1, 0, 0), (0, 1, 0, 0, 0), (0, 1, 0, -1, 0), (0, 1, 1, 0, 0), (0,) * 5],
    dtype=np.float64,
)
AGREE = 1e-8
PHASES = {"prefill_ms": (True, False), "decode_ms": (False, True), "tpot_ms": (False, True), "total_ms": (True, True)}


@dataclass(frozen=True, eq=False)
class Sides:
    """Coefficients (operators, 7) of compute and memory time, ms, with what is added to either; per layer and per model."""

    compute: FloatArray
    memory: FloatArray
    depths: FloatArray

    def cut(self, logs: FloatArray) -> Posynomial:
        """The posynomial of the larger side of each operator at a point."""
        at = np.exp(MONOMIALS @ logs)
        larger = np.where((self.compute @ at >= self.memory @ at)[:, None], self.compute, self.memory)
        terms = []
        for power in (0.0, 1.0):
            total = larger[self.depths == power].sum(axis=0)
            terms += [(float(c), (power, *a[1:])) for c, a in zip(total, MONOMIALS.tolist(), strict=True)]
        return Posynomial.from_terms(terms)

    def value(self, logs: FloatArray) -> float:
        """The latency at a point between designs, ms."""
        return float(self.cut(logs)(logs))


def sides(metric: str, phases: tuple[Sides, Sides], output_tokens: int) -> Sides:
    """The two sides of every operator of a latency metric, from those of prefill and decode."""
    parts = [part for part, wanted in zip(phases, PHASES[metric], strict=True) if wanted]
    scale = 1.0 / output_tokens if metric == "tpot_ms" else 1.0
    return Sides(
        np.concatenate([part.compute for part in parts]) * scale,
        np.concatenate([part.memory for part in parts]) * scale,
        np.concatenate([part.depths for part in parts]),
    )


def sides_of_phases(setting: Setting) -> tuple[Sides, Sides]:
    """The two sides of every operator of prefill and decode, for a setting with (E, K).

    Raises:
        ValueError: an operator that is no combination of the seven monomials.
    """
    sample = _sample(setting)
    columns = np.stack([sample.depth, sample.width, sample.ffn_ratio, sample.gqa, sample.activation_rate], axis=1)
    basis = np.exp(np.log(columns.astype(np.float64)) @ MONOMIALS.T)
    both = []
    for phase in phases(setting.scenario):
        times = phase_times(Dimensions(sample), Pass(phase, setting.scenario))
        rows = [(t, 1.0) for t in (*times.attention, *times.ffn)] + [(t, 0.0) for t in times.head]
        added = [_added(t.operator, phase, setting.scenario) for t, _ in rows]
        compute = np.array([_fitted(basis, t.compute + a) for (t, _), a in zip(rows, added, strict=True)])
        memory = np.array([_fitted(basis, t.memory + a) for (t, _), a in zip(rows, added, strict=True)])
        both.append(Sides(1e3 * compute, 1e3 * memory, np.array([power for _, power in rows])))
    return both[0], both[1]


def _added(operator: Operator, phase: Phase, scenario: Scenario) -> FloatArray | float:
    """Launches and epilogues, seconds, which come on top of either side."""
    seconds = launch_seconds(operator, phase, scenario) + epilogue_seconds(operator, phase, scenario)
    return operator.count * seconds


def _sample(setting: Setting) -> Architectures:
    """Designs of one layer and one (E, K) that determine the monomials."""
    assert setting.experts is not None
    heads, kv, size = (
        grid.ravel() for grid in np.meshgrid([4, 12, 20, 48], [1, 2, 4], [64, 320, 1536, 4096], indexing="ij")
    )
    n = len(heads)
    shape = {
        "depth": np.ones(n, dtype=np.int64),
        "width": heads * setting.head_dim,
        "head_dim": np.full(n, setting.head_dim),
        "n_heads": heads,
        "n_kv_heads": kv,
        "n_experts": np.full(n, setting.experts[0]),
        "top_k": np.full(n, setting.experts[1]),
        "expert_size": size,
    }
    made = Architectures.from_shape({name: column.astype(np.int64) for name, column in shape.items()})
    return made.with_vocabulary(setting.vocabulary, tied=setting.tied)


def _fitted(basis: FloatArray, values: FloatArray | float) -> FloatArray:
    """Coefficients of the monomials that give the values, exactly."""
    values = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(basis),))
    if not values.any():
        return np.zeros(basis.shape[1])
    scaled = basis / values[:, None]
    norms = np.sqrt((scaled**2).sum(axis=0))
    solution = np.linalg.lstsq(scaled / norms, np.ones(len(basis)), rcond=None)[0]
    coefficients: FloatArray = np.where(np.abs(solution) * (scaled / norms).max(axis=0) < AGREE, 0.0, solution) / norms
    if (coefficients < 0.0).any() or np.abs(basis @ coefficients / values - 1.0).max() > AGREE:
        raise ValueError("operator: expected a positive combination of the seven monomials, got another function")
    return coefficients
