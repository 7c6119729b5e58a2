"""Blocks that can take the place of a layer without training: narrower feed-forward, fewer KV heads, parts left out.

Source: the replacements of Puzzle (Bercovich et al. 2024, arXiv:2411.19146, section 3): grouped-query attention with fewer KV
heads, whose keys and values start as means of the parent's; feed-forward of fewer channels, those that contribute most; no
operation in place of either. Here they are not trained further, which makes the scores worse than Puzzle's.
"""

from dataclasses import dataclass
from typing import Any

WIDTHS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the feed-forward, shares of the parent's channels


@dataclass(frozen=True)
class Variant:
    """A block: its KV heads and feed-forward channels; 0 leaves the part out."""

    kv_heads: int
    channels: int

    @property
    def name(self) -> str:
        """In a few words."""
        attention = f"kv{self.kv_heads}" if self.kv_heads else "no_attention"
        return f"{attention} {f'ffn{self.channels}' if self.channels else 'no_ffn'}"

    def config(self) -> dict[str, Any]:
        """As Puzzletron's block_config."""
        return {
            "attention": {"no_op": not self.kv_heads, "num_key_value_heads": self.kv_heads or None},
            "ffn": {"no_op": not self.channels, "intermediate_size": self.channels or None},
        }


@dataclass(frozen=True)
class Shape:
    """The columns that decide the cost of a layer's parts."""

    width: int
    heads: int
    kv_heads: int
    head_dim: int
    channels: int
    bytes_per_weight: int

    @property
    def parent(self) -> Variant:
        """The layer's own block."""
        return Variant(self.kv_heads, self.channels)

    def variants(self) -> list[Variant]:
        """The parent's block first, then all others."""
        kv = [self.kv_heads, *([self.kv_heads // 2] if self.kv_heads % 2 == 0 else []), 0]
        channels = [round(self.channels * share) for share in WIDTHS]
        return [Variant(heads, width) for heads in kv for width in dict.fromkeys(channels)]

    def costs(self, variant: Variant) -> dict[str, float]:
        """Weights of the projections (norms and biases, the same or next to nothing, left out) and KV cache of 1,024 tokens."""
        attention = 2 * self.width * self.head_dim * (self.heads + variant.kv_heads) if variant.kv_heads else 0
        weights = attention + 3 * self.width * variant.channels
        cache = 2 * variant.kv_heads * self.head_dim * 1024 * self.bytes_per_weight
        return {
            "num_params": weights,
            "memory_mib": weights * self.bytes_per_weight / 2**20,
            "kv_cache_mib": cache / 2**20,
            "has_attention": int(variant.kv_heads > 0),
            "has_ffn": int(variant.channels > 0),
        }
