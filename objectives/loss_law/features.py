"""Quantities that a loss law may depend on: of an architecture, or of its training (tokens)."""

from collections.abc import Callable
from operator import attrgetter
from types import MappingProxyType
from typing import Literal

import numpy as np

from objectives.counts import FULL_HEADS, ParameterGroups, count, full_heads
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
        "head_dim": "attention",
        "n_experts": "ffn",
        "top_k": "ffn",
        "activation_rate": "ffn",
        "expert_ffn_ratio": "ffn",
        "ffn_ratio": "ffn",
        "granularity": "ffn",
        "expansion_rate": "ffn",
        "parameters": "whole",
        "active_parameters": "whole",
        "attention_parameters": "whole",
        "active_ffn_parameters": "whole",
        "ffn_attention_ratio": "whole",
        "normalised_width": "whole",
        "aspect_ratio": "whole",
        "query_ratio": "whole",
        "stored_per_active": "whole",
        "kv_ratio": "whole",
        "parameters_with_embeddings": "whole",
        "active_parameters_with_embeddings": "whole",
        "parameters_of_full_heads": "whole",
        "active_parameters_of_full_heads": "whole",
        "tokens": "training",
        "tokens_per_parameter": "training",
    }
)
MOVED_BY: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "n_experts": ("n_experts",),
        "activation_rate": ("n_experts",),
        "expert_ffn_ratio": ("expert_size",),
        "ffn_ratio": ("expert_size",),
        "granularity": ("expert_size",),
        "expansion_rate": ("n_experts", "expert_size"),
    }
)  # the axes that a quantity of the FFN follows while width and top_k stay
COUNTS: dict[str, Callable[[ParameterGroups], FloatArray]] = {
    "parameters": attrgetter("total"),
    "active_parameters": attrgetter("active"),
    "attention_parameters": attrgetter("mixing"),
    "active_ffn_parameters": attrgetter("active_ffn"),
    f"parameters{FULL_HEADS}": attrgetter("total"),
    f"active_parameters{FULL_HEADS}": attrgetter("active"),
}
WITH_EMBEDDINGS = {f"{name}_with_embeddings": COUNTS[name] for name in ("parameters", "active_parameters")}
MADE_OF: MappingProxyType[str, MappingProxyType[str, float]] = MappingProxyType(
    {
        "ffn_attention_ratio": MappingProxyType({"active_ffn_parameters": 1.0, "attention_parameters": -1.0}),
        "normalised_width": MappingProxyType({"width": 1.0, "active_parameters": -0.5}),
        "aspect_ratio": MappingProxyType({"width": 1.0, "depth": -1.0}),
        "tokens_per_parameter": MappingProxyType({"tokens": 1.0, "active_parameters": -1.0}),
        "stored_per_active": MappingProxyType({"parameters": 1.0, "active_parameters": -1.0}),
        "query_ratio": MappingProxyType({"query_dim": 1.0, "width": -1.0}),
        "kv_ratio": MappingProxyType({"kv_dim": 1.0, "width": -1.0}),
    }
)  # quantities that are products of powers of others, among them r of Bian et al. 2025, and their d/√N
FOLLOWING = (  # quantities that say nothing beside the others
    *("granularity", "expansion_rate", "attention_parameters", "active_ffn_parameters"),
    *("parameters_of_full_heads", "active_parameters_of_full_heads"),
    *WITH_EMBEDDINGS,
    *MADE_OF,
)
OF_TRAINING = ("tokens", "tokens_per_parameter")
STANDARD_FFN = 4  # d_ff / d of the dense FFN that granularity and expansion are counted in


def part_of(name: str) -> Part | None:
    """The part of an architecture that alone decides a quantity beside the width, which every part knows; None where several do."""
    owners = {OWNERS.get(made, "whole") for made in MADE_OF.get(name, {name: 1.0}) if made != "width"} or {"base"}
    found = owners.pop()
    return found if not owners and found in ("base", "attention", "ffn") else None


def feature(architectures: Architectures, name: str, vocabulary: int = 0, *, tied: bool = True) -> FloatArray:
    """One quantity of each architecture, (n,); `vocabulary` is that of the embeddings in counts with embeddings.

    Granularity is 4d/m, the expansion rate E·m/(4d), as Krajewski et al. 2024 count them.
    """
    if name in MADE_OF:
        made: FloatArray = np.ones(len(architectures))
        for part, power in MADE_OF[name].items():
            made = made * feature(architectures, part) ** power
        return made
    if name in COUNTS:
        counted = full_heads(architectures) if name.endswith(FULL_HEADS) else architectures
        return COUNTS[name](count(counted).layers)
    if name in WITH_EMBEDDINGS:
        return WITH_EMBEDDINGS[name](count(architectures.with_vocabulary(vocabulary, tied=tied)))
    if name in ("granularity", "expansion_rate"):
        return _in_standard_ffns(architectures, name)
    column: FloatArray = np.asarray(getattr(architectures, name), dtype=np.float64)
    return column


def _in_standard_ffns(architectures: Architectures, name: str) -> FloatArray:
    width, size = (np.asarray(column, dtype=np.float64) for column in (architectures.width, architectures.expert_size))
    return (
        STANDARD_FFN * width / size
        if name == "granularity"
        else architectures.n_experts * size / (STANDARD_FFN * width)
    )
