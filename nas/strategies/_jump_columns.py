"""Columns of what jumps from design to design: effects of axis values, dimensions that fit no tile, bytes that pass a size."""

from dataclasses import dataclass

import numpy as np

from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray

MOST_VALUES = 48  # of an axis with a column each; of more, values are taken together
TOGETHER = 12  # ranges of such an axis
TILES = (128, 256, 512)
SIZES = 16  # places at which bytes may pass a size, spread over the designs of a reference


@dataclass(frozen=True, eq=False)
class Ranges:
    """One variable cut at ascending places, (r − 1,), midway between its values where these are few."""

    cuts: FloatArray

    @classmethod
    def of_values(cls, column: FloatArray) -> "Ranges":
        """A range of every value of a reference (n,), or ranges of several values with as many designs."""
        values = np.unique(column)
        if len(values) <= MOST_VALUES:
            return cls((values[1:] + values[:-1]) / 2.0)
        return cls.of_quantiles(column, TOGETHER)

    @classmethod
    def of_quantiles(cls, column: FloatArray, count: int) -> "Ranges":
        """So many ranges of a reference (n,), of fewer values a range each."""
        values = np.unique(column)
        inner = np.quantile(column, np.arange(1, count) / count, method="lower")
        places = np.unique(np.searchsorted(values, inner, side="right"))
        places = places[places < len(values)]
        return cls((values[places] + values[places - 1]) / 2.0)

    def one_hot(self, column: FloatArray) -> FloatArray:
        """1 in the range of each value, else 0, (n, r)."""
        place = np.searchsorted(self.cuts, column)
        found: FloatArray = (place[:, None] == np.arange(len(self.cuts) + 1)).astype(np.float64)
        return found

    def passed(self, column: FloatArray) -> FloatArray:
        """0.5 from each cut on, −0.5 below, (n, r − 1)."""
        return np.where(column[:, None] > self.cuts, 0.5, -0.5)


class Jumps:
    """Columns of jumps over the dimensions and bytes that vary over a reference."""

    def __init__(self, reference: Architectures) -> None:
        tiles = fits(reference)
        self.varying: BoolArray = (tiles != tiles[:1]).any(axis=0)
        self.sizes = [Ranges.of_quantiles(column, SIZES) for column in logs_of_bytes(reference).T]

    def aligned(self, architectures: Architectures) -> FloatArray:
        """Whether dimensions are multiples of tiles, and heads are of a kind of their own, ±0.5, (n, k)."""
        found: FloatArray = fits(architectures)[:, self.varying]
        return found

    def passed(self, architectures: Architectures) -> FloatArray:
        """Which sizes bytes have passed, ±0.5, (n, k): weights of normal steps are a Brownian function of the bytes."""
        columns = logs_of_bytes(architectures).T
        return np.concatenate([size.passed(column) for size, column in zip(self.sizes, columns, strict=True)], axis=1)


def fits(a: Architectures) -> FloatArray:
    """±0.5, (n, k): width, FFN, KV and query dimensions by tile, heads by 8; one KV head, one for each head, several experts active."""
    dimensions = (a.width, a.expert_size, a.kv_dim, a.query_dim)
    tiles = [column % tile == 0 for column in dimensions for tile in TILES]
    others = [a.n_heads % 8 == 0, a.n_kv_heads == 1, a.n_kv_heads == a.n_heads, a.top_k > 1, a.n_experts > 1]
    return np.where(np.stack([*tiles, *others], axis=1), 0.5, -0.5)


def logs_of_bytes(a: Architectures) -> FloatArray:
    """Logarithms of weights that are read again and again: of an expert, active ones of a layer, of all layers, all there are; of the KV cache, (n, 5)."""
    expert = 3.0 * a.width * a.expert_size
    attention = a.width * (2.0 * a.query_dim + 2.0 * a.kv_dim)
    layer = attention + expert * a.top_k
    whole = a.depth * (attention + expert * a.n_experts)
    found: FloatArray = np.log(np.stack([expert, layer, layer * a.depth, whole, 1.0 * a.depth * a.kv_dim], axis=1))
    return found
