"""Quantities that a loss law may depend on: of an architecture, or of its training (tokens)."""

from types import MappingProxyType
from typing import Literal

import numpy as np

from objectives.counts import active, active_ffn, attention, total
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import Part

Owner = Part | Literal["whole", "training"]
OWNERS: MappingProxyType[str, Owner] = MappingProxyType(
    {
        "depth": "base",
        "width": "base",
        "kv_dim": "attention",
        "query_dim": "attention",
        "n_experts": "ffn",
        "top_k": "ffn",
        "activation_rate": "ffn",
        "expert_ffn_ratio": "ffn",
        "ffn_ratio": "ffn",
        "parameters": "whole",
        "active_parameters": "whole",
        "attention_parameters": "whole",
        "active_ffn_parameters": "whole",
        "ffn_attention_ratio": "whole",
        "normalised_width": "whole",
        "tokens": "training",
    }
)
MOVED_BY: MappingProxyType[str, str] = MappingProxyType(
    {
        "n_experts": "n_experts",
        "activation_rate": "n_experts",
        "expert_ffn_ratio": "expert_size",
        "ffn_ratio": "expert_size",
    }
)  # the axis that a quantity of the FFN follows while width and top_k stay
COUNTS = {
    "parameters": total,
    "active_parameters": active,
    "attention_parameters": attention,
    "active_ffn_parameters": active_ffn,
}
MADE_OF: MappingProxyType[str, MappingProxyType[str, float]] = MappingProxyType(
    {
        "ffn_attention_ratio": MappingProxyType({"active_ffn_parameters": 1.0, "attention_parameters": -1.0}),
        "normalised_width": MappingProxyType({"width": 1.0, "active_parameters": -0.5}),
    }
)  # quantities that are products of powers of others: r of Bian et al. 2025, and their d/√N
CONSEQUENCES = (*MADE_OF, "attention_parameters", "active_ffn_parameters")  # no factors of a design of their own


def feature(architectures: Architectures, name: str) -> FloatArray:
    """One quantity of each architecture, (n,); parameters are counted without embeddings."""
    if name in MADE_OF:
        made: FloatArray = np.ones(len(architectures))
        for part, power in MADE_OF[name].items():
            made = made * feature(architectures, part) ** power
        return made
    if name in COUNTS:
        return COUNTS[name](architectures.with_vocabulary(0))
    column: FloatArray = np.asarray(getattr(architectures, name), dtype=np.float64)
    return column
