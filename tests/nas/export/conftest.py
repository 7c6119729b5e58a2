"""Fixtures of the export tests: models to export, and whether transformers is here."""

from collections.abc import Callable
from typing import Any

import pytest

from nas.export.model import Model, Workload
from nas.export.recipe import load_recipe
from nas.export.tokenizer import byte_level
from search_spaces.architectures import Architectures, one

SMALL: dict[str, Any] = {"depth": 2, "width": 128, "n_kv_heads": 1, "expert_size": 96, "vocabulary": 300}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip by name what needs transformers where it is not installed."""
    # Here, since the packages' tests load this file where `tests` cannot be imported.
    from tests.nas.extras import skip_without_hf

    skip_without_hf(items, "transformers")


@pytest.fixture(scope="session")
def small() -> dict[str, dict[str, Any]]:
    """A small architecture of every Hugging Face class, by what it tries."""
    experts = {**SMALL, "n_experts": 4}
    return {
        "dense": SMALL,
        "top1": experts,
        "top2": {**experts, "top_k": 2},
        "untied": {**SMALL, "tied": False},
        "qwen2": {**SMALL, "qk_norm": "no", "qkv_bias": True},
        "llama": {**SMALL, "qk_norm": "no", "n_kv_heads": 2},
        "wide heads": {**SMALL, "head_dim": 32, "n_heads": 8, "n_kv_heads": 2},
    }


@pytest.fixture(scope="session")
def exported() -> Callable[..., Model]:
    """A model to export, from an architecture or its columns."""

    def build(given: "Architectures | dict[str, Any]", recipe: str = "paper", **options: Any) -> Model:
        architecture = given if isinstance(given, Architectures) else one(given)
        settings = {"tokenizer": byte_level(), "workload": Workload(1, 64, 8), **options}
        return Model("x", "x", architecture, recipe=load_recipe(recipe), **settings)

    return build
