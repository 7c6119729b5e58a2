"""Query heads of a space: which head sizes and numbers of heads stand beside which widths."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.arrays import BoolArray, IntArray

ROUNDING = 1e-12  # relative; so that a ratio written in decimals holds what it says


@dataclass(frozen=True, eq=False)
class Heads:
    """n_heads of every (width, head size, value of the axis n_heads), and which of them are valid, each (W, H, N).

    Without an axis of n_heads N is 1 and its value width / head_dim, valid where that is whole.
    """

    values: IntArray
    valid: BoolArray

    @classmethod
    def from_axes(
        cls,
        widths: Sequence[int],
        head_dims: Sequence[int],
        n_heads: Sequence[int] | None,
        ratios: tuple[float, float],
    ) -> "Heads":
        """All of them; `ratios` are the least and the largest d_q / d of an axis of n_heads."""
        width, size = np.array(widths, dtype=np.int64)[:, None, None], np.array(head_dims, dtype=np.int64)[:, None]
        if n_heads is None:
            return cls(width // size, width % size == 0)
        values = np.broadcast_to(np.array(n_heads, dtype=np.int64), (len(widths), len(head_dims), len(n_heads)))
        queries, (least, most) = values * size, ratios
        return cls(values, (queries >= least * (1 - ROUNDING) * width) & (queries <= most * (1 + ROUNDING) * width))

    @cached_property
    def used(self) -> IntArray:
        """Every number of heads that some width has, ascending."""
        return np.unique(self.values[self.valid])

    def divided_by(self, kv_heads: Sequence[int]) -> "Heads":
        """The same without numbers of heads that none of these numbers of KV heads divides."""
        fitting = np.array([heads for heads in self.used.tolist() if any(heads % kv == 0 for kv in kv_heads)])
        return Heads(self.values, self.valid & np.isin(self.values, fitting))
