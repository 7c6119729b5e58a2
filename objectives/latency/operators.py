"""The operators of a layer and of the head, also of experts in slow memory (host memory, flash) [app:problem_formulation]."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from objectives.dimensions import Dimensions, kv_cache_bytes
from objectives.latency.operator import Operator, Phase, Values, linear, quantise
from objectives.layer_kinds import STATE_BYTES
from objectives.scenario import Scenario
from search_spaces.arrays import FloatArray


def mixer_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Everything of a layer but its FFN: norms, what mixes tokens (attention or another kind), residual adds."""
    t, d, b_a = phase.tokens, x.width, scenario.precision.activation_bytes
    yield Operator("norm", 4.0 * t * d, 2.0 * t * d * b_a, count=x.norms)
    for block, share in blocks_of(x, "mixers"):
        yield from _shared_out(_mixer(block, phase, scenario), share)
    if scenario.complete:
        yield Operator("residual_add", t * d, 3.0 * t * d * b_a, count=x.residuals)
    if scenario.serving.link and phase.name == "prefill":
        yield handed_over(x, phase, scenario)


def _mixer(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """What mixes tokens, of each kind that layers have."""
    yield from quantise("quantise_attention", phase.tokens * x.width, scenario.precision)
    for heads in _heads(x, phase.last_kv):  # full, or within a window
        yield from _of_heads(x, heads, phase, scenario)
    if x.latent is not None:
        yield from _latent(x, x.latent, phase, scenario)
    yield from linear_attention_operators(x, phase, scenario)
    yield from short_convolution_operators(x, phase, scenario)


def blocks_of(x: Dimensions, place: Literal["mixers", "ffns"]) -> Iterator[tuple[Dimensions, FloatArray | None]]:
    """The blocks of layers that differ with the share of the layers that have them; all layers where they are alike."""
    if x.layout is None:
        yield x, None
        return
    for block in getattr(x.layout, place):
        yield block, block.depth / x.depth


def _shared_out(operators: Iterator[Operator], share: FloatArray | None) -> Iterator[Operator]:
    """Operators of a share of the layers."""
    return operators if share is None else (replace(each, count=each.count * share) for each in operators)


def handed_over(x: Dimensions, phase: Phase, scenario: Scenario) -> Operator:
    """The KV cache of a prompt on its way to the chip that decodes, a layer's mean, at the link's rate; none overlaps with computing."""
    cache = kv_cache_bytes(x, phase.queries, phase.batch * scenario.precision.kv_bytes) / x.depth
    rates = scenario.seconds_per_flop("fp16"), 1.0 / scenario.serving.link
    return Operator("kv_cache over the link", 0.0 * cache, cache, own_rates=rates)


def ffn_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Every FFN of a layer."""
    for block, share in blocks_of(x, "ffns"):
        yield from _shared_out(_ffn(block, phase, scenario), share)


def _ffn(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Router, experts, shared expert, and the dense FFN of layers without experts."""
    p, t, d, layers = scenario.precision, phase.tokens, x.width, x.kinds.experts
    b_a, active, out = p.activation_bytes, t * x.activated_size, t * x.top_k * d
    if x.sparse.any():
        experts = x.n_experts * x.sparse
        router_bytes = d * experts * p.small_bytes + t * experts * b_a + t * d * b_a * x.sparse
        yield Operator("router", 2.0 * t * d * experts, router_bytes, count=layers, present=x.sparse)
    yield from quantise("quantise_ffn", t * d, p)
    touched = x.touched_experts(independent_tokens(phase, scenario), scenario.routing_overlap)
    applied = x.activated_size * d
    weights = touched * x.expert_size * d
    (b_up, b_down), one = p.bytes_of_ffn(x.sparse), x.expert_size * d
    expert = partial(linear, weights=weights, weight_flops=applied, routed=x.sparse, out_bytes=b_a)
    up = partial(expert, p=p, weight_bytes=b_up, expert_bytes=one * b_up)
    down = partial(expert, p=p.of_down, weight_bytes=b_down, expert_bytes=one * b_down)
    ups = x.before_activation
    yield from placed(up("gate_proj, up_proj", t, out, active, count=ups * layers), phase, scenario)
    yield Operator("gated_activation", (3.0 * ups - 1.0) * active, (ups + 1.0) * active * b_a, count=layers)
    yield from quantise("quantise_down", active, p, count=layers)
    yield from placed(down("down_proj", t, active, out, count=layers), phase, scenario, last=True)
    if scenario.complete and x.sparse.any():
        combined = 2.0 * out * x.sparse, (x.top_k + 1.0) * t * d * b_a * x.sparse
        yield Operator("combine_experts", *combined, count=layers, present=x.sparse)
    if x.shared_expert_size is not None:
        yield from _one_ffn("shared", x.shared_expert_size, layers, x, phase, scenario)
    if x.kinds.dense is not None:
        yield from _one_ffn("dense", x.dense_size, x.kinds.dense, x, phase, scenario)


def independent_tokens(phase: Phase, scenario: Scenario) -> float:
    """Tokens of a pass, of a decode step's further positions those that choose experts independently of its first."""
    if phase.name == "prefill" or phase.queries == 1:
        return phase.tokens
    return phase.batch * (1.0 + (1.0 - scenario.serving.position_overlap) * (phase.queries - 1))


def _one_ffn(
    name: str, size: FloatArray, layers: Values, x: Dimensions, phase: Phase, scenario: Scenario
) -> Iterator[Operator]:
    """Gate, up, activation and down of an FFN that every token takes; nothing where its size is 0."""
    p, t, d, b_a = scenario.precision, phase.tokens, x.width, scenario.precision.activation_bytes
    here = (size > 0).astype(float)
    rows, active, up = t * here, t * size, f"{name}_gate_proj, {name}_up_proj"
    one = partial(linear, rows=t, weights=d * size, out_bytes=b_a, present=here)
    ups = x.before_activation
    yield one(up, n_in=rows * d, n_out=active, p=p, count=ups * layers)
    work = (3.0 * ups - 1.0) * active, (ups + 1.0) * active * b_a
    yield Operator(f"{name}_activation", *work, count=layers, present=here)
    yield from quantise(f"quantise_{name}_down", active, p, here, count=layers)
    yield one(
        f"{name}_down_proj", n_in=active, n_out=rows * d, p=p.of_down, count=layers, weight_bytes=p.bytes_of("down")
    )


def head_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Once per pass: embedding look-up of all T tokens, LM head for one position per sequence, in decoding for each; a request's constant."""
    if phase.name == "prefill" and scenario.request_s:
        none = 0.0 * x.width
        yield Operator("request", none, none, present=none, fixed_seconds=scenario.request_s)
    if x.vocabulary is None:
        return
    b_a, vocabulary = scenario.precision.activation_bytes, x.vocabulary
    batch = phase.tokens if phase.name == "decode" else float(phase.batch)
    b_head, b_table = scenario.bytes_of_head(), scenario.bytes_of_embedding(x.architectures.tied)
    here = (vocabulary > 0).astype(float)
    yield Operator("embedding", 0.0 * here, phase.tokens * x.width * (b_table + b_a) * here, present=here)
    traffic = x.width * vocabulary * b_head + batch * (x.width * here + vocabulary) * b_a
    yield Operator("lm_head", 2.0 * batch * x.width * vocabulary, traffic, present=here)


def drafting_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """What a head for multi-token prediction has besides a layer and the LM head: two norms, and the projection of 2 d features to d.

    Source: DeepSeek-AI 2024 (2412.19437), section 2.2.
    """
    p, t, d, b_a = scenario.precision, phase.tokens, x.width, scenario.precision.activation_bytes
    yield Operator("mtp_norms", 8.0 * t * d, 4.0 * t * d * b_a)
    yield from quantise("quantise_mtp", 2.0 * t * d, p)
    yield linear("mtp_proj", t, 2.0 * t * d, t * d, 2.0 * d * d, p, out_bytes=b_a)


#: Operators of a layer's mixer or FFN, or of the head (`base`).
OF_PART = {"base": head_operators, "attention": mixer_operators, "ffn": ffn_operators}


def placed(operator: Operator, phase: Phase, scenario: Scenario, *, last: bool = False) -> Iterator[Operator]:
    """An operator of experts: of the layers whose experts lie in slow memory at that memory's rates; `last` waits for it.

    Layers are taken as alike, a share of each operator's instances.
    """
    share = scenario.serving.slow_share
    if not share:
        yield operator
        return
    if share < 1.0:
        yield replace(operator, count=operator.count * (1.0 - share))
    wait = scenario.slow_memory.overhead_s + scenario.serving.hot.wait_ms * 1e-3 if last else 0.0
    rates = slow_rates(operator, phase, scenario)
    yield replace(
        operator, name=f"slow {operator.name}", count=operator.count * share, own_rates=rates, wait_seconds=wait
    )


def slow_rates(operator: Operator, phase: Phase, scenario: Scenario) -> tuple[float, float]:
    """Seconds a FLOP and a byte of experts in slow memory.

    A decode step computes them where they lie, if the device file states that memory's processor, and reads what the hot
    experts serve from fast memory, the one after the other: (1 - h) / (eta_s beta_s) + h / (eta_b beta). A prefill brings them over the
    link and computes on the device.
    """
    memory, hits = scenario.slow_memory, scenario.serving.hot.hits
    per_flop, fast = scenario.seconds_per_flop(operator.peak), scenario.seconds_per_byte(phase.name, routed=True)
    rate = memory.rate if phase.name == "decode" else memory.link or memory.rate
    slow = 1.0 / (scenario.slow_efficiency * rate)
    if phase.name == "decode" and memory.fp16 is not None:
        per_flop = 1.0 / memory.fp16
    return per_flop, (1.0 - hits) * slow + hits * fast


def linear_attention_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Gated DeltaNet or Mamba2: projection, causal convolution, recurrence, gated norm, projection.

    The recurrence is counted token by token, 7 (Gated DeltaNet: decay, read-out of the key, update, read-out) or 5
    (Mamba2: decay, update, read-out) FLOPs per token and element of the state; a pass reads and writes the state once.
    """
    kinds, p, t, d = x.kinds, scenario.precision, phase.tokens, x.width
    layers, b_a, batch = kinds.linear, p.activation_bytes, float(phase.batch)
    if layers is None:
        return
    out, inner, channels = kinds.projected, kinds.inner, kinds.channels
    yield linear("linear_in_proj", t, t * d, t * out, d * out, p, out_bytes=b_a, count=layers)
    taps, kept = channels * kinds.linear_kernel, batch * channels * (kinds.linear_kernel - 1.0) * (layers > 0)
    moved = (taps + 2.0 * t * channels + 2.0 * kept) * b_a
    yield Operator("linear_conv", 2.0 * t * taps, moved, count=layers)
    state = 2.0 * batch * kinds.state * STATE_BYTES
    scan = kinds.scan_flops * t * kinds.state
    yield Operator("linear_scan", scan, t * (channels + inner) * b_a + state, count=layers, kind="scan")
    yield Operator("gated_norm", 9.0 * t * inner, 3.0 * t * inner * b_a, count=layers)
    yield from quantise("quantise_linear_out", t * inner, p, count=layers)
    yield linear("linear_out_proj", t, t * inner, t * d, d * inner, p, out_bytes=b_a, count=layers)


def short_convolution_operators(x: Dimensions, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """LFM2's mixer: projection to two gates and a value, gated causal convolution of d channels, projection."""
    kinds, p, t, d = x.kinds, scenario.precision, phase.tokens, x.width
    layers, b_a, batch = kinds.conv, p.activation_bytes, float(phase.batch)
    if layers is None:
        return
    yield linear("conv_in_proj", t, t * d, 3.0 * t * d, 3.0 * d * d, p, out_bytes=b_a, count=layers)
    taps, kept = d * kinds.conv_kernel, batch * d * (kinds.conv_kernel - 1.0) * (layers > 0)
    moved = (taps + 4.0 * t * d + 2.0 * kept) * b_a
    yield Operator("short_conv", 2.0 * t * taps + 2.0 * t * d, moved, count=layers)
    yield from quantise("quantise_conv_out", t * d, p, count=layers)
    yield linear("conv_out_proj", t, t * d, t * d, d * d, p, out_bytes=b_a, count=layers)


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
        local = None if local is None else local * plain
    yield Heads("", layers, own_kv, shared, full, local, d_q, d_m, 2.0, 2.0 * d_m, d_q, d_q)


def _of_heads(x: Dimensions, heads: Heads, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """Layers that share a KV cache project queries alone and read the cache of another layer."""
    p, t, d, d_q, d_m, kind = scenario.precision, phase.tokens, x.width, heads.query_dim, heads.kv_dim, heads.name
    b_a, layers = p.activation_bytes, heads.layers
    projected = d_q if x.attention_gate is None else d_q * (1.0 + x.attention_gate)
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
    if x.attention_gate is not None:
        gated = t * d_q * x.attention_gate
        yield Operator(f"{kind}attention_gate", 5.0 * gated, 3.0 * gated * b_a, count=layers, present=x.attention_gate)
    yield from quantise(f"{kind}quantise_o", t * d_q, p, count=layers)
    out = partial(linear, f"{kind}o_proj", t, t * d_q, t * d, d * d_q, p)
    yield out(out_bytes=b_a, count=layers, weight_bytes=p.bytes_of("output"))


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
    yield from _indexer(x, layers, phase, scenario)
    context = phase.last_kv
    full, local = here * x.kinds.full(context), x.kinds.local(context)
    local = None if local is None else here * local
    one = Heads("latent_", layers, layers, None, full, local, d_q, kept, 1.0, kept, n_h * kept, n_h * r)
    yield from attention_core(x, one, phase, scenario)
    yield linear("latent_v_up", t, t * n_h * r, t * values, r * values, p, out_bytes=b_a, count=layers)
    yield from quantise("latent_quantise_o", t * values, p, count=layers)
    yield linear("latent_o_proj", t, t * values, t * d, d * values, p, out_bytes=b_a, count=layers)


def _indexer(x: Dimensions, layers: Values, phase: Phase, scenario: Scenario) -> Iterator[Operator]:
    """What chooses the tokens that latent attention attends to: queries, a key and weights of heads, and scores of all tokens.

    Source: DeepSeek-AI 2025, DeepSeek-V3.2-Exp, equation 1.
    """
    if x.index_dim is None:
        return
    p, t, d, size, b_a = scenario.precision, phase.tokens, x.width, x.index_queries, scenario.precision.activation_bytes
    heads, here = x.architectures.index_heads.astype(np.float64), (x.index_dim > 0).astype(float)
    rank, keys = x.latent_queries * here, x.index_dim
    made = partial(linear, rows=t, p=p, count=layers, present=here)
    yield made("index_q", n_in=t * rank, n_out=t * size, weights=rank * size, out_bytes=b_a)
    yield made("index_k", n_in=t * d * here, n_out=t * keys, weights=d * keys, out_bytes=p.kv_bytes)
    yield made("index_weights", n_in=t * d * here, n_out=t * heads, weights=d * heads, out_bytes=b_a)
    pairs, moved = 2.0 * (size + heads), phase.batch * keys * p.kv_bytes
    halved = scenario.causal and phase.name == "prefill"
    once, per_kv = (pairs * t * share for share in ((0.5, 0.5) if halved else (0.0, 1.0)))
    scores = partial(Operator, "index_scores", once, t * size * b_a, kind="attention", count=layers, present=here)
    yield scores(flops_per_kv=per_kv, bytes_per_kv=moved)


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
