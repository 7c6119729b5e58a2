"""The axis of layers: what rules make of depths, each architecture once, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from search_spaces.architectures import Architectures
from search_spaces.axes_schema import Rule
from search_spaces.columns import DEFAULTS, SHAPE, worded
from search_spaces.mixes import LINEAR, in_words
from search_spaces.space import SearchSpace
from search_spaces.specification import count

RULES: tuple[Any, ...] = (
    "full",
    {"kv_shared": [2, 5]},
    {"period": [2, 3, 6], "local": [128, 512], "kv_shared": [0, 1, 4, 10]},
    {"period": [2, 4, 7], "conv": [3, 4]},
    {"period": [3, 4, 50], "linear": ["deltanet", "mamba2"]},
)
AXES = {"width": [128, 384], "n_experts": [1, 4], "top_k": [1, 2], "expert_size": [64, 128], "n_kv_heads": "divisors"}


def space_of(*rules: Any, depth: Any = (4, 8, 9), **conditions: int) -> SearchSpace:
    """A small space with these layers."""
    axes = {**AXES, "depth": list(depth), "layers": list(rules)}
    return SearchSpace.from_mapping({"axes": axes, "conditions": conditions})


def walked(depth: int, rule: Rule) -> dict[str, Any] | None:
    """The columns of a stack that is walked layer by layer; None where a shared cache has no owner or too many share."""
    period = rule.period or 1
    full = [i % period == 0 for i in range(1, depth + 1)]
    if not any(full):
        full[-1] = True
    shared = [i >= depth - (rule.kv_shared or 0) for i in range(depth)]
    others = [not each for each in full]
    found = {
        "n_local": sum(others) * (rule.local is not None),
        "n_conv": sum(others) * (rule.conv is not None),
        "n_linear": sum(others) * (rule.linear is not None),
        "n_kv_shared": sum(shared),
        "n_kv_shared_local": sum(s for s, o in zip(shared, others, strict=True) if o),
    }
    found["window"] = (rule.local or 0) * (found["n_local"] > 0)
    found["conv_kernel"] = (rule.conv or 0) * (found["n_conv"] > 0)
    found["linear_kind"] = rule.linear if found["n_linear"] else "no"
    for kind in (full, others):
        own = [s for s, k in zip(shared, kind, strict=True) if k]
        if any(own) and all(own):
            return None
    return found if 2 * sum(shared) <= depth else None


def test_every_mix_is_what_walking_the_layers_gives_and_stands_once() -> None:
    space = space_of(*RULES, depth=range(2, 25), min_full_layers=1)
    for row, depth in enumerate(space.depths.tolist()):
        expected, firsts = dict[tuple[Any, ...], int](), list[bool]()
        for gene, rule in enumerate(space.specification.rules):
            found = walked(depth, rule)
            key = None if found is None else tuple(found[name] for name in space.mixes.columns)
            firsts.append(key is not None and expected.setdefault(key, gene) == gene)
            if key is not None:
                columns = {name: worded(name, table[row, [gene]])[0] for name, table in space.mixes.columns.items()}
                assert tuple(columns.values()) == key, (depth, str(rule))
        assert space.mixes.valid[row].tolist() == firsts


@pytest.mark.parametrize(
    "conditions",
    [
        {"min_full_layers": 1},
        {},
        {"min_full_layers": 3, "min_window": 512},
        {"full_layer_every": 2},
        {"max_kv_shared": 0},
    ],
)
def test_keys_genotypes_and_architectures_are_one_to_one(conditions: dict[str, int]) -> None:
    space = space_of(*RULES, depth=(6, 8, 12), **conditions)
    keys = np.arange(space.size)
    genotypes = space.genotypes(keys)
    assert count(space.specification) == space.size
    assert (np.lexsort(genotypes.T[::-1]) == keys).all()
    assert (space.keys(genotypes) == keys).all()
    assert space.is_canonical(genotypes).all()
    found = space.architectures(genotypes)
    assert (space.find(found) == keys).all()
    columns = np.stack([getattr(found, name) for name in (*SHAPE, *DEFAULTS)], axis=1)
    assert len(np.unique(columns, axis=0)) == space.size
    checked = Architectures.from_columns({name: worded(name, getattr(found, name)) for name in (*SHAPE, *DEFAULTS)})
    assert (space.find(checked) == keys).all()
    limit = space.specification.conditions
    assert (found.n_full >= (limit.min_full_layers or 0)).all()
    assert (found.n_full >= found.depth // (limit.full_layer_every or 1000)).all()
    assert ((found.n_local == 0) | (found.window >= (limit.min_window or 0))).all()
    assert limit.max_kv_shared is None or (found.n_kv_shared <= limit.max_kv_shared).all()


def test_what_is_not_of_the_space_is_not_found() -> None:
    space, other = space_of("full", {"period": 4, "local": 512}), space_of("full", {"period": 4, "local": 256})
    full = (other.architectures(other.genotypes(np.arange(other.size))).n_local == 0).sum()
    found = space.find(other.architectures(other.genotypes(np.arange(other.size))))
    assert (found >= 0).sum() == full
    plain = SearchSpace.from_mapping({"axes": {**AXES, "depth": [4, 8, 9]}})
    assert (plain.find(space.architectures(space.genotypes(np.arange(space.size)))) >= 0).sum() == plain.size


def test_repair_and_steps_stay_within_the_space() -> None:
    space = space_of(*RULES, depth=(2, 4, 6, 13))
    generator = np.random.default_rng(3)
    drawn = generator.integers(-2, space.gene_sizes + 2, (500, len(space.genes)))
    assert space.is_canonical(space.repair(drawn)).all()
    near = space.neighbours(space.sample(20, generator))
    assert space.is_canonical(near).all()
    assert space.is_canonical(space.spread(generator.random((500, len(space.genes))))).all()


def test_layers_of_several_kinds_have_lower_limits_that_cannot_be_left_out() -> None:
    space = space_of("full", {"period": 4, "conv": 3}, depth=(8, 48))
    assert space.mapping()["conditions"] == {"min_full_layers": 2, "full_layer_every": 6}
    assert space_of("full", {"kv_shared": 2}).mapping()["conditions"] == {}
    assert space_of("full", {"period": 4, "conv": 3}, min_full_layers=1).mapping()["conditions"] == {
        "min_full_layers": 1
    }
    with pytest.raises(ValidationError, match="min_full_layers"):
        space_of("full", {"period": 4, "conv": 3}, min_full_layers=0)


def test_a_space_reads_back_what_it_writes() -> None:
    space = space_of(*RULES, depth=(4, 8))
    again = SearchSpace.from_mapping(space.mapping())
    assert (again.fingerprint, again.size) == (space.fingerprint, space.size)
    assert space.mapping()["axes"]["layers"][:4] == [
        "full",
        {"kv_shared": 2},
        {"kv_shared": 5},
        {"period": 2, "local": 128},
    ]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([], "expected at least one rule, got an empty list; add full"),
        (["fulll"], "expected full or a mapping, got 'fulll'"),
        ([{"local": 512}], "expected period beside local, got none"),
        ([{"period": 4}], "expected local, conv or linear beside period 4, got none"),
        ([{"period": 4, "local": 512, "conv": 3}], "expected one of local, conv, linear, got local and conv"),
        (
            [{"period": 4, "conv": 3, "kv_shared": 2}],
            "kv_shared: expected layers with a cache, full or local, got conv",
        ),
        (["full", "full"], "expected distinct rules, got full twice"),
        ([{"period": 4, "linear": "rwkv"}], "linear"),
        ([{"period": 1, "local": 512}], "period"),
    ],
)
def test_rules_that_are_none_are_refused_with_what_is_meant(rules: list[Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        space_of(*rules)


def test_axes_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(
        ValidationError, match=r"axes.width: expected multiples of 128 beside linear: deltanet, .* got 192"
    ):
        SearchSpace.from_mapping(
            {"axes": {**AXES, "depth": [8], "width": [128, 192], "layers": [{"period": 4, "linear": "deltanet"}]}}
        )
    with pytest.raises(ValidationError, match=r"axes.depth: expected a mix .* got none at 4"):
        space_of("full", {"period": 4, "conv": 3}, min_full_layers=5)
    with pytest.raises(ValidationError, match=r"conditions.min_window: expected axes.layers beside it, got none"):
        SearchSpace.from_mapping({"axes": {**AXES, "depth": [8]}, "conditions": {"min_window": 512}})


def test_sizes_of_linear_attention_are_those_of_published_models() -> None:
    """Qwen3-Next-80B-A3B: width 2048, 32 heads of values, 16 of keys; Granite 4.0 H tiny: 1536, 48 heads, one group."""
    axes = {**AXES, "depth": [8], "layers": [{"period": 4, "linear": ["deltanet", "mamba2"]}], "width": [1536, 2048]}
    space = SearchSpace.from_mapping({"axes": axes})
    found = space.architectures(space.genotypes(np.arange(space.size)))
    sizes = (
        found.linear_heads,
        found.linear_key_heads,
        found.linear_key_dim,
        found.linear_value_dim,
        found.linear_kernel,
    )
    rows = {(k, w): row for k, w, *row in np.stack([found.linear_kind, found.width, *sizes], axis=1).tolist()}
    assert rows[1, 2048] == [32, 16, 128, 128, 4]
    assert rows[2, 1536] == [48, 1, 128, 64, 4]
    assert [LINEAR[name].step for name in ("deltanet", "mamba2")] == [128, 32]


def test_layers_in_words() -> None:
    space = space_of(
        "full", {"period": 6, "local": 512, "kv_shared": [0, 4]}, {"period": 4, "linear": "mamba2"}, depth=[12]
    )
    first = space.architectures(
        space.genotypes(np.arange(len(space.layer_plans)) * (space.size // len(space.layer_plans)))
    )
    assert in_words(first) == [
        "full",
        "2 full + 10 within 512",
        "2 full + 10 within 512, 4 share KV",
        "3 full + 9 mamba2",
    ]


def test_the_shipped_space_of_2026_is_as_large_as_it_says(shipped: Callable[[str, str], dict[str, Any]]) -> None:
    space = SearchSpace.from_mapping(shipped("search_spaces.spaces", "edge2026"))
    assert space.size == count(space.specification) > 10**12
    kinds = space.architectures(space.sample(2000, np.random.default_rng(1)))
    for name in ("n_local", "n_kv_shared", "n_linear", "n_conv"):
        assert getattr(kinds, name).any()
    assert (space.find(kinds) == space.keys(space.genotypes(space.find(kinds)))).all()
