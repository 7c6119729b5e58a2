"""Axes of what is none of the architecture: tokens, with every architecture of a space, in every answer that a space gives."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from search_spaces.architectures import Architectures
from search_spaces.space import SearchSpace

AXES: dict[str, Any] = {
    "depth": [2, 4],
    "width": [128, 256],
    "n_experts": [1, 4],
    "top_k": [1, 2],
    "expert_size": [64, 512, 1024],
    "n_kv_heads": [1, "n_heads"],
}
HEADS = {"head_dim": [32, 64], "n_heads": [2, 4, 8]}
TOKENS = [10**9, 3 * 10**9, 10**11]


def space(tokens: list[Any] | None = None, *, heads: bool = False) -> SearchSpace:
    """A space of a few architectures."""
    axes = {**AXES, **(HEADS if heads else {}), **({} if tokens is None else {"tokens": tokens})}
    return SearchSpace.from_mapping({"axes": axes, "conditions": {"max_expert_ffn_ratio": 4}})


@pytest.mark.parametrize("heads", [False, True])
def test_every_architecture_goes_with_every_number_of_tokens(heads: bool) -> None:
    plain, over = space(heads=heads), space(TOKENS, heads=heads)
    assert over.size == 3 * plain.size
    keys = np.arange(over.size)
    genotypes = over.genotypes(keys)
    assert over.genes == (*plain.genes, "tokens")
    np.testing.assert_array_equal(over.keys(genotypes), keys)
    assert over.is_canonical(genotypes).all()
    np.testing.assert_array_equal(genotypes[:, :-1], plain.genotypes(keys // 3))
    np.testing.assert_array_equal(over.find(over.architectures(genotypes)), keys)
    np.testing.assert_array_equal(over.architectures(genotypes).tokens, np.tile(TOKENS, plain.size))


def test_proposals_are_repaired_and_stepped_along_tokens_alone() -> None:
    over = space(TOKENS)
    wild = np.random.default_rng(0).integers(-3, 9, size=(500, len(over.genes)))
    repaired = over.repair(wild)
    assert over.is_canonical(repaired).all()
    np.testing.assert_array_equal(repaired[:, -1], np.clip(wild[:, -1], 0, 2))
    own = over.genotypes(np.array([1]))
    near = over.neighbours(own)
    along = near[(near[:, :-1] == own[:, :-1]).all(axis=1)]
    assert along[:, -1].tolist() == [0, 2]
    points = np.random.default_rng(1).random((300, len(over.genes)))
    assert over.is_canonical(over.spread(points)).all()
    assert set(over.spread(points)[:, -1].tolist()) == {0, 1, 2}


def test_one_setting_is_the_space_of_the_same_architectures() -> None:
    over = space(TOKENS)
    alone = over.at({"tokens": TOKENS[1]})
    assert (alone.size, alone.settings["tokens"].tolist()) == (over.size // 3, [TOKENS[1]])
    assert over.dense is not None
    assert over.dense.settings["tokens"].tolist() == TOKENS


def test_without_an_axis_tokens_of_a_design_are_passed_over() -> None:
    plain = space()
    columns = {
        name: column[:1] for name, column in plain.architectures(plain.genotypes(np.arange(3))).columns().items()
    }
    trained = Architectures.from_columns({**columns, "tokens": [5 * 10**9]})
    assert plain.find(trained).tolist() == [0]
    assert space(TOKENS).find(trained).tolist() == [-1]


def test_tokens_are_whole_numbers_as_yaml_has_them() -> None:
    assert space([1e9, 3e9]).settings["tokens"].tolist() == [10**9, 3 * 10**9]
    assert space([10**18]).settings["tokens"].tolist() == [10**18]


@pytest.mark.parametrize(
    ("tokens", "fault"),
    [
        ([1.5], "valid integer"),
        ([0], "greater than or equal to 1"),
        ([10**19], "less than or equal to"),
        ([1e9, 10**9], "expected distinct values"),
        ([], "expected at least one value"),
    ],
)
def test_what_is_no_axis_of_tokens_is_refused(tokens: list[Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        space(tokens)


def test_a_space_without_settings_is_as_it_was() -> None:
    plain = space()
    assert plain.settings == {}
    assert plain.n_settings == 1
    assert "tokens" not in plain.mapping()["axes"]
