"""Counts: parameters and bytes of an architecture, each group once."""

from dataclasses import dataclass

import numpy as np

from objectives.dimensions import Dimensions
from objectives.parts import PartAssessment, Share
from objectives.scenario import Scenario
from search_spaces.architectures import QK_NORMS, Architectures
from search_spaces.arrays import FloatArray

GB = 1e9


@dataclass(frozen=True, eq=False)
class ParameterGroups:
    """Parameters per group over all layers, exact in float64 below 2^53, each (n,)."""

    attention: FloatArray
    experts_total: FloatArray
    experts_active: FloatArray
    shared_expert: FloatArray
    router: FloatArray
    small: FloatArray
    embedding: FloatArray

    @property
    def linear(self) -> FloatArray:
        """Weights of the linear operators, l (2 d d_q + 2 d d_m + 3 d m E + 3 d · shared)."""
        return self.attention + self.experts_total + self.shared_expert


def count(architectures: Architectures) -> ParameterGroups:
    """Parameters of each group: attention projections, experts, router, norms and biases, embeddings."""
    x = Dimensions(architectures)
    depth, d = x.depth, x.width
    shared = np.zeros(len(architectures)) if x.shared is None else x.shared
    vocabulary = np.zeros(len(architectures)) if x.vocabulary is None else x.vocabulary
    expert = depth * 3.0 * d * x.expert_size
    tables = np.where(architectures.tied, 1.0, 2.0)
    return ParameterGroups(
        attention=depth * (2.0 * d * x.query_dim + 2.0 * d * x.kv_dim),
        experts_total=expert * x.n_experts,
        experts_active=expert * x.top_k,
        shared_expert=depth * 3.0 * d * shared,
        router=depth * d * x.n_experts * x.sparse,
        small=depth * _small_per_layer(x) + d,
        embedding=tables * vocabulary * d,
    )


def _small_per_layer(x: Dimensions) -> FloatArray:
    """QK-norm (head: 2 d_h; full: d_q + d_m), QKV bias, shared gate, norms."""
    a = x.architectures
    head_dim = a.head_dim.astype(np.float64)
    by_code = {"no": 0.0 * head_dim, "head": 2.0 * head_dim, "full": x.query_dim + x.kv_dim}
    qk_norm = np.choose(a.qk_norm, [by_code[name] for name in QK_NORMS])
    small: FloatArray = (
        qk_norm + a.qkv_bias * (x.query_dim + 2.0 * x.kv_dim) + a.shared_gate * x.width + x.norms * x.width
    )
    return small


def total(architectures: Architectures) -> FloatArray:
    """All parameters; embeddings only with a vocabulary, (n,)."""
    g = count(architectures)
    return g.linear + g.router + g.small + g.embedding


def active(architectures: Architectures) -> FloatArray:
    """Parameters that one token uses: K of E experts, everything else whole, (n,)."""
    g = count(architectures)
    return g.attention + g.experts_active + g.shared_expert + g.router + g.small + g.embedding


def weights_gb(architectures: Architectures, scenario: Scenario) -> FloatArray:
    """The paper's memory [eq:memory_footprint]: linear weights · b_w, GB, (n,); never embeddings."""
    return count(architectures).linear * scenario.precision.weight_bytes / GB


def resident_parts_gb(architectures: Architectures, scenario: Scenario) -> dict[str, FloatArray]:
    """What must be held at once, GB by part, each (n,): weights, embeddings, KV cache, activations."""
    g, x, p = count(architectures), Dimensions(architectures), scenario.precision
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


def resident_gb(architectures: Architectures, scenario: Scenario) -> FloatArray:
    """Weights, embeddings, KV cache at full context and peak activations, GB, (n,)."""
    return sum(resident_parts_gb(architectures, scenario).values(), np.zeros(len(architectures)))


def weights_share(shares: PartAssessment) -> Share:
    """What a part adds to `weights_gb`."""
    return _weights_of_a_layer(shares).times(shares.scenario.precision.weight_bytes / GB)


def total_share(shares: PartAssessment) -> Share:
    """What a part adds to the number of all parameters."""
    return _weights_of_a_layer(shares) + _small_tensors(shares) + _embeddings(shares)


def active_share(shares: PartAssessment) -> Share:
    """What a part adds to the number of active parameters."""
    g, rest = count(shares.architectures), _small_tensors(shares) + _embeddings(shares)
    if shares.part == "ffn":
        return Share(per_layer=(g.experts_active + g.shared_expert,)) + rest
    return _weights_of_a_layer(shares) + rest


def body_share(shares: PartAssessment, *, active: bool) -> Share:
    """What a part adds to the number of (active) parameters without embeddings."""
    if active and shares.part == "ffn":
        g = count(shares.architectures)
        return Share(per_layer=(g.experts_active + g.shared_expert,)) + _small_tensors(shares)
    return _weights_of_a_layer(shares) + _small_tensors(shares)


def resident_share(shares: PartAssessment) -> Share:
    """What a part adds to `resident_gb`: weights, small tensors, embeddings, KV cache, activations."""
    scenario = shares.scenario
    p, x = scenario.precision, Dimensions(shares.architectures)
    batch, read = float(scenario.batch), float(scenario.input_tokens)
    tokens = batch * read * p.activation_bytes / GB
    share = weights_share(shares) + _small_tensors(shares).times(p.activation_bytes / GB)
    share += _embeddings(shares).times(scenario.head_bytes / GB)
    if shares.part == "base":
        scores = batch * x.n_heads * read**2 * p.activation_bytes / GB
        return share + Share(once=(tokens * 4.0 * x.width, scores * (scenario.attention == "unfused")))
    if shares.part == "attention":
        cache = 2.0 * batch * (read + scenario.output_tokens) * x.kv_dim * p.kv_bytes / GB
        return share + Share(per_layer=(cache,), once=(tokens * 2.0 * x.kv_dim,))
    shared = 0.0 if x.shared is None else x.shared
    return share + Share(once=(tokens * 2.0 * (x.activated_size + shared),))


def _weights_of_a_layer(shares: PartAssessment) -> Share:
    g = count(shares.architectures)
    if shares.part == "base":
        return Share()
    return Share(per_layer=(g.attention if shares.part == "attention" else g.experts_total + g.shared_expert,))


def _small_tensors(shares: PartAssessment) -> Share:
    """Norms, biases and gates go with attention, the final norm with the base, the router with the FFN."""
    g, width = count(shares.architectures), shares.architectures.width.astype(np.float64)
    if shares.part == "base":
        return Share(once=(width,))
    return Share(per_layer=(g.small - width if shares.part == "attention" else g.router,))


def _embeddings(shares: PartAssessment) -> Share:
    return Share(once=(count(shares.architectures).embedding,)) if shares.part == "base" else Share()
