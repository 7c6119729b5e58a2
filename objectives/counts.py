"""Parameters of an architecture, each group once."""

from dataclasses import dataclass

import numpy as np

from objectives.dimensions import Dimensions
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import QK_NORMS


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

    @property
    def total(self) -> FloatArray:
        """All parameters; embeddings only with a vocabulary."""
        return self.linear + self.router + self.small + self.embedding

    @property
    def active(self) -> FloatArray:
        """Parameters that one token uses: K of E experts, everything else whole."""
        return self.attention + self.experts_active + self.shared_expert + self.router + self.small + self.embedding


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
    return count(architectures).total


def attention(architectures: Architectures) -> FloatArray:
    """Parameters of the attention projections, l (2 d d_q + 2 d d_m), (n,)."""
    return count(architectures).attention


def active_ffn(architectures: Architectures) -> FloatArray:
    """Parameters of the FFN that one token uses, l · 3 d (K m + shared), (n,)."""
    g = count(architectures)
    return g.experts_active + g.shared_expert


def active(architectures: Architectures) -> FloatArray:
    """Parameters that one token uses: K of E experts, everything else whole, (n,)."""
    return count(architectures).active
