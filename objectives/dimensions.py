"""Columns of a batch as float64, the products that formulas share, and the bytes of the KV cache."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from objectives.layer_kinds import LayerKinds, as_floats, as_floats_if_any, floats, floats_if_any
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, derived
from search_spaces.columns import any_of, names_of
from search_spaces.layer_kinds import KIND_DEFAULTS, OF_BLOCKS, Block, read_blocks

#: Columns of which a block has nothing unless it says so: the other part of a layer, what stands once, sizes of other kinds.
NOTHING = {
    **{name: 0 for name in KIND_DEFAULTS if name not in ("ungated_ffn", "attention_gate")},
    "vocabulary": 0,
    "norms_per_layer": 1,
}
NO_MIXER = {"n_heads": 0, "n_kv_heads": 0, "head_dim": 0, "qk_norm": 0, "qkv_bias": 0, "attention_gate": 0}
NO_FFN = {"n_experts": 1, "top_k": 1, "expert_size": 0, "shared_expert_size": 0, "shared_gate": 0}


@dataclass(frozen=True, eq=False)
class Layout:
    """Architectures whose layers differ, split into blocks; each block is an architecture with these layers alone."""

    mixers: "tuple[Dimensions, ...]"
    ffns: "tuple[Dimensions, ...]"

    @property
    def blocks(self) -> "tuple[Dimensions, ...]":
        """Return all blocks."""
        return (*self.mixers, *self.ffns)

    def layers(self, depth: FloatArray) -> FloatArray:
        """Return the mean number of blocks per layer, (n,)."""
        counts: FloatArray = sum((block.depth for block in self.blocks), 0.0 * depth) / depth
        return counts


class Dimensions:
    """Float views of a batch's columns, each (n,), made when first used; products of integers stay exact.

    Of a column that few designs have: None if no row has it.
    """

    def __init__(self, architectures: Architectures) -> None:
        self.architectures = architectures

    depth = as_floats("depth")  # l
    width = as_floats("width")  # d
    n_heads = as_floats("n_heads")  # n_h
    query_dim = as_floats("query_dim")  # d_q
    kv_dim = as_floats("kv_dim")  # d_m
    n_experts = as_floats("n_experts")  # E
    top_k = as_floats("top_k")  # K
    expert_size = as_floats("expert_size")  # m = r_single · d
    dense_size = as_floats("dense_size")  # of the FFN in layers without experts
    latent_size = as_floats("latent_size")  # r, elements of the vector without position
    latent_queries = as_floats("latent_queries")  # of the latent vector of queries, 0 where these are projected at once
    vocabulary = as_floats_if_any("vocabulary")  # V
    shared_expert_size = as_floats_if_any("shared_expert_size")
    attention_gate = as_floats_if_any("attention_gate")  # 1 where attention has an output gate, else 0
    index_dim = as_floats_if_any("index_dim")  # features of the key with which an indexer chooses tokens

    @derived
    def layout(self) -> Layout | None:
        """The blocks that `layers` lists; None if all layers are as the columns say.

        Raises:
            ValueError: architectures of several layouts; a batch has one.
        """
        layers = self.architectures.layers
        if not any_of(layers):
            return None
        if self.architectures.in_layouts():
            raise ValueError("layers: expected one layout in a batch, got several; assess them apart")
        blocks = read_blocks(str(names_of(layers[:1])[0]))
        of = {place: tuple(self._of_block(each) for each in blocks if each.place == place) for place in OF_BLOCKS}
        return Layout(of["mixer"], of["ffn"])

    def _of_block(self, block: Block) -> "Dimensions":
        nothing: Mapping[str, int] = NOTHING | (NO_FFN if block.place == "mixer" else NO_MIXER)
        return Dimensions(self.architectures.with_values({**nothing, **block.columns, "depth": block.count}))

    def blocks(self, most: int) -> Iterator[tuple[slice, "Dimensions"]]:
        """Yield at most so many rows at a time with their indices."""
        n = len(self.architectures)
        for start in range(0, n, most):
            rows = slice(start, min(start + most, n))
            yield rows, self if n <= most else Dimensions(self.architectures[rows])

    @derived
    def activated_size(self) -> FloatArray:
        """K · m = r · d."""
        return self.top_k * self.expert_size

    @derived
    def sparse(self) -> FloatArray:
        """1 where E > 1, else 0."""
        return floats(self.architectures.n_experts > 1)

    @derived
    def kinds(self) -> LayerKinds:
        """Shares of layers of each kind."""
        return LayerKinds(self.architectures)

    @derived
    def own_heads(self) -> FloatArray | None:
        """1 where layers of full attention have their own heads, else 0; None if no row does."""
        return floats_if_any(self.architectures.full_head_dim > 0)

    @derived
    def full_query_dim(self) -> FloatArray:
        """Features of queries in layers of full attention with heads of their own."""
        return floats(self.architectures.n_heads * self.architectures.full_head_dim)

    @derived
    def full_kv_dim(self) -> FloatArray:
        """Features of keys, and of values, in such layers."""
        return floats(self.architectures.full_kv_heads * self.architectures.full_head_dim)

    @derived
    def full_kv_projections(self) -> FloatArray:
        """Projections of keys and values in such layers: 1 where one serves both, else 2."""
        return 2.0 - floats(self.architectures.keys_are_values)

    @derived
    def latent(self) -> FloatArray | None:
        """1 where attention keeps a latent vector, else 0; None when no row does."""
        return floats_if_any(self.architectures.latent_size > 0)

    @derived
    def latent_kept(self) -> FloatArray:
        """Elements that latent attention keeps of a token: r and the key's part with position."""
        return self.latent_size + floats(self.architectures.latent_rope)

    @derived
    def index_queries(self) -> FloatArray:
        """Features of an indexer's queries, summed over heads."""
        return floats(self.architectures.index_heads * self.architectures.index_dim)

    @derived
    def latent_plain(self) -> FloatArray:
        """n_h times a key's features without position."""
        return floats(self.architectures.n_heads * (self.architectures.head_dim - self.architectures.latent_rope))

    @derived
    def latent_values(self) -> FloatArray:
        """n_h times a value's features."""
        return floats(self.architectures.n_heads * self.architectures.value_dim)

    @derived
    def norms(self) -> FloatArray:
        """Norms per layer."""
        if self.layout is not None:
            return sum(block.norms * block.depth for block in self.layout.blocks) / self.depth
        return floats(self.architectures.norms_per_layer)

    @derived
    def residuals(self) -> FloatArray | float:
        """Residual additions per layer: one behind each mixer and each FFN."""
        return 2.0 if self.layout is None else self.layout.layers(self.depth)

    @derived
    def before_activation(self) -> FloatArray | float:
        """Matrices of an FFN before its activation: two with a gate, one without."""
        return 2.0 - floats(self.architectures.ungated_ffn) if any_of(self.architectures.ungated_ffn) else 2.0

    def touched_experts(self, tokens: float, overlap: float = 0.0) -> FloatArray:
        """Return A = E·(1 − (1 − K/E)^T'): expected distinct experts of T tokens under uniform routing, (n,).

        Where T' = 1 + (1 − overlap)(T − 1) of them choose independently. One token touches exactly K experts; a dense
        layer has one.
        """
        if tokens == 1:
            return self.top_k
        independent = 1.0 + (1.0 - overlap) * (tokens - 1.0)
        return self.n_experts * (1.0 - (1.0 - self.top_k / self.n_experts) ** independent)


def kv_cache_bytes(x: Dimensions, context: int, per_element: float) -> FloatArray:
    """Return 2 d_m for every token that a layer keeps (the context, or its window), times bytes, (n,).

    Of latent attention r + c, and an indexer's key; layers of full attention with heads of their own have their own d_m. `per_element` are B b_kv.
    """
    if x.layout is not None:
        return sum((kv_cache_bytes(block, context, per_element) for block in x.layout.mixers), 0.0 * x.depth)
    elements = 2.0 * x.kv_dim * x.kinds.kept_tokens(context)
    if x.kinds.own_headed_kv_layers is not None:
        elements = elements + x.kinds.own_headed_kv_layers * context * 2.0 * (x.full_kv_dim - x.kv_dim)
    if x.latent is not None:
        kept_of_a_token = x.latent_kept if x.index_dim is None else x.latent_kept + x.index_dim
        elements = np.where(x.latent > 0, x.kinds.own_kv_layers * context * kept_of_a_token, elements)
    kept: FloatArray = elements * per_element
    return kept
