"""One step beyond an axis: every architecture that has the further value, none left out for the sake of others."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nas.exact.gains import beyond, gains
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from search_spaces.space import SearchSpace

Row = tuple[int, ...]


def rows_of(space: SearchSpace) -> set[Row]:
    """Every architecture of a space as depth, width, n_experts, top_k, expert_size, n_kv_heads."""
    found = space.architectures(space.genotypes(np.arange(space.size)))
    names = ("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads")
    return {tuple(row) for row in np.stack([getattr(found, name) for name in names], axis=1).tolist()}


def every(axes: dict[str, Any], head_dim: int, most_ratio: float | None, most_rate: float | None) -> set[Row]:
    """The same by trying every combination of values against the rules of a space."""
    found: set[Row] = set()
    names = ("depth", "width", "n_experts", "top_k", "ffn", "n_kv_heads")
    ratios = "expert_ffn_ratio" in axes
    values = {**axes, "ffn": axes.get("expert_ffn_ratio") or axes.get("expert_size")}
    for depth, width, experts, top_k, ffn, kv in itertools.product(*(values[name] for name in names)):
        heads = width // head_dim
        size, n_kv = (ffn * width if ratios else ffn), (heads if kv == "n_heads" else kv)
        whole = abs(size - round(size)) < 1e-6
        dense_or_fewer = experts == top_k == 1 or (experts > 1 and top_k < experts)
        sparse_enough = experts == 1 or most_rate is None or top_k <= most_rate * experts + 1e-9
        narrow_enough = most_ratio is None or size <= most_ratio * width * (1 + 1e-9)
        if whole and heads % n_kv == 0 and dense_or_fewer and sparse_enough and narrow_enough:
            found.add((depth, width, experts, top_k, round(size), n_kv))
    return found


def some(values: list[Any], least: int = 1) -> st.SearchStrategy[list[Any]]:
    """A few of the values."""
    return st.lists(st.sampled_from(values), min_size=least, max_size=4, unique=True)


FFN = st.one_of(
    st.fixed_dictionaries({"expert_ffn_ratio": some([0.25, 0.5, 0.75, 1, 1.5, 2])}),
    st.fixed_dictionaries({"expert_size": some([64, 96, 256, 512, 768])}),
)
AXES = st.fixed_dictionaries(
    {
        "depth": some([4, 6, 8]),
        "width": some([128, 192, 256, 320, 384, 512]),
        "n_experts": some([1, 4, 6, 8, 16]),
        "top_k": some([1, 2, 3, 4]),
        "n_kv_heads": some([1, 2, 3, 4, "n_heads"]),
    }
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(AXES, FFN, st.sampled_from([None, 2.0, 4.0]), st.sampled_from([None, 0.25, 0.5]))
def test_a_step_holds_every_architecture_that_has_the_value(
    axes: dict[str, Any], ffn: dict[str, Any], most_ratio: float | None, most_rate: float | None
) -> None:
    given_limits = {"max_expert_ffn_ratio": most_ratio, "max_activation_rate": most_rate}
    conditions = {name: limit for name, limit in given_limits.items() if limit is not None}
    axes = {**axes, **ffn}
    try:
        space = SearchSpace.from_mapping({"axes": axes, "conditions": conditions})
    except ValidationError:
        assume(False)
    found = {(axis, value): rows_of(further) for axis, value, further in beyond(space)}
    own = rows_of(space)
    for (axis, value), rows in found.items():
        assert rows, "a space holds something"
        assert not rows & own
        assert value not in axes[axis]
    for axis, values in space.mapping()["axes"].items():
        numbers = [value for value in values if value != "n_heads"]
        gap = (numbers[-1] - numbers[-2]) if len(numbers) > 1 else 64 if axis == "width" else 1
        if not numbers:
            continue
        value = numbers[-1] + gap
        ratio = most_ratio
        if most_ratio is not None and axis in ffn:
            ratio = max(most_ratio, value if axis == "expert_ffn_ratio" else value / max(axes["width"]))
        expected = every({**axes, axis: [value]}, 64, ratio, most_rate) - own
        assert found.get((axis, value), set()) == expected, (axis, value)


def test_in_the_default_space_a_number_of_kv_heads_that_few_widths_take_is_the_best_step(
    studied: Callable[..., Any],
) -> None:
    problem: Problem = studied(space="paper", applications={}, baselines=[]).problem
    found = gains(replace(problem, budgets=(Budget("total_ms", 120.0),)))
    assert found is not None
    best = min(found.axes, key=lambda gain: gain.loss)
    assert (best.change, best.at) == ("n_kv_heads", 12)
    assert best.loss == pytest.approx(3.11185, abs=1e-5)
    assert best.design["width"] // 64 % 12 == 0
