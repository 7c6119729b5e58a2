"""The share of one part of an architecture (base, attention, FFN) in a quantity, and in its counts of parameters."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from objectives.counts import FULL_HEADS, count, full_heads
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part


@dataclass(frozen=True, eq=False)
class Share:
    """The share of one part in a quantity: `per_layer` and `once`, each a tuple of terms (n,)."""

    per_layer: tuple[FloatArray, ...] = ()
    once: tuple[FloatArray, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)((*self.per_layer, *other.per_layer), (*self.once, *other.once))

    def times(self, factor: float) -> Self:
        """Return the share of `factor` times the quantity; factor is positive."""
        per_layer = tuple(term * factor for term in self.per_layer)
        return type(self)(per_layer, tuple(term * factor for term in self.once))


def total_share(architectures: Architectures, part: Part) -> Share:
    """Return a part's share of all parameters."""
    of_layers = weights_of_a_layer(architectures, part) + small_tensors(architectures, part)
    tables = Share(once=(count(architectures).tables,)) if part == "base" else Share()
    return of_layers + embeddings(architectures, part) + tables


def active_share(architectures: Architectures, part: Part) -> Share:
    """Return a part's share of active parameters."""
    rest = small_tensors(architectures, part) + embeddings(architectures, part)
    if part == "ffn":
        return _active_ffn_of_a_layer(architectures) + rest
    return weights_of_a_layer(architectures, part) + rest


def count_share(architectures: Architectures, part: Part, name: str) -> Share:
    """Return a part's share of one of the loss law's counts, without embeddings."""
    if name == "attention_parameters":
        return weights_of_a_layer(architectures, part) if part == "attention" else Share()
    if name == "active_ffn_parameters":
        return _active_ffn_of_a_layer(architectures) if part == "ffn" else Share()
    if name.endswith(FULL_HEADS):
        return count_share(full_heads(architectures), part, name.removesuffix(FULL_HEADS))
    small = small_tensors(architectures, part)
    if name == "active_parameters" and part == "ffn":
        return _active_ffn_of_a_layer(architectures) + small
    return weights_of_a_layer(architectures, part) + small


def _active_ffn_of_a_layer(architectures: Architectures) -> Share:
    return Share(per_layer=(count(architectures).active_ffn,))


def weights_of_a_layer(architectures: Architectures, part: Part) -> Share:
    g = count(architectures)
    if part == "base":
        return Share()
    return Share(
        per_layer=(g.mixing / architectures.depth if part == "attention" else g.experts_total + g.shared_expert,)
    )


def small_tensors(architectures: Architectures, part: Part) -> Share:
    """Return norms, biases and gates with attention, the final norm with the base, the router with the FFN."""
    g, width = count(architectures), architectures.width.astype(np.float64)
    if part == "base":
        return Share(once=(width,))
    return Share(per_layer=((g.small - width) / architectures.depth if part == "attention" else g.router,))


def embeddings(architectures: Architectures, part: Part) -> Share:
    return Share(once=(count(architectures).embedding,)) if part == "base" else Share()
