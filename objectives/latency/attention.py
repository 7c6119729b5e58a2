"""The operators of attention: projections, and the core over the whole context or within a window."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from objectives.dimensions import Dimensions
from objectives.latency.operator import Operator, Phase, Values, linear, quantise
from objectives.scenario import Scenario


@dataclass(frozen=True, eq=False)
class Heads:
    """Heads of layers that have them alike, and which share of the layers these are: with keys and values of their own, with those of
    another layer, attending to the whole context, within a window.

    kept: elements that the cache has of a token in a layer; scored, valued: features that scores and values are computed of.
    """

    name: str
    layers: Values
    own_kv: Values
    shared_kv: Values | None
    full: Values
    local: Values | None
    query_dim: Values
    kv_dim: Values
    projections: Values
    kept: Values
    scored: Values
    valued: Values


def _heads(x: Dimensions, context: int) -> Iterator[Heads]:
    """The heads of all layers, and apart from them those of layers of full attention that have their own."""
    kinds, d_q, d_m = x.kinds, x.query_dim, x.kv_dim
    layers, own_kv, full, local, shared = (
        kinds.attention,
        kinds.own_kv,
        kinds.full(context),
        kinds.local(context),
        kinds.shared_kv,
    )
    apart, apart_kv = kinds.own_headed_layers, kinds.own_headed_kv_layers
    if apart is not None and apart_kv is not None:
        apart, apart_kv = apart / kinds.depth, apart_kv / kinds.depth
        d_f, m_f = x.full_query_dim, x.full_kv_dim
        without = apart - apart_kv
        yield Heads(
            "full_", apart, apart_kv, without, apart, None, d_f, m_f, x.full_kv_projections, 2.0 * m_f, d_f, d_f
        )
        layers, own_kv, full = layers - apart, own_kv - apart_kv, full - apart
        shared = None if shared is None else shared - without
    if x.latent is not None:
        plain = 1.0 - x.latent
        layers, own_kv, full = layers * plain, own_kv * plain, full * plain
    yield Heads("", layers, own_kv, shared, full, local, d_q, d_m, 2.0, 2.0 * d_m, d_q, d_q)


def attention_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of attention, full, within a window or latent, in the layers that have it."""
    for heads in _heads(x, phase.last_kv):
        yield from _of_heads(x, heads, phase, scenario)
    if x.latent is not None:
        yield from _latent(x, x.latent, phase, scenario)


def _of_heads(x: Dimensions, heads: Heads, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Layers that share a KV cache project queries alone and read the cache of another layer."""
    p, t, d, d_q, d_m, kind = scenario.precision, phase.tokens, x.width, heads.query_dim, heads.kv_dim, heads.name
    b_a, layers = p.activation_bytes, heads.layers
    projected = d_q if x.gate is None else d_q * (1.0 + x.gate)
    yield linear(f"{kind}q_proj", t, t * d, t * projected, d * projected, p, out_bytes=b_a, count=layers)
    kept, values = heads.projections * heads.own_kv, (heads.projections - 1.0) / heads.projections
    keys = partial(linear, f"{kind}k_proj, {kind}v_proj", t, t * d, t * d_m, d * d_m, p)
    mean = p.weight_bytes + values * (p.bytes_of("values") - p.weight_bytes)
    yield keys(out_bytes=p.kv_bytes, count=kept, weight_bytes=mean)
    if scenario.complete:
        yield Operator(f"{kind}rope_qk_norm", 8.0 * t * (d_q + d_m), 2.0 * t * (d_q + d_m) * b_a, count=heads.own_kv)
        if heads.shared_kv is not None:
            yield Operator(f"{kind}rope_q_norm", 8.0 * t * d_q, 2.0 * t * d_q * b_a, count=heads.shared_kv)
    yield from attention_core(x, heads, phase, scenario)
    if x.gate is not None:
        gated = t * d_q * x.gate
        yield Operator(f"{kind}attention_gate", 5.0 * gated, 3.0 * gated * b_a, count=layers, present=x.gate)
    yield from quantise(f"{kind}quantise_o", t * d_q, p, count=layers)
    yield linear(f"{kind}o_proj", t, t * d_q, t * d, d * d_q, p, out_bytes=b_a, count=layers)


def _latent(x: Dimensions, here: Values, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Multi-head latent attention with the up-projections of keys and values absorbed, as engines decode it.

    A token's cache is one vector of r + c elements for all heads; queries are brought to r elements a head before the
    scores, results from there to d_v after them. Source: DeepSeek-AI 2024 (arXiv 2405.04434), section 2.1.
    """
    p, t, d, r, b_a = scenario.precision, phase.tokens, x.width, x.latent_size, scenario.precision.activation_bytes
    layers, d_q, rank, n_h = here * x.kinds.attention, x.query_dim, x.latent_queries, x.n_heads
    two = np.where(rank > 0, 1.0, 0.0)
    read = rank * two + d * (1.0 - two)
    yield linear("latent_q_down", t, t * d * two, t * rank, d * rank, p, out_bytes=b_a, count=layers, present=two)
    yield linear("latent_q_up", t, t * read, t * d_q, read * d_q, p, out_bytes=b_a, count=layers)
    kept = x.latent_kept
    yield linear("latent_kv_down", t, t * d, t * kept, d * kept, p, out_bytes=p.kv_bytes, count=layers)
    if scenario.complete:
        yield Operator("latent_rope_norm", 8.0 * t * (d_q + kept), 2.0 * t * (d_q + kept) * b_a, count=layers)
    plain, values = x.latent_plain, x.latent_values
    yield linear("latent_k_up", t, t * plain, t * n_h * r, r * plain, p, out_bytes=b_a, count=layers)
    one = Heads("latent_", layers, layers, None, layers, None, d_q, kept, 1.0, kept, n_h * kept, n_h * r)
    yield from attention_core(x, one, phase, scenario)
    yield linear("latent_v_up", t, t * n_h * r, t * values, r * values, p, out_bytes=b_a, count=layers)
    yield from quantise("latent_quantise_o", t * values, p, count=layers)
    yield linear("latent_o_proj", t, t * values, t * d, d * values, p, out_bytes=b_a, count=layers)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of query and key in a pass: `extra` and `per_kv` times S_kv, which counts up to `window`."""

    per_kv: Values
    extra: Values
    window: Values | None = None


def attention_core(x: Dimensions, heads: Heads, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Scores, softmax and values, affine in S_kv; one operator without score traffic when fused.

    Under `causal` the prefill's S(S+1)/2 pairs replace S_q · S_kv (in FLOPs alone when fused). A layer with a window
    w has min(i, w) keys for its i-th query, so that Σ min(i, w) replaces them; in every pass it reads each key that a
    query attends to once.
    """
    halved = scenario.causal and phase.name == "prefill"
    batch, queries = float(phase.batch), float(phase.queries)
    per_kv, extra = (batch * queries / 2.0,) * 2 if halved else (batch * queries, 0.0)
    yield from _core(x, heads, phase, scenario, Pairs(per_kv, extra), heads.full, heads.name)
    if heads.local is None:
        return
    window = x.kinds.window
    if phase.name == "decode":
        pairs = Pairs(batch * queries, 0.0, window)
    elif halved:
        pairs = Pairs(0.0, batch * (window * (window + 1.0) / 2.0 + (queries - window) * window))
    else:
        pairs = Pairs(0.0, batch * queries * window)
    yield from _core(x, heads, phase, scenario, pairs, heads.local, "local_")


def _core(
    x: Dimensions, heads: Heads, phase: Phase, scenario: Scenario, pairs: Pairs, layers: Values, kind: str
) -> Iterator[Operator]:
    """The core of the layers that attend in one way."""
    p, b_a, n_h = scenario.precision, scenario.precision.activation_bytes, x.n_heads
    tokens = float(phase.batch) * float(phase.queries) * b_a
    cached = float(phase.batch) * p.kv_bytes / 2.0 * heads.kept
    softmax_flops, score_bytes = 5.0 * n_h, n_h * b_a
    operator = partial(Operator, kind="attention", count=layers, window=pairs.window)
    if scenario.attention == "fused":
        flops = 2.0 * (heads.scored + heads.valued) + softmax_flops
        yield operator(
            f"{kind}attention",
            flops * pairs.extra,
            tokens * (heads.scored + heads.valued),
            flops_per_kv=flops * pairs.per_kv,
            bytes_per_kv=2.0 * cached,
        )
        return
    yield _matmul(operator, f"{kind}qk_matmul", heads.scored, tokens, cached, score_bytes, pairs)
    yield operator(
        f"{kind}softmax",
        softmax_flops * pairs.extra,
        2.0 * score_bytes * pairs.extra,
        flops_per_kv=softmax_flops * pairs.per_kv,
        bytes_per_kv=2.0 * score_bytes * pairs.per_kv,
    )
    yield _matmul(operator, f"{kind}sv_matmul", heads.valued, tokens, cached, score_bytes, pairs)


def _matmul(
    operator: partial[Operator],
    name: str,
    features: Values,
    tokens: float,
    cached: Values,
    score_bytes: Values,
    pairs: Pairs,
) -> Operator:
    """Scores or values as a product of its own, with the scores' traffic."""
    return operator(
        name,
        2.0 * features * pairs.extra,
        tokens * features + score_bytes * pairs.extra,
        flops_per_kv=2.0 * features * pairs.per_kv,
        bytes_per_kv=cached + score_bytes * pairs.per_kv,
    )
