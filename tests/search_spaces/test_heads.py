"""Spaces with axes of head size and of n_heads, against every combination tried in plain Python."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nas.files.faults import Faults
from search_spaces.architectures import architectures_of, one
from search_spaces.columns import SHAPE
from search_spaces.space import SearchSpace
from search_spaces.specification import SpaceSpecification, count

NAMES = ("depth", "width", "head_dim", "n_heads", "n_experts", "top_k", "expert_size", "n_kv_heads")
Row = tuple[int, ...]
BASE: dict[str, Any] = {"depth": [2, 5], "n_experts": [1, 4], "top_k": [1, 2], "expert_size": [64, 160]}


def some(values: list[int]) -> st.SearchStrategy[list[int]]:
    """A few distinct values in any order."""
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True)


@st.composite
def mappings(draw: st.DrawFn) -> dict[str, Any]:
    """Spaces with an axis of head_dim, of n_heads, or of both; some of them impossible."""
    free, sizes = draw(st.sampled_from([(True, False), (True, True), (False, True)]))
    axes = {**BASE, "width": draw(some([128, 192, 256, 320, 512]))}
    axes |= {"n_heads": draw(some([1, 2, 3, 4, 6, 8, 12, 16]))} if free else {}
    axes |= {"head_dim": draw(some([16, 32, 64, 96, 128]))} if sizes else {}
    axes["n_kv_heads"] = draw(st.sampled_from(["divisors", [1, 2, 3], ["n_heads"], [2, "n_heads"], [2, 5]]))
    limits = {"max_expert_ffn_ratio": 1, **({"min_query_ratio": 0.5, "max_query_ratio": 2} if free else {})}
    conditions = {name: ratio for name, ratio in limits.items() if draw(st.booleans())}
    return {"axes": axes, "conditions": conditions, **({} if sizes else {"head_dim": 64})}


def rows(mapping: dict[str, Any]) -> list[Row]:
    """Every valid architecture, in the order of the genes; none where some width has none."""
    axes, limits = mapping["axes"], mapping["conditions"]
    least, most = limits.get("min_query_ratio", 0), limits.get("max_query_ratio", 1e9)
    found = set()
    for depth, width, size, e, k, m in itertools.product(
        *(axes[name] for name in ("depth", "width")),
        axes.get("head_dim", [64]),
        *(axes[name] for name in ("n_experts", "top_k", "expert_size")),
    ):
        if not (k < e or e == k == 1) or m > limits.get("max_expert_ffn_ratio", 1e9) * width:
            continue
        for heads in axes.get("n_heads", [width // size] if width % size == 0 else []):
            if "n_heads" in axes and not least * width <= heads * size <= most * width:
                continue
            listed = range(1, heads + 1) if axes["n_kv_heads"] == "divisors" else axes["n_kv_heads"]
            for kv in {heads if kv == "n_heads" else kv for kv in listed}:
                found |= {(depth, width, size, heads, e, k, m, kv)} if heads % kv == 0 else set()
    return sorted(found) if {row[1] for row in found} == set(axes["width"]) else []


def built(mapping: dict[str, Any]) -> tuple[SearchSpace, list[Row]]:
    """A possible space and all that it must hold."""
    expected = rows(mapping)
    assume(expected)
    return SearchSpace.from_mapping(mapping), expected


def rows_of(space: SearchSpace, genotypes: Any) -> list[Row]:
    """The architectures of genotypes as plain tuples."""
    found = space.architectures(genotypes)
    return [tuple(row) for row in np.stack([getattr(found, name) for name in NAMES], axis=1).tolist()]


@settings(deadline=None)
@given(mapping=mappings())
def test_a_space_with_heads_is_every_valid_combination_once(mapping: dict[str, Any]) -> None:
    expected = rows(mapping)
    if not expected:
        with pytest.raises(ValidationError):
            SearchSpace.from_mapping(mapping)
        return
    space = SearchSpace.from_mapping(mapping)
    every = space.genotypes(np.arange(space.size))
    assert rows_of(space, every) == expected
    assert count(space.specification) == space.size == len(expected)
    assert np.array_equal(space.keys(every), np.arange(space.size))
    assert every.tolist() == sorted(every.tolist())
    assert space.is_canonical(every).all()
    assert np.array_equal(space.find(space.architectures(every)), np.arange(space.size))
    again = SearchSpace.from_mapping(space.mapping())
    assert (again.fingerprint, again.genes) == (space.fingerprint, space.genes)


@settings(deadline=None)
@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_any_genes_are_repaired_to_a_design_of_the_space(mapping: dict[str, Any], seed: int) -> None:
    """What does not depend on other genes stays; a dependent one becomes the next smaller valid value, else the smallest."""
    space, expected = built(mapping)
    generator = np.random.default_rng(seed)
    raw = generator.integers(0, space.gene_sizes, size=(40, len(space.genes)))
    repaired = space.repair(raw)
    assert np.array_equal(space.repair(repaired), repaired)
    assert set(rows_of(space, repaired)) <= set(expected)
    axes = {
        "head_dim": sorted(mapping["axes"].get("head_dim", [64])),
        "n_heads": sorted(mapping["axes"].get("n_heads", [])),
    }
    for before, after in zip(raw.tolist(), rows_of(space, repaired), strict=True):
        genes = dict(zip(space.genes, before, strict=True))
        assert after[:2] == (space.depths[genes["depth"]], space.widths[genes["width"]])
        valid = [row for row in expected if row[:2] == after[:2]]
        for column, name in ((2, "head_dim"), (3, "n_heads")):
            if name in genes:
                wanted, values = axes[name][genes[name]], sorted({row[column] for row in valid})
                assert after[column] == max((v for v in values if v <= wanted), default=values[0])
                valid = [row for row in valid if row[column] == after[column]]
    points = space.spread(generator.random((40, len(space.genes))))
    assert space.is_canonical(points).all()


@settings(deadline=None)
@given(mapping=mappings(), seed=st.integers(0, 2**32 - 1))
def test_steps_from_a_design_stay_in_the_space_and_reach_every_gene(mapping: dict[str, Any], seed: int) -> None:
    space, expected = built(mapping)
    for genotype in space.sample(3, np.random.default_rng(seed)):
        near = space.neighbours(genotype[None, :])
        assert space.is_canonical(near).all()
        assert not (near == genotype).all(axis=1).any()
        (own,) = rows_of(space, genotype[None, :])
        alone = [row for row in expected if row[:3] == own[:3] and row[4:] == own[4:]]
        place = alone.index(own)
        beside = {alone[i] for i in (place - 1, place + 1) if 0 <= i < len(alone)}
        if mapping["axes"]["n_kv_heads"] == ["n_heads"] or "n_heads" not in mapping["axes"]:
            continue
        reached = set(rows_of(space, near))
        between = {row for row in expected if row[:3] == own[:3]}
        for row in beside:
            steps = {other[3] for other in between if min(own[3], row[3]) < other[3] < max(own[3], row[3])}
            assert steps or row in reached


@pytest.mark.parametrize(
    ("axes", "conditions", "message"),
    [
        (
            {"n_heads": [1]},
            {"min_query_ratio": 0.5},
            "axes.n_heads: expected heads of together 0.5 to inf times width 256",
        ),
        ({"n_heads": [4], "n_kv_heads": [3]}, {}, "axes.n_kv_heads: expected a divisor of n_heads 4 (width 128), got"),
        ({"head_dim": [96]}, {}, "axes.width: expected multiples of head_dim 96, got 128; change one"),
        ({"head_dim": [96, 100]}, {}, "axes.width: expected multiples of a head_dim 96, 100, got 128; change one"),
        (
            {},
            {"max_query_ratio": 2},
            "conditions.max_query_ratio: expected axes.n_heads beside it, got none; remove it",
        ),
        (
            {"n_heads": [4]},
            {"min_query_ratio": 2, "max_query_ratio": 1},
            "conditions.min_query_ratio: expected at most max_query_ratio 1, got 2; correct one",
        ),
        (
            {"n_heads": {"from": 1, "to": 1_000_000}, "head_dim": {"from": 8, "to": 800, "step": 8}},
            {},
            "axes.n_heads: expected at most 10,000,000 of width, head_dim and n_heads together, got 200,000,000; shorten",
        ),
    ],
)
def test_heads_that_cannot_be_are_refused_in_the_users_words(
    axes: dict[str, Any], conditions: dict[str, Any], message: str
) -> None:
    content = {"axes": {**BASE, "width": [128, 256], "n_kv_heads": [1], **axes}, "conditions": conditions}
    with pytest.raises(ValidationError) as caught:
        SpaceSpecification.model_validate(content)
    faults = Faults()
    faults.add_validation(caught.value, model=SpaceSpecification)
    assert any(text.startswith(message) for _, text in faults.lines), faults.lines


def test_one_head_size_or_an_axis_of_them() -> None:
    content = {"head_dim": 64, "axes": {**BASE, "width": [128], "head_dim": [32, 64], "n_kv_heads": [1]}}
    with pytest.raises(ValidationError, match="expected it or axes"):
        SpaceSpecification.model_validate(content)


def test_the_same_heads_beside_another_width_are_another_architecture() -> None:
    axes = {**BASE, "width": [1024, 2560], "head_dim": [64, 128], "n_heads": [16, 72], "n_kv_heads": "divisors"}
    space = SearchSpace.from_mapping({"axes": axes, "conditions": {"max_query_ratio": 2}})
    shape = {"depth": 5, "width": 2560, "head_dim": 64, "n_heads": 72, "n_kv_heads": 18, "expert_size": 160}
    rivals = [shape, {**shape, "width": 1024, "n_heads": 16, "n_kv_heads": 8}, {**shape, "width": 1024}]
    found = space.find(architectures_of(rivals))
    assert (found >= 0).tolist() == [True, True, False]
    held = space.architectures(space.genotypes(found[:1]))
    assert [int(getattr(held, name)[0]) for name in SHAPE] == [int(getattr(one(shape), name)[0]) for name in SHAPE]
    assert held.query_dim[0] == 4608
