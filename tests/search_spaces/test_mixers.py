"""Mixers: designs that share one are alike in all that a layer's mixer is made of, those that share a plan in how many layers have it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from search_spaces.architectures import Architectures
from search_spaces.columns import CODED, SHAPE
from search_spaces.space import Mixers, SearchSpace

OF_FFN = ("n_experts", "top_k", "expert_size")
COUNTS = ("depth", "n_local", "n_kv_shared", "n_kv_shared_local", "n_linear", "n_conv", "norms_per_layer")
RULES = ["full", {"period": [2, 3], "local": [64, 128], "kv_shared": [0, 1]}, {"period": 2, "linear": "deltanet"}]
MIXED: dict[str, Any] = {
    "name": "mixed",
    "axes": {
        "depth": [2, 3, 5, 6],
        "layers": [*RULES, {"period": 3, "conv": 3}],
        "width": [128, 256],
        "head_dim": [32, 64],
        "n_heads": [2, 4, 8],
        "n_experts": [1, 4],
        "top_k": [1, 2],
        "expert_size": [64, 128],
        "n_kv_heads": [1, 2, "n_heads"],
    },
}


@pytest.mark.parametrize("name", ["paper", "fine", "heads", "edge2026", "mixed"])
def test_a_design_is_as_its_mixer_and_its_plan_say(name: str, shipped: Callable[[str, str], dict[str, Any]]) -> None:
    space = SearchSpace.from_mapping(MIXED if name == "mixed" else shipped("search_spaces.spaces", name))
    mixers, genotypes = Mixers(space), space.sample(2000, np.random.default_rng(0))
    mixer, plan = mixers.of(genotypes)
    designs = mixers.designs()
    assert space.is_canonical(designs).all()
    assert np.array_equal(mixers.of(designs[: len(mixers)])[0], np.arange(len(mixers)))
    assert np.array_equal(mixers.of(designs[len(mixers) :])[1], np.arange(len(space.layer_plans)))
    given, every = space.architectures(genotypes), space.architectures(designs)
    own = {*SHAPE, *CODED} - {*OF_FFN, *COUNTS}
    assert differing(given, every[mixer], own) == []
    assert differing(given, every[len(mixers) + plan], set(COUNTS)) == []


def differing(first: Architectures, second: Architectures, names: set[str]) -> list[str]:
    """Columns in which architectures differ."""
    return [name for name in sorted(names) if not np.array_equal(getattr(first, name), getattr(second, name))]
