"""Layers of several kinds: the share of an architecture's layers of each kind, and the sizes of linear attention.

A cost of a layer is the mean over all layers, so that depth times it is the cost of all: an operator that some layers
have counts with their share. Where every layer is alike shares are exactly 1 and 0.
"""

from typing import Any

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray, derived
from search_spaces.columns import any_of
from search_spaces.layer_kinds import LINEAR_KINDS

SCAN_FLOPS = {"no": 0.0, "deltanet": 7.0, "mamba2": 5.0}  # per token and element of the state: decay, update, read-out
STATE_BYTES = 4.0  # a recurrence is kept in 32 bits


def floats(column: AnyArray) -> FloatArray:
    """A column as floats, (n,)."""
    return np.ascontiguousarray(column, dtype=np.float64)


def floats_if_any(column: AnyArray) -> FloatArray | None:
    """A column as floats, (n,); None if no row has anything."""
    return floats(column) if any_of(column) else None


def as_floats(name: str) -> derived[Any, FloatArray]:
    """The `architectures`' column of that name as floats, made when first used."""

    def column(x: Any) -> FloatArray:
        return floats(getattr(x.architectures, name))

    column.__name__ = name
    return derived(column)


def as_floats_if_any(name: str) -> derived[Any, FloatArray | None]:
    """The same; None if no row has anything."""

    def column(x: Any) -> FloatArray | None:
        return floats_if_any(getattr(x.architectures, name))

    column.__name__ = name
    return derived(column)


def as_share(name: str, layers: str) -> derived[Any, FloatArray | None]:
    """The share of the layers that a column counts."""

    def share(kinds: Any) -> FloatArray | None:
        found: FloatArray | None = kinds._share(getattr(kinds.architectures, layers))
        return found

    share.__name__ = name
    return derived(share)


class LayerKinds:
    """Shares of the layers, each (n,); 1.0 if every layer of every row is of the kind, None if none is."""

    def __init__(self, architectures: Architectures) -> None:
        self.architectures = architectures
        self.depth: FloatArray = architectures.depth.astype(np.float64)

    linear = as_share("linear", "n_linear")
    conv = as_share("conv", "n_conv")
    dense = as_share("dense", "n_dense")  # with the dense FFN of a mixture of experts
    shared_kv = as_share("shared_kv", "n_kv_shared")  # that read the KV cache of another one
    window = as_floats("window")  # tokens that a layer with a sliding window attends to
    linear_kernel = as_floats("linear_kernel")  # taps of the causal convolution
    conv_kernel = as_floats("conv_kernel")  # taps of a short convolution

    @property
    def alike(self) -> bool:
        """True if every layer of every row is attention."""
        return self.linear is None and self.conv is None

    @property
    def attention(self) -> FloatArray | float:
        """Layers of attention, full or within a window."""
        return self._part(self.attention_layers)

    @property
    def own_kv(self) -> FloatArray | float:
        """Layers of attention that project and keep keys and values."""
        return self._part(self.own_kv_layers)

    @property
    def experts(self) -> FloatArray | float:
        """Layers whose FFN is that of n_experts, top_k and expert_size."""
        return self._part(self.expert_layers)

    @derived
    def attention_layers(self) -> FloatArray:
        """Number of layers of attention, (n,)."""
        return self._left(self.architectures.n_linear, self.architectures.n_conv)

    @derived
    def own_kv_layers(self) -> FloatArray:
        """Number of attention layers with their own keys and values, (n,)."""
        a = self.architectures
        return self._left(a.n_linear, a.n_conv, a.n_kv_shared)

    @derived
    def own_headed_layers(self) -> FloatArray | None:
        """Number of full-attention layers with their own heads, (n,); None if no row has any."""
        a = self.architectures
        return floats(a.n_full * (a.full_head_dim > 0)) if any_of(a.full_head_dim) else None

    @derived
    def own_headed_kv_layers(self) -> FloatArray | None:
        """Number of such layers with their own keys and values, (n,)."""
        a, found = self.architectures, self.own_headed_layers
        return None if found is None else found - floats((a.n_kv_shared - a.n_kv_shared_local) * (found > 0))

    @derived
    def expert_layers(self) -> FloatArray:
        """Number of layers whose FFN is that of n_experts, top_k and expert_size, (n,)."""
        return self._left(self.architectures.n_dense)

    def local(self, context: int) -> FloatArray | None:
        """Layers whose window is shorter than a context; a window that is never left is full attention."""
        return self._share(self._inside(context))

    def full(self, context: int) -> FloatArray | float:
        """Share of layers that attend to the whole context."""
        a = self.architectures
        return self._part(self._left(self._inside(context), a.n_linear, a.n_conv))

    def kept_tokens(self, context: int) -> FloatArray:
        """Tokens of a context that all KV caches together keep, Σ over layers with a cache."""
        a = self.architectures
        if not any_of(a.n_local):
            return self.own_kv_layers * float(context)
        local = a.n_local - a.n_kv_shared_local
        kept: FloatArray = (self.own_kv_layers - local) * float(context)
        return kept + local * np.minimum(self.window, float(context))

    def keys_of_a_token(self, context: int) -> FloatArray:
        """Mean number of keys that a token of a causal sequence attends to, Σ over the layers of attention."""
        whole, inside = (context + 1) / 2.0, self._inside(context)
        if not any_of(inside):
            return self.attention_layers * whole
        window = np.minimum(self.window, float(context))
        seen = (window * (window + 1.0) / 2.0 + (context - window) * window) / context
        keys: FloatArray = (self.attention_layers - inside) * whole + inside * seen
        return keys

    def _inside(self, context: int) -> IntArray:
        a = self.architectures
        return a.n_local * (a.window < context) if any_of(a.n_local) else a.n_local

    def _share(self, layers: IntArray) -> FloatArray | None:
        return layers / self.depth if any_of(layers) else None

    def _left(self, *others: IntArray) -> FloatArray:
        """The layers that are none of the others; where none is, the depth itself."""
        mixed = [each for each in others if any_of(each)]
        return self.depth - sum(mixed) if mixed else self.depth

    def _part(self, layers: FloatArray) -> FloatArray | float:
        return 1.0 if layers is self.depth else layers / self.depth

    # Linear attention: h_v heads of d_k · d_v with h_k heads of keys (Mamba2: heads of d_v, groups, state size d_k)

    @derived
    def inner(self) -> FloatArray:
        """h_v · d_v, features that a layer of linear attention works on."""
        return floats(self.architectures.linear_heads * self.architectures.linear_value_dim)

    @derived
    def channels(self) -> FloatArray:
        """2 h_k d_k + h_v d_v: queries, keys and values, which pass a causal convolution."""
        a = self.architectures
        return floats(2 * a.linear_key_heads * a.linear_key_dim) + self.inner

    @derived
    def projected(self) -> FloatArray:
        """Features that the input is projected to: the channels, a gate of h_v d_v, and per head a step (Gated DeltaNet: two)."""
        a = self.architectures
        per_head = np.where(a.linear_kind == LINEAR_KINDS.index("deltanet"), 2, 1)
        return self.channels + self.inner + floats(per_head * a.linear_heads)

    @derived
    def state(self) -> FloatArray:
        """h_v · d_k · d_v, elements of a sequence's recurrence."""
        return floats(self.architectures.linear_key_dim) * self.inner

    @derived
    def scan_flops(self) -> FloatArray:
        """FLOPs per token and element of the state."""
        return np.array([SCAN_FLOPS[name] for name in LINEAR_KINDS])[self.architectures.linear_kind]

    @derived
    def linear_small(self) -> FloatArray:
        """Weights of a layer of linear attention outside its projections: convolution, steps, decays, norm.

        Gated DeltaNet: c·L + 2 h_v + d_v. Mamba2: c·(L + 1) + 3 h_v + h_v d_v, with the convolution's bias and D.
        """
        a, taps = self.architectures, self.channels * self.linear_kernel
        heads, value_dim = floats(a.linear_heads), floats(a.linear_value_dim)
        deltanet, mamba2 = taps + 2.0 * heads + value_dim, taps + self.channels + 3.0 * heads + self.inner
        return np.choose(a.linear_kind, [np.zeros(len(a)), deltanet, mamba2])
