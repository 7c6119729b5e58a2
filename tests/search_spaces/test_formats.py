"""Precision as an axis of a space: canonical genotypes, exact counts, one format alone."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from search_spaces.architectures import Architectures
from search_spaces.columns import PRECISIONS, worded
from search_spaces.space import SearchSpace

AXES: dict[str, Any] = {
    "depth": [4, 8],
    "width": [512, 1024],
    "n_experts": [1, 4],
    "top_k": [1, 2],
    "expert_ffn_ratio": [0.5, 1],
    "n_kv_heads": [1, "n_heads"],
}


def space(precision: list[str] | None, **axes: Any) -> SearchSpace:
    """A small space with these formats."""
    return SearchSpace.from_mapping({"axes": {**AXES, **axes, **({"precision": precision} if precision else {})}})


@pytest.mark.parametrize("axes", [{}, {"n_heads": [4, 8, 16], "head_dim": [64, 128]}])
def test_every_design_has_one_genotype_and_one_key_in_their_order(axes: dict[str, Any]) -> None:
    plain, own = space(None, **axes), space(["int4", "fp16", "int8"], **axes)
    assert own.size == 3 * plain.size
    every = own.genotypes(np.arange(own.size))
    assert own.keys(every).tolist() == list(range(own.size))
    assert own.is_canonical(every).all()
    assert sorted(map(tuple, every.tolist())) == list(map(tuple, every.tolist()))
    architectures = own.architectures(every)
    assert own.find(architectures).tolist() == list(range(own.size))
    rows = {tuple(row) for row in zip(*(column.tolist() for column in architectures.columns().values()), strict=True)}
    assert len(rows) == own.size


def test_formats_are_listed_in_one_order_and_read_back() -> None:
    own = space(["int4", "fp16"])
    assert own.formats == ["fp16", "int4"]
    assert own.mapping()["axes"]["precision"] == ["fp16", "int4"]
    drawn = own.architectures(own.sample(20, np.random.default_rng(0)))
    told = Architectures.from_columns({**drawn.columns()})
    np.testing.assert_array_equal(told.precision, drawn.precision)
    assert set(worded("precision", drawn.precision)) == {"fp16", "int4"}


def test_a_space_at_one_format_holds_its_designs() -> None:
    own = space(["fp16", "int4"])
    alone = own.at({"precision": PRECISIONS.index("int4")})
    assert 2 * alone.size == own.size
    assert set(worded("precision", alone.architectures(alone.genotypes(np.arange(alone.size))).precision)) == {"int4"}
    inside = own.find(alone.architectures(alone.genotypes(np.arange(alone.size))))
    assert (inside >= 0).all()
    plain = space(None)
    np.testing.assert_array_equal(
        plain.find(own.architectures(own.genotypes(np.arange(own.size))))[::2], np.arange(plain.size)
    )


def test_steps_and_repairs_keep_to_the_formats() -> None:
    own = space(["fp16", "int8", "int4"])
    gene = own.place["precision"]
    first = own.genotypes(np.array([0]))
    near = own.neighbours(first)
    assert near[:, gene].max() == 1
    wild = np.full((1, len(own.genes)), 99)
    assert own.repair(wild)[0, gene] == 2
    assert own.dense is not None
    assert own.dense.formats == own.formats


@pytest.mark.parametrize(("given", "said"), [(["int9"], "int9"), ([], "at least one"), (["int4", "int4"], "each once")])
def test_other_formats_are_refused_by_name(given: list[str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SearchSpace.from_mapping({"axes": {**AXES, "precision": given}})


def test_examples_hold_every_value_of_each_setting_beside_the_first_design() -> None:
    layers = ["full", {"period": 2, "local": 256}]
    there = space(["fp16", "q4_k_m"], tokens=[10**9, 10**10], layers=layers, depth=[2, 8])
    examples = {axis: there.architectures(genotypes) for axis, genotypes in there.examples.items()}
    assert {axis: len(found) for axis, found in examples.items()} == {"": 3, "layers": 2, "precision": 2, "tokens": 2}
    assert examples["layers"].n_local.tolist() == [0, 4]  # no mix of two layers
    assert examples["tokens"].tokens.tolist() == [10**9, 10**10]
    assert all(there.is_canonical(genotypes).all() for genotypes in there.examples.values())
