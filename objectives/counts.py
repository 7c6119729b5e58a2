"""Parameters of an architecture, each group once."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from weakref import WeakKeyDictionary

import numpy as np

from objectives.dimensions import Dimensions
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.columns import QK_NORMS

FULL_HEADS = "_of_full_heads"  # ends the count of a design with as many KV heads as heads: what KV heads cost, and no loss follows
_COUNTED: WeakKeyDictionary[Architectures, "ParameterGroups"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ParameterGroups:
    """Parameters per group over all layers, exact in float64 below 2^53, each (n,)."""

    attention: FloatArray
    mixers: FloatArray
    experts_total: FloatArray
    experts_active: FloatArray
    shared_expert: FloatArray
    dense: FloatArray
    router: FloatArray
    small: FloatArray
    embedding: FloatArray
    tables: FloatArray

    @property
    def layers(self) -> "ParameterGroups":
        """The same without embeddings."""
        nothing = np.zeros(len(self.embedding))
        return replace(self, embedding=nothing, tables=nothing)

    @property
    def mixing(self) -> FloatArray:
        """Parameters of attention projections and other mixers: l (2 d d_q + 2 d d_m) for attention."""
        return self.attention + self.mixers

    @property
    def active_ffn(self) -> FloatArray:
        """FFN parameters that one token uses, l · 3 d (K m + shared), and 3 d · size in dense layers."""
        return self.experts_active + self.shared_expert + self.dense

    @property
    def linear(self) -> FloatArray:
        """Weights of the linear operators, l (2 d d_q + 2 d d_m + 3 d m E + 3 d · shared) where every layer is alike."""
        return self.attention + self.mixers + self.experts_total + self.shared_expert + self.dense

    @property
    def total(self) -> FloatArray:
        """All parameters; embeddings only with a vocabulary."""
        return self.linear + self.router + self.small + self.embedding + self.tables

    @property
    def active(self) -> FloatArray:
        """Parameters that one token uses: K of E experts, no table of per-layer embeddings, everything else whole."""
        used = self.attention + self.mixers + self.experts_active + self.shared_expert + self.dense
        return used + self.router + self.small + self.embedding


def count(architectures: Architectures, x: Dimensions | None = None) -> ParameterGroups:
    """Return the parameters of each group: attention and other mixers, experts, router, norms and biases, embeddings.

    Those of a batch are kept as long as it lives, since many metrics of it count them. `x` are its dimensions where they are at hand.
    """
    found = _COUNTED.get(architectures)
    if found is None:
        several = architectures.in_layouts()
        counted = _of_layouts(architectures, several) if several else _counted(x or Dimensions(architectures))
        found = _COUNTED[architectures] = counted
    return found


def _of_layouts(architectures: Architectures, several: Sequence[IntArray]) -> ParameterGroups:
    """Parameters of architectures whose rows have several layouts."""
    columns = {each.name: np.zeros(len(architectures)) for each in fields(ParameterGroups)}
    for rows in several:
        for name, counted in vars(count(architectures[rows])).items():
            columns[name][rows] = counted
    return ParameterGroups(**columns)


def _of_layout(x: Dimensions, blocks: Sequence[Dimensions]) -> ParameterGroups:
    """Parameters of layers that differ: the sum over their blocks, with what stands once."""
    a, groups = x.architectures, [vars(count(block.architectures, block)) for block in blocks]
    columns = {each.name: sum(group[each.name] for group in groups) for each in fields(ParameterGroups)}
    vocabulary = a.vocabulary.astype(np.float64)
    columns["small"] += a.further_parameters + x.width - sum(block.width for block in blocks)
    columns["embedding"] = np.where(a.tied, 1.0, 2.0) * vocabulary * x.width
    columns["tables"] = np.where(vocabulary > 0, a.table_parameters, 0.0)
    return ParameterGroups(**columns)


def _counted(x: Dimensions) -> ParameterGroups:
    if x.layout is not None:
        return _of_layout(x, x.layout.blocks)
    a, d, kinds, none = x.architectures, x.width, x.kinds, np.zeros(len(x.architectures))
    shared = none if x.shared_expert_size is None else x.shared_expert_size
    vocabulary = none if x.vocabulary is None else x.vocabulary
    one = (x.before_activation + 1.0) * d
    expert = kinds.expert_layers * one * x.expert_size
    tables = np.where(a.tied, 1.0, 2.0)
    queries = 2.0 if x.attention_gate is None else 2.0 + x.attention_gate
    return ParameterGroups(
        attention=_attention(x, queries),
        mixers=none if kinds.alike else _mixers(x),
        experts_total=expert * x.n_experts,
        experts_active=expert * x.top_k,
        shared_expert=kinds.expert_layers * one * shared,
        dense=none if kinds.dense is None else a.n_dense * one * x.dense_size,
        router=kinds.expert_layers * d * x.n_experts * x.sparse,
        small=_small(x) + d,
        embedding=tables * vocabulary * d,
        tables=np.where(vocabulary > 0, a.table_parameters, 0.0),
    )


def _attention(x: Dimensions, queries: FloatArray | float) -> FloatArray:
    """Projections of attention, `queries` d d_q + 2 d d_m a layer; those of heads of full attention alone, and of latent attention.

    Latent, of n_h heads with r elements kept and c with position: r_q (d + d_q), or d d_q without r_q; d (r + c);
    r n_h (d_h − c) and r n_h d_v; n_h d_v d. An indexer of h heads of size i: r_q h i; d (i + h).
    """
    d, kinds = x.width, x.kinds
    found: FloatArray = kinds.attention_layers * queries * d * x.query_dim + kinds.own_kv_layers * 2.0 * d * x.kv_dim
    own, own_kv = kinds.own_headed_layers, kinds.own_headed_kv_layers
    if own is not None and own_kv is not None:
        found = found + own * queries * d * (x.full_query_dim - x.query_dim)
        found = found + own_kv * d * (x.full_kv_projections * x.full_kv_dim - 2.0 * x.kv_dim)
    if x.latent is not None:
        of_queries = np.where(x.latent_queries > 0, x.latent_queries * (d + x.query_dim), d * x.query_dim)
        of_latent = d * x.latent_kept + x.latent_size * (x.latent_plain + x.latent_values)
        each = of_queries + of_latent + x.latent_values * d
        if x.index_dim is not None:
            each = each + x.latent_queries * x.index_queries + d * (x.index_dim + x.architectures.index_heads)
        found = np.where(x.latent > 0, kinds.attention_layers * each, found)
    return found


def _mixers(x: Dimensions) -> FloatArray:
    """Projections of linear attention, d (projected + h_v d_v), and of short convolutions, 4 d²."""
    a, kinds = x.architectures, x.kinds
    return a.n_linear * x.width * (kinds.projected + kinds.inner) + a.n_conv * 4.0 * x.width * x.width


def _small(x: Dimensions) -> FloatArray:
    """QK-norm (head: 2 d_h; full: d_q + d_m), QKV bias, shared gate, norms, small tensors of other mixers, further ones.

    Layers that share a KV cache have norm and bias of the queries alone.
    """
    a, kinds = x.architectures, x.kinds
    attention, own_kv = kinds.attention_layers, kinds.own_kv_layers
    head_dim = a.head_dim.astype(np.float64)
    by_code = {
        "no": 0.0 * head_dim,
        "head": (attention + own_kv) * head_dim,
        "full": attention * x.query_dim + own_kv * x.kv_dim,
    }
    small: FloatArray = np.choose(a.qk_norm, [by_code[name] for name in QK_NORMS])
    small = small + a.qkv_bias * (attention * x.query_dim + 2.0 * own_kv * x.kv_dim)
    small = small + (a.shared_gate * kinds.expert_layers + x.depth * x.norms) * x.width
    if kinds.own_headed_layers is not None and kinds.own_headed_kv_layers is not None:
        more = a.full_head_dim - head_dim
        normed = (a.qk_norm == QK_NORMS.index("head")) * more
        small = small + (kinds.own_headed_layers + kinds.own_headed_kv_layers) * normed
    if x.latent is not None:
        small = small + attention * (x.latent_size + x.latent_queries)
    if x.index_dim is not None:
        small = small + attention * 2.0 * x.index_dim
    if not kinds.alike:
        small = small + a.n_linear * kinds.linear_small + a.n_conv * x.width * kinds.conv_kernel
    return small + a.further_parameters


def total(architectures: Architectures) -> FloatArray:
    """Return the number of all parameters, (n,); embeddings only with a vocabulary."""
    return count(architectures).total


def active(architectures: Architectures) -> FloatArray:
    """Return the parameters that one token uses, (n,): K of E experts, everything else whole."""
    return count(architectures).active


def full_heads(architectures: Architectures) -> Architectures:
    """Return the architectures with as many KV heads as heads."""
    return replace(architectures, n_kv_heads=architectures.n_heads)
