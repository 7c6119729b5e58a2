"""Bytes that an architecture takes: the paper's weights, and what must be resident."""

import numpy as np

from objectives.counts import ParameterGroups, count
from objectives.dimensions import Dimensions
from objectives.layer_kinds import STATE_BYTES
from objectives.parts import PartAssessment
from objectives.scenario import Precision, Scenario
from objectives.shares import Share, small_tensors, weights_of_a_layer
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import any_of

GB = 1e9


def weights_gb(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """The paper's memory [eq:memory_footprint]: linear weights · b_w, GB, (n,); never embeddings."""
    if scenario.precision.stored is None:
        return g.linear * scenario.precision.weight_bytes / GB
    mixing, ffn = weights_by_part(architectures, g, scenario.precision)
    return (mixing + ffn) / GB


def weights_by_part(architectures: Architectures, g: ParameterGroups, p: Precision) -> tuple[FloatArray, FloatArray]:
    """Bytes of the linear weights of what mixes tokens and of FFNs, each (n,)."""
    x = Dimensions(architectures)
    kinds, d, inner = x.kinds, x.width, x.kinds.inner
    weights = p.bytes_of("weights", d)
    if p.stored is None:
        mixing, ffn = g.attention + g.mixers, g.experts_total + g.shared_expert + g.dense
        return mixing * weights, ffn * weights
    out = kinds.attention_layers * d * x.query_dim * p.bytes_of("weights", x.query_dim)
    values = kinds.own_kv_layers * d * x.kv_dim * p.bytes_of("values", d)
    recurrent = architectures.n_linear * d * inner
    rest = g.attention + g.mixers - (kinds.attention_layers * x.query_dim + kinds.own_kv_layers * x.kv_dim) * d
    mixing = out + values + recurrent * p.bytes_of("weights", inner) + (rest - recurrent) * weights
    (up, down), b_down = p.bytes_of_ffn(x.sparse, d), p.bytes_of("down")
    one = (g.shared_expert + g.dense) * (2.0 * weights + b_down)
    return mixing, (g.experts_total * (2.0 * up + down) + one) / 3.0


def embedding_bytes(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Bytes of embedding and LM head, of one table where they are tied, (n,)."""
    width, tied = architectures.width.astype(np.float64), architectures.tied
    head, table = scenario.bytes_of_head(width), scenario.bytes_of_embedding(tied, width)
    return g.embedding * 0.5 * (head + table)


def resident_parts_gb(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> dict[str, FloatArray]:
    """Resident memory of architectures with their parameters, GB by part, each (n,).

    Weights, embeddings, KV cache, states of other mixers, activations.
    """
    x, p = Dimensions(architectures), scenario.precision
    tokens = float(scenario.batch) * float(scenario.input_tokens)
    shared = np.zeros(len(architectures)) if x.shared is None else x.shared
    ffn = 2.0 * x.activated_size + 2.0 * shared
    if x.kinds.dense is not None:
        ffn = np.maximum(ffn, 2.0 * x.dense_size)
    parts = {
        "linear weights": weights_gb(architectures, g, scenario),
        "router, norms, biases": (g.router + g.small) * p.small_bytes / GB,
        "embeddings and head": embedding_bytes(architectures, g, scenario) / GB,
        "kv cache": kv_cache_bytes(x, scenario) / GB,
        "activations": (mixer_activations(x, scenario) + tokens * ffn) * p.activation_bytes / GB,
    }
    states = state_bytes(x, scenario)
    return parts if states is None else parts | {"states": states / GB}


def kv_cache_bytes(x: Dimensions, scenario: Scenario) -> FloatArray:
    """2 B d_m b_kv for every token that a layer keeps: all of the context, or as many as its window is long, (n,).

    Of latent attention B (r + c) b_kv; layers of full attention with heads of their own have their own d_m.
    """
    context = scenario.input_tokens + scenario.output_tokens
    per_element = float(scenario.batch) * scenario.precision.kv_bytes
    elements = 2.0 * x.kv_dim * x.kinds.kept_tokens(context)
    if x.kinds.own_headed_kv_layers is not None:
        elements = elements + x.kinds.own_headed_kv_layers * context * 2.0 * (x.full_kv_dim - x.kv_dim)
    if x.latent is not None:
        elements = np.where(x.latent > 0, x.kinds.own_kv_layers * context * x.latent_kept, elements)
    kept: FloatArray = elements * per_element
    return kept


def state_bytes(x: Dimensions, scenario: Scenario) -> FloatArray | None:
    """States of B sequences, (n,): recurrences in 32 bits, and the inputs that a causal convolution still needs."""
    a, kinds, b_a = x.architectures, x.kinds, scenario.precision.activation_bytes
    if kinds.alike:
        return None
    buffer = kinds.channels * np.maximum(kinds.kernel - 1.0, 0.0) * b_a
    short = x.width * np.maximum(kinds.conv_kernel - 1.0, 0.0) * b_a
    states: FloatArray = a.n_linear * (kinds.state * STATE_BYTES + buffer) + a.n_conv * short
    return float(scenario.batch) * states


def mixer_activations(x: Dimensions, scenario: Scenario) -> FloatArray:
    """Elements that the mixer which needs most holds of B prompts, (n,).

    Attention 4 d + 2 d_m a token and, unfused, the scores; linear attention 2 d + c + 2 h_v d_v; convolution 6 d.
    """
    a, kinds, read = x.architectures, x.kinds, float(scenario.input_tokens)
    tokens = float(scenario.batch) * read
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


def resident_gb(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Weights, embeddings, KV cache at full context and peak activations, GB, (n,)."""
    return sum(resident_parts_gb(architectures, g, scenario).values(), np.zeros(len(architectures)))


def weights_share(shares: PartAssessment) -> Share:
    """A part's share of `weights_gb`."""
    architectures, precision = shares.architectures, shares.scenario.precision
    if precision.stored is None or shares.part == "base":
        return weights_of_a_layer(architectures, shares.part).times(precision.weight_bytes / GB)
    mixing, ffn = weights_by_part(architectures, count(architectures), precision)
    return Share(per_layer=((mixing / architectures.depth if shares.part == "attention" else ffn) / GB,))


def _share_of_kinds(x: Dimensions, scenario: Scenario) -> Share:
    """The share of layers of other kinds in attention: states, and the memory of their mixers beyond (or below) full attention's."""
    if x.kinds.alike and x.kinds.local(scenario.input_tokens) is None:
        return Share()
    tokens = float(scenario.batch) * float(scenario.input_tokens)
    full = tokens * (4.0 * x.width + 2.0 * x.kv_dim)
    if scenario.attention == "unfused":
        full = full + tokens * x.n_heads * float(scenario.input_tokens)
    more, states = mixer_activations(x, scenario) - full, state_bytes(x, scenario)
    once = (more * scenario.precision.activation_bytes / GB,)
    return Share(() if states is None else (states / x.depth / GB,), once)


def resident_share(shares: PartAssessment) -> Share:
    """A part's share of `resident_gb`: weights, small tensors, embeddings, KV cache, activations."""
    scenario = shares.scenario
    p, x = scenario.precision, Dimensions(shares.architectures)
    batch, read = float(scenario.batch), float(scenario.input_tokens)
    tokens = batch * read * p.activation_bytes / GB
    share = weights_share(shares) + small_tensors(shares.architectures, shares.part).times(p.small_bytes / GB)
    if shares.part == "base":
        tables = embedding_bytes(shares.architectures, count(shares.architectures), scenario) / GB
        share += Share(once=(tables,))
        return share + Share(once=(tokens * 4.0 * x.width,))
    if shares.part == "attention":
        scores = batch * x.n_heads * read**2 * p.activation_bytes / GB * (scenario.attention == "unfused")
        cache = kv_cache_bytes(x, scenario) / x.depth / GB
        return share + Share(per_layer=(cache,), once=(tokens * 2.0 * x.kv_dim, scores)) + _share_of_kinds(x, scenario)
    shared = 0.0 if x.shared is None else x.shared
    return share + Share(once=(tokens * 2.0 * (x.activated_size + shared),))
