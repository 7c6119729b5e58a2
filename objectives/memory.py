"""Bytes of an architecture: the weights that the paper counts, and all resident memory."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from objectives.counts import ParameterGroups, count
from objectives.dimensions import Dimensions, kv_cache_bytes
from objectives.engines import engine_of
from objectives.layer_kinds import STATE_BYTES
from objectives.parts import PartAssessment
from objectives.precision import Precision
from objectives.scenario import Scenario
from objectives.shares import Share, small_tensors, weights_of_a_layer
from search_spaces.arrays import FloatArray
from search_spaces.columns import any_of

GB = 1e9


def weights_gb(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Return the paper's memory [eq:memory_footprint]: linear weights · b_w, GB, (n,); never embeddings.

    Experts in slow memory are no part of it; the layer of a head for multi-token prediction and a draft model are.
    """
    if scenario.precision.stored is None:
        found = g.linear * scenario.precision.weight_bytes / GB
    else:
        mixing, ffn = weights_by_part(x, g, scenario.precision)
        found = (mixing + ffn) / GB
    serving = scenario.serving
    if serving.drafts_itself:
        found = found * (1.0 + 1.0 / x.depth) + projection_gb(x, scenario)
    if serving.with_draft:
        found = found + _of_draft(scenario, weights_gb)
    return found - slow_gb(x, g, scenario, kept=True) if serving.slow_share else found


def projection_gb(x: Dimensions, scenario: Scenario) -> FloatArray:
    """Return the projection of a head for multi-token prediction, 2 d · d weights, GB, (n,)."""
    return 2.0 * x.width**2 * scenario.precision.bytes_of("weights", 2.0 * x.width) / GB


def expert_weights_gb(x: Dimensions, g: ParameterGroups, p: Precision) -> FloatArray:
    """Return the memory of all routed experts (for dense designs the FFN), GB, (n,)."""
    if x.layout is not None:
        each = (expert_weights_gb(block, count(block.architectures, block), p) for block in x.layout.ffns)
        return sum(each, np.zeros(len(x.architectures)))
    (up, down), ups = p.bytes_of_ffn(x.sparse, x.width), x.before_activation
    found: FloatArray = g.experts_total * (ups * up + down) / (ups + 1.0) / GB
    return found


def slow_gb(x: Dimensions, g: ParameterGroups, scenario: Scenario, *, kept: bool = False) -> FloatArray:
    """Return the experts in slow memory, GB, (n,); with `kept`, without the hot ones that fast memory copies."""
    serving = scenario.serving
    share = serving.slow_share * (1.0 - serving.hot.share if kept else 1.0)
    return expert_weights_gb(x, g, scenario.precision) * share


def _of_draft(scenario: Scenario, memory: Callable[[Dimensions, ParameterGroups, Scenario], FloatArray]) -> float:
    """What a draft model takes, GB.

    Raises:
        ValueError: none is given.
    """
    draft = scenario.serving.draft
    if draft is None:
        raise ValueError(
            f"draft: expected a model beside speculation {scenario.serving.speculation}, got none; give one"
        )
    return float(memory(Dimensions(draft), count(draft), replace(scenario.plainly(), calibration=None))[0])


def weights_by_part(x: Dimensions, g: ParameterGroups, p: Precision) -> tuple[FloatArray, FloatArray]:
    """Return the bytes of linear weights of mixers and of FFNs, each (n,)."""
    kinds, d, inner = x.kinds, x.width, x.kinds.inner
    weights = p.bytes_of("weights", d)
    if p.stored is None:
        mixing, ffn = g.attention + g.mixers, g.experts_total + g.shared_expert + g.dense
        return mixing * weights, ffn * weights
    if x.layout is not None:
        parts = [weights_by_part(block, count(block.architectures, block), p) for block in x.layout.blocks]
        none = np.zeros(len(x.architectures))
        return sum((mixer for mixer, _ in parts), none), sum((ffn for _, ffn in parts), none)
    out = kinds.attention_layers * d * x.query_dim * p.bytes_of("output", x.query_dim)
    values = kinds.own_kv_layers * d * x.kv_dim * p.bytes_of("values", d)
    recurrent = x.architectures.n_linear * d * inner
    rest = g.attention + g.mixers - (kinds.attention_layers * x.query_dim + kinds.own_kv_layers * x.kv_dim) * d
    mixing = out + values + recurrent * p.bytes_of("weights", inner) + (rest - recurrent) * weights
    (up, down), b_down, ups = p.bytes_of_ffn(x.sparse, d), p.bytes_of("down"), x.before_activation
    one = (g.shared_expert + g.dense) * (ups * weights + b_down)
    return mixing, (g.experts_total * (ups * up + down) + one) / (ups + 1.0)


def embedding_bytes(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Return the bytes of embedding and LM head (one table if tied) and of per-layer embeddings, (n,), but for what the host holds."""
    head, table = scenario.bytes_of_head(x.width), scenario.bytes_of_embedding(x.architectures.tied, x.width)
    whole: FloatArray = g.embedding * 0.5 * (head + table) + g.tables * scenario.precision.bytes_of("tables")
    return whole - host_bytes(x, g, scenario)


def host_bytes(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Return the bytes of tables that the engine keeps in the host's memory, beside a discrete GPU's, (n,).

    llama.cpp: per-layer embeddings, and an embedding that is not tied; of a tied one the GPU has a copy as LM head.

    Source: ggml-org/llama.cpp src/llama-model.cpp, input layers on the CPU.
    """
    discrete = scenario.device.chip in ("gpu", "server_gpu")
    if not (discrete and engine_of(scenario.engine) == "llama.cpp"):
        return np.zeros(len(x.architectures))
    apart = scenario.bytes_of_embedding(x.architectures.tied, x.width)
    return np.where(x.architectures.tied, 0.0, g.embedding * 0.5 * apart) + g.tables * scenario.precision.bytes_of(
        "tables"
    )


def resident_parts_gb(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> dict[str, FloatArray]:
    """Return the resident memory of architectures by part, GB, each (n,).

    Weights, embeddings, KV cache, states of other mixers, activations, and what the engine was measured to hold besides.
    """
    p = scenario.precision
    tokens = scenario.tokens_at_once
    parts = {
        "linear weights": weights_gb(x, g, scenario),
        "router, norms, biases": (g.router + g.small) * p.small_bytes / GB,
        "embeddings and head": embedding_bytes(x, g, scenario) / GB,
        "kv cache": kv_cache_of(x, scenario) / GB,
        "activations": (mixer_activations(x, scenario) + tokens * _held_by_ffn(x)) * p.activation_bytes / GB,
    }
    states = state_bytes(x, scenario)
    parts |= {} if states is None else {"states": states / GB}
    serving = scenario.serving
    drafts = serving.drafts_itself or serving.with_draft
    parts |= _of_drafting(x, g, parts, scenario) if drafts else {}
    own, factor = scenario.engine_memory
    besides = own + (factor - 1.0) * sum(parts.values(), np.zeros(len(x.architectures)))
    return parts if (own, factor) == (0.0, 1.0) else parts | {"engine": besides}


def _held_by_ffn(x: Dimensions) -> FloatArray:
    """Elements of a token that the FFN which needs most holds before its last matrix, (n,)."""
    if x.layout is not None:
        return np.asarray(np.max([_held_by_ffn(block) for block in x.layout.ffns], axis=0))
    shared = np.zeros(len(x.architectures)) if x.shared_expert_size is None else x.shared_expert_size
    ffn: FloatArray = x.before_activation * x.activated_size + x.before_activation * shared
    return ffn if x.kinds.dense is None else np.maximum(ffn, x.before_activation * x.dense_size)


def _of_drafting(
    x: Dimensions, g: ParameterGroups, parts: Mapping[str, FloatArray], scenario: Scenario
) -> dict[str, FloatArray]:
    """What drafts: a draft model with its own cache, or small tensors and the cache of one more layer."""
    if scenario.serving.with_draft:
        whole, weights = _of_draft(scenario, resident_gb), _of_draft(scenario, weights_gb)
        return {"draft model": np.full(len(x.architectures), whole - weights)}
    small = (g.router + g.small - x.width) / x.depth * scenario.precision.small_bytes / GB
    states = parts.get("states", 0.0)
    return {"drafting layer": small + (parts["kv cache"] + states) / x.depth}


def kv_cache_of(x: Dimensions, scenario: Scenario) -> FloatArray:
    """Return the bytes of the KV cache of B sequences at full context, (n,)."""
    context = scenario.input_tokens + scenario.output_tokens
    return kv_cache_bytes(x, context, float(scenario.batch) * scenario.precision.kv_bytes)


def state_bytes(x: Dimensions, scenario: Scenario) -> FloatArray | None:
    """Return the bytes of the states of B sequences, (n,): recurrences in 32 bits, and inputs that causal convolutions need."""
    a, kinds, b_a = x.architectures, x.kinds, scenario.precision.activation_bytes
    if x.layout is not None:
        each = (state_bytes(block, scenario) for block in x.layout.mixers)
        return sum((states for states in each if states is not None), np.zeros(len(a)))
    if kinds.alike:
        return None
    buffer = kinds.channels * np.maximum(kinds.linear_kernel - 1.0, 0.0) * b_a
    short = x.width * np.maximum(kinds.conv_kernel - 1.0, 0.0) * b_a
    states: FloatArray = a.n_linear * (kinds.state * STATE_BYTES + buffer) + a.n_conv * short
    return float(scenario.batch) * states


def mixer_activations(x: Dimensions, scenario: Scenario) -> FloatArray:
    """Return the largest number of elements that a mixer holds for the tokens of one chunk, (n,).

    Attention 4 d + 2 d_m a token and, unfused, the scores; linear attention 2 d + c + 2 h_v d_v; convolution 6 d.
    """
    if x.layout is not None:
        return np.asarray(np.max([mixer_activations(block, scenario) for block in x.layout.mixers], axis=0))
    a, kinds, read = x.architectures, x.kinds, float(scenario.input_tokens)
    tokens = scenario.tokens_at_once
    held = tokens * (4.0 * x.width + 2.0 * x.kv_dim)
    if scenario.attention == "unfused":
        seen = np.where(a.n_full > 0, read, np.minimum(read, kinds.window)) if any_of(a.n_local) else read
        held = held + tokens * x.n_heads * seen
    if kinds.alike:
        return held
    held = held * (kinds.attention_layers > 0)
    linear = tokens * (2.0 * x.width + kinds.channels + 2.0 * kinds.inner) * (a.n_linear > 0)
    convolution = tokens * 6.0 * x.width * (a.n_conv > 0)
    most: FloatArray = np.maximum(held, np.maximum(linear, convolution))
    return most


def resident_gb(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Return weights, embeddings, KV cache at full context, peak activations and what the engine holds besides, GB, (n,)."""
    return sum(resident_parts_gb(x, g, scenario).values(), np.zeros(len(x.architectures)))


def weights_share(shares: PartAssessment) -> Share:
    """Return a part's share of `weights_gb`."""
    architectures, scenario = shares.architectures, shares.scenario
    serving, precision = scenario.serving, scenario.precision
    if shares.part == "base":
        return _base_weights(shares.dimensions, scenario)
    if precision.stored is None:
        share = weights_of_a_layer(architectures, shares.part).times(precision.weight_bytes / GB)
    else:
        mixing, ffn = weights_by_part(shares.dimensions, shares.parameters, precision)
        share = Share(per_layer=((mixing / architectures.depth if shares.part == "attention" else ffn) / GB,))
    drafting = share.per_layer if serving.drafts_itself else ()
    if serving.slow_share and shares.part == "ffn":
        share = Share(per_layer=_fast_ffn(shares.dimensions, shares.parameters, scenario))
    return share + Share(once=drafting)


def _fast_ffn(x: Dimensions, g: ParameterGroups, scenario: Scenario) -> tuple[FloatArray, ...]:
    """What of the FFN of one layer fast memory holds, GB, each (n,): experts that are not slow or are hot, and shared ones."""
    p, serving = scenario.precision, scenario.serving
    fast = 1.0 - serving.slow_share * (1.0 - serving.hot.share)
    ups = x.before_activation
    shared = g.shared_expert * (ups * p.bytes_of("weights", x.width) + p.bytes_of("down")) / (ups + 1.0) / GB
    return expert_weights_gb(x, g, p) * fast, shared


def _base_weights(x: Dimensions, scenario: Scenario) -> Share:
    """Weights that are of no layer: a draft model's, the projection of a head for multi-token prediction."""
    if scenario.serving.drafts_itself:
        return Share(once=(projection_gb(x, scenario),))
    if scenario.serving.with_draft:
        return Share(once=(np.full(len(x.architectures), _of_draft(scenario, weights_gb)),))
    return Share()


def _share_of_kinds(x: Dimensions, scenario: Scenario) -> Share:
    """The share of layers of other kinds in attention: states, and the memory of their mixers beyond (or below) full attention's."""
    if x.kinds.alike and x.kinds.local(scenario.input_tokens) is None:
        return Share()
    tokens = scenario.tokens_at_once
    full = tokens * (4.0 * x.width + 2.0 * x.kv_dim)
    if scenario.attention == "unfused":
        full = full + tokens * x.n_heads * float(scenario.input_tokens)
    more, states = mixer_activations(x, scenario) - full, state_bytes(x, scenario)
    once = (more * scenario.precision.activation_bytes / GB,)
    return Share(() if states is None else (states / x.depth / GB,), once)


def resident_share(shares: PartAssessment) -> Share:
    """Return a part's share of `resident_gb`: weights, small tensors, embeddings, KV cache, activations, what the engine holds."""
    own, factor = shares.scenario.engine_memory
    once = (np.full(len(shares.architectures), own),) if own and shares.part == "base" else ()
    return _share_of_model(shares).times(factor) + Share(once=once)


def _share_of_model(shares: PartAssessment) -> Share:
    scenario = shares.scenario
    p, x = scenario.precision, shares.dimensions
    tokens = scenario.tokens_at_once * p.activation_bytes / GB
    small = small_tensors(shares.architectures, shares.part).times(p.small_bytes / GB)
    drafting = small.per_layer if scenario.serving.drafts_itself else ()
    share = weights_share(shares) + small + Share(once=drafting)
    if shares.part == "base":
        tables = embedding_bytes(x, shares.parameters, scenario) / GB
        share += Share(once=(tables,))
        if scenario.serving.with_draft:
            of_draft = _of_draft(scenario, resident_gb) - _of_draft(scenario, weights_gb)
            share += Share(once=(np.full(len(shares.architectures), of_draft),))
        return share + Share(once=(tokens * 4.0 * x.width,))
    if shares.part == "attention":
        scores = tokens * x.n_heads * float(scenario.input_tokens) * (scenario.attention == "unfused")
        cache = kv_cache_of(x, scenario) / x.depth / GB
        kinds = _share_of_kinds(x, scenario)
        drafting = (cache, *kinds.per_layer) if scenario.serving.drafts_itself else ()
        return share + Share(per_layer=(cache,), once=(tokens * 2.0 * x.kv_dim, scores, *drafting)) + kinds
    beside = 0.0 if x.shared_expert_size is None else x.shared_expert_size
    return share + Share(once=(tokens * x.before_activation * (x.activated_size + beside),))
