"""Fixtures of the search-space tests: the three spaces of the model page."""

from collections.abc import Callable
from typing import Any

import pytest

from search_spaces.space import SearchSpace


@pytest.fixture(scope="session")
def paper(shipped: Callable[[str, str], dict[str, Any]]) -> SearchSpace:
    """The shipped space `paper`."""
    return SearchSpace.from_mapping(shipped("search_spaces.spaces", "paper"))


@pytest.fixture(scope="session")
def fine() -> SearchSpace:
    """The model page's `fine`, written out here."""
    return SearchSpace.from_mapping(
        {
            "name": "fine",
            "axes": {
                "depth": {"from": 2, "to": 64},
                "width": {"from": 512, "to": 4096, "step": 64},
                "n_experts": [1, {"from": 4, "to": 128, "step": 4}],
                "top_k": {"from": 1, "to": 8},
                "expert_size": {"from": 32, "to": 16384, "step": 32},
                "n_kv_heads": "divisors",
            },
            "conditions": {"max_expert_ffn_ratio": 4},
        }
    )


@pytest.fixture(scope="session")
def huge() -> SearchSpace:
    """The model page's `huge`, written out here."""
    return SearchSpace.from_mapping(
        {
            "name": "huge",
            "axes": {
                "depth": {"from": 1, "to": 128},
                "width": {"from": 512, "to": 8192, "step": 64},
                "n_experts": {"from": 1, "to": 512},
                "top_k": {"from": 1, "to": 16},
                "expert_size": {"from": 8, "to": 32768, "step": 8},
                "n_kv_heads": "divisors",
            },
            "conditions": {"max_expert_ffn_ratio": 4},
        }
    )
