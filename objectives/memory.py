"""Bytes that an architecture takes: the paper's weights, and what must be resident."""

import numpy as np

from objectives.counts import ParameterGroups
from objectives.dimensions import Dimensions
from objectives.parts import PartAssessment
from objectives.scenario import Scenario
from objectives.shares import Share, embeddings, small_tensors, weights_of_a_layer
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

GB = 1e9


def weights_gb(g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """The paper's memory [eq:memory_footprint]: linear weights · b_w, GB, (n,); never embeddings."""
    return g.linear * scenario.precision.weight_bytes / GB


def resident_parts_gb(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> dict[str, FloatArray]:
    """What must be held at once of architectures with their parameters, GB by part, each (n,): weights, embeddings, KV cache, activations."""
    x, p = Dimensions(architectures), scenario.precision
    batch, read = float(scenario.batch), float(scenario.input_tokens)
    context = read + scenario.output_tokens
    shared = np.zeros(len(architectures)) if x.shared is None else x.shared
    activations = batch * read * (4.0 * x.width + 2.0 * x.kv_dim + 2.0 * x.activated_size + 2.0 * shared)
    if scenario.attention == "unfused":
        activations = activations + batch * x.n_heads * read**2
    return {
        "linear weights": g.linear * p.weight_bytes / GB,
        "router, norms, biases": (g.router + g.small) * p.activation_bytes / GB,
        "embeddings and head": g.embedding * scenario.head_bytes / GB,
        "kv cache": 2.0 * x.depth * batch * context * x.kv_dim * p.kv_bytes / GB,
        "activations": activations * p.activation_bytes / GB,
    }


def resident_gb(architectures: Architectures, g: ParameterGroups, scenario: Scenario) -> FloatArray:
    """Weights, embeddings, KV cache at full context and peak activations, GB, (n,)."""
    return sum(resident_parts_gb(architectures, g, scenario).values(), np.zeros(len(architectures)))


def weights_share(shares: PartAssessment) -> Share:
    """What a part adds to `weights_gb`."""
    return weights_of_a_layer(shares.architectures, shares.part).times(shares.scenario.precision.weight_bytes / GB)


def resident_share(shares: PartAssessment) -> Share:
    """What a part adds to `resident_gb`: weights, small tensors, embeddings, KV cache, activations."""
    scenario = shares.scenario
    p, x = scenario.precision, Dimensions(shares.architectures)
    batch, read = float(scenario.batch), float(scenario.input_tokens)
    tokens = batch * read * p.activation_bytes / GB
    share = weights_share(shares) + small_tensors(shares.architectures, shares.part).times(p.activation_bytes / GB)
    share += embeddings(shares.architectures, shares.part).times(scenario.head_bytes / GB)
    if shares.part == "base":
        return share + Share(once=(tokens * 4.0 * x.width,))
    if shares.part == "attention":
        cache = 2.0 * batch * (read + scenario.output_tokens) * x.kv_dim * p.kv_bytes / GB
        scores = batch * x.n_heads * read**2 * p.activation_bytes / GB * (scenario.attention == "unfused")
        return share + Share(per_layer=(cache,), once=(tokens * 2.0 * x.kv_dim, scores))
    shared = 0.0 if x.shared is None else x.shared
    return share + Share(once=(tokens * 2.0 * (x.activated_size + shared),))
