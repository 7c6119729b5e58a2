"""The operators of attention: projections, and the core over the whole context or within a window."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Phase, Values, linear, quantise
from objectives.scenario import Scenario


def attention_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of attention, full or within a window, in the layers that have it.

    Layers that share a KV cache project queries alone and read the cache of another layer.
    """
    p, t, d, d_q, d_m, kinds = scenario.precision, phase.tokens, x.width, x.query_dim, x.kv_dim, x.kinds
    b_a, layers = p.activation_bytes, kinds.attention
    projected = d_q if x.gate is None else d_q * (1.0 + x.gate)
    yield linear("q_proj", t, t * d, t * projected, d * projected, p, out_bytes=b_a, count=layers)
    kept = 2.0 * kinds.own_kv
    keys = partial(linear, "k_proj, v_proj", t, t * d, t * d_m, d * d_m, p)
    yield keys(out_bytes=p.kv_bytes, count=kept, weight_bytes=0.5 * (p.weight_bytes + p.bytes_of("values")))
    if scenario.complete:
        yield Operator("rope_qk_norm", 8.0 * t * (d_q + d_m), 2.0 * t * (d_q + d_m) * b_a, count=kinds.own_kv)
        if kinds.shared_kv is not None:
            yield Operator("rope_q_norm", 8.0 * t * d_q, 2.0 * t * d_q * b_a, count=kinds.shared_kv)
    yield from attention_core(x, phase, scenario)
    if x.gate is not None:
        gated = t * d_q * x.gate
        yield Operator("attention_gate", 5.0 * gated, 3.0 * gated * b_a, count=layers, present=x.gate)
    yield from quantise("quantise_o", t * d_q, p, count=layers)
    yield linear("o_proj", t, t * d_q, t * d, d * d_q, p, out_bytes=b_a, count=layers)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of query and key in a pass: `extra` and `per_kv` times S_kv, which counts up to `window`."""

    per_kv: Values
    extra: Values
    window: Values | None = None


def attention_core(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Scores, softmax and values, affine in S_kv; one operator without score traffic when fused.

    Under `causal` the prefill's S(S+1)/2 pairs replace S_q · S_kv (in FLOPs alone when fused). A layer with a window
    w has min(i, w) keys for its i-th query, so that Σ min(i, w) replaces them; in every pass it reads each key that a
    query attends to once.
    """
    local, halved = x.kinds.local(phase.last_kv), scenario.causal and phase.name == "prefill"
    batch, queries = float(phase.batch), float(phase.queries)
    per_kv, extra = (batch * queries / 2.0,) * 2 if halved else (batch * queries, 0.0)
    yield from _core(x, phase, scenario, Pairs(per_kv, extra), x.kinds.full(phase.last_kv), "")
    if local is None:
        return
    window = x.kinds.window
    if phase.name == "decode":
        pairs = Pairs(batch * queries, 0.0, window)
    elif halved:
        pairs = Pairs(0.0, batch * (window * (window + 1.0) / 2.0 + (queries - window) * window))
    else:
        pairs = Pairs(0.0, batch * queries * window)
    yield from _core(x, phase, scenario, pairs, local, "local_")


def _core(
    x: Dimensions, phase: Phase, scenario: Scenario, pairs: Pairs, layers: Values, kind: str
) -> Iterator[Operator]:
    """The core of the layers that attend in one way."""
    p, b_a, d_q, n_h = scenario.precision, scenario.precision.activation_bytes, x.query_dim, x.n_heads
    vectors = float(phase.batch) * float(phase.queries) * d_q * b_a
    kv_bytes = float(phase.batch) * x.kv_dim * p.kv_bytes
    score_flops, softmax_flops, score_bytes = 2.0 * d_q, 5.0 * n_h, n_h * b_a
    operator = partial(Operator, kind="attention", count=layers, window=pairs.window)
    if scenario.attention == "fused":
        flops = 2.0 * score_flops + softmax_flops
        yield operator(
            f"{kind}attention",
            flops * pairs.extra,
            2.0 * vectors,
            flops_per_kv=flops * pairs.per_kv,
            bytes_per_kv=2.0 * kv_bytes,
        )
        return
    matmul = partial(
        operator,
        flops=score_flops * pairs.extra,
        bytes=vectors + score_bytes * pairs.extra,
        flops_per_kv=score_flops * pairs.per_kv,
        bytes_per_kv=kv_bytes + score_bytes * pairs.per_kv,
    )
    yield matmul(f"{kind}qk_matmul")
    yield operator(
        f"{kind}softmax",
        softmax_flops * pairs.extra,
        2.0 * score_bytes * pairs.extra,
        flops_per_kv=softmax_flops * pairs.per_kv,
        bytes_per_kv=2.0 * score_bytes * pairs.per_kv,
    )
    yield matmul(f"{kind}sv_matmul")
