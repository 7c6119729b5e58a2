"""What a search space's YAML may say, and what a refused one is told."""

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from nas.files.faults import Faults
from search_spaces.axes_schema import Axes, Conditions
from search_spaces.columns import DEFAULTS
from search_spaces.space import SearchSpace
from search_spaces.specification import FURTHER_AXES, SpaceSpecification, count, largest_top_k

SMALL: dict[str, Any] = {
    "axes": {
        "depth": [1, 2],
        "width": [128, 256],
        "n_experts": [1, 4],
        "top_k": [1, 2],
        "expert_ffn_ratio": [1, 2],
        "n_kv_heads": [1, 2],
    }
}
GONE = object()


def test_every_further_axis_is_a_column_with_a_default() -> None:
    """What an axis needs besides its line in `Axes`."""
    assert set(FURTHER_AXES) <= set(DEFAULTS), (
        f"search_spaces/columns.py: expected a default of each axis, got none of {set(FURTHER_AXES) - set(DEFAULTS)}"
    )
    required = [name for name in FURTHER_AXES if Axes.model_fields[name].default is not None]
    assert required == [], f"search_spaces/axes_schema.py: expected None as default, got another of {required}"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([], "axes.tokens: expected at least one value"),
        ([5, 5], "axes.tokens: expected distinct values"),
    ],
)
def test_a_further_axis_is_checked_as_every_other(values: list[int], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault.partition(": ")[2]):
        SpaceSpecification.model_validate(changed({"axes.tokens": values}))


def test_values_of_a_further_axis_are_in_order() -> None:
    found = SpaceSpecification.model_validate(changed({"axes.tokens": [9, 5], "axes.precision": ["int8", "fp16"]}))
    assert (found.axes.tokens, found.axes.precision) == ([5, 9], ["fp16", "int8"])


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The small specification with values put at (or, if GONE, taken from) dotted paths."""
    content = copy.deepcopy(SMALL)
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        target = content
        for part in parents:
            target = target.setdefault(part, {})
        if value is GONE:
            del target[last]
        else:
            target[last] = value
    return content


def refusal(content: dict[str, Any]) -> list[str]:
    """What a user reads when the specification is refused, a line a fault."""
    with pytest.raises(ValidationError) as caught:
        SpaceSpecification.model_validate(content)
    faults = Faults()
    faults.add_validation(caught.value, model=SpaceSpecification)
    return [text for _, text in faults.lines]


def test_the_small_specification_is_accepted() -> None:
    specification = SpaceSpecification.model_validate(SMALL)
    assert specification.axes.depth == [1, 2]
    assert specification.head_dim == 64


LONG = {"from": 1, "to": 1_000_000}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"axes.depth": {"from": 5, "to": 3}}, "axes.depth: expected from <= to, got 5 and 3; swap them"),
    ({"axes.depth": {"from": 5}}, "axes.depth.to: expected a value, got nothing; add it"),
    ({"axes.depth": {"from": 0, "to": 3}}, "axes.depth.from: expected at least 1, got 0"),
    ({"axes.depth": {"from": 1, "to": 3, "step": 0}}, "axes.depth.step: expected at least 1, got 0"),
    ({"axes.depth": {"from": 1, "to": 3_000_000}}, "axes.depth: expected at most 1,000,000 values, got 3,000,000"),
    ({"axes.depth": [{"from": 1, "to": 3}, 2]}, "axes.depth: expected distinct values, got [1, 2, 3, 2]"),
    ({"axes.depth": []}, "axes.depth: expected at least one value, got an empty list"),
    ({"axes.depth": 3}, "axes.depth: expected a list, got 3"),
    ({"axes.depth": [0]}, "axes.depth.0: expected at least 1, got 0"),
    ({"axes.depth": [True]}, "axes.depth.0: expected an integer, got True"),
    ({"axes.depth": [1.5]}, "axes.depth.0: expected an integer, got 1.5"),
    ({"axes.depth": ["a"]}, "axes.depth.0: expected an integer, got 'a'"),
    ({"axes.depth": GONE}, "axes.depth: expected a value, got nothing"),
    ({"axes": GONE}, "axes: expected a value, got nothing"),
    ({"head_dim": 0}, "head_dim: expected at least 1, got 0"),
    ({"axes.width": [100]}, "axes.width: expected multiples of head_dim 64, got 100"),
    ({"head_dim": 256}, "axes.width: expected multiples of head_dim 256, got 128"),
    ({"axes.width": [128, 128]}, "axes.width: expected distinct values, got [128, 128]"),
    ({"axes.top_k": [2]}, "axes.top_k: expected 1 (dense), got [2]; add such a value"),
    ({"axes.n_experts": [4], "axes.top_k": [4]}, "axes.top_k: expected fewer than n_experts 4, got [4]"),
    (
        {"axes.n_experts": [4, 16], "conditions.max_activation_rate": 0.2},
        "axes.top_k: expected fewer than n_experts 4 within max_activation_rate 0.2, got [1, 2]",
    ),
    ({"conditions.max_activation_rate": 1.5}, "conditions.max_activation_rate: expected at most 1, got 1.5"),
    ({"conditions.max_activation_rate": 0}, "conditions.max_activation_rate: expected more than 0, got 0"),
    ({"conditions.max_expert_ffn_ratio": -1}, "conditions.max_expert_ffn_ratio: expected more than 0, got -1"),
    ({"conditions.max_expert_ffn_ratio": 0.5}, "axes.expert_ffn_ratio: expected a ratio up to 0.5, got 1"),
    (
        {"axes.expert_ffn_ratio": [0.501]},
        "axes.expert_ffn_ratio: expected a whole expert size, got 0.501 of width 128 = 64.128",
    ),
    ({"axes.expert_ffn_ratio": [-1]}, "axes.expert_ffn_ratio.0: expected more than 0, got -1"),
    ({"axes.expert_ffn_ratio": ["x"]}, "axes.expert_ffn_ratio.0: expected a number, got 'x'"),
    ({"axes.expert_ffn_ratio": [1, 1.0]}, "axes.expert_ffn_ratio: expected distinct values, got [1.0, 1.0]"),
    ({"axes.expert_ffn_ratio": GONE}, "axes: expected expert_ffn_ratio or expert_size, got neither"),
    ({"axes.expert_size": [64]}, "axes: expected expert_ffn_ratio or expert_size, got both"),
    (
        {"axes.expert_ffn_ratio": GONE, "axes.expert_size": [640], "conditions.max_expert_ffn_ratio": 4},
        "axes.expert_size: expected a value up to 512 (width 128), got 640; add one",
    ),
    ({"axes.n_kv_heads": [3]}, "axes.n_kv_heads: expected a divisor of n_heads 2 (width 128), got"),
    ({"axes.n_kv_heads": [0, 1]}, "axes.n_kv_heads.0: expected at least 1, got 0"),
    ({"axes.n_kv_heads": [1, 2**31 + 1]}, "axes.n_kv_heads.1: expected at least 1, got 2147483649"),
    ({"axes.n_kv_heads": "divisor"}, "axes.n_kv_heads: expected divisors, got 'divisor'; did you mean divisors?"),
    ({"axes.n_kv_heads": ["n_head"]}, "axes.n_kv_heads.0: expected n_heads, got 'n_head'; did you mean n_heads?"),
    ({"axes.n_kv_heads": ["n_heads", "n_heads"]}, "axes.n_kv_heads: expected distinct values, got ['n_heads', 'n_h"),
    (
        {
            "axes.width": {"from": 128, "to": 2560000, "step": 128},
            "axes.expert_ffn_ratio": GONE,
            "axes.expert_size": LONG,
        },
        "axes.expert_size: expected at most 10,000,000 pairs of width and expert_size, got 20,000,000,000; shorten",
    ),
    (
        {"axes.width": {"from": 128, "to": 12800000, "step": 128}, "axes.n_kv_heads": "divisors"},
        "axes.n_kv_heads: expected at most 10,000,000 pairs of width and n_kv_heads, got ",
    ),
    (
        {"axes.n_experts": [1, {"from": 2, "to": 20001}], "axes.top_k": {"from": 1, "to": 1000}},
        "axes.top_k: expected at most 10,000,000 pairs of n_experts and top_k, got 20,001,000; shorten",
    ),
    (
        {
            "axes.depth": LONG,
            "axes.width": [128],
            "axes.expert_ffn_ratio": GONE,
            "axes.expert_size": LONG,
            "axes.n_experts": [1, {"from": 2, "to": 10000}],
            "axes.top_k": {"from": 1, "to": 1000},
            "axes.n_kv_heads": [1],
        },
        "axes: expected fewer than 9,223,372,036,854,775,808 (2^63) architectures, got 9,499,501,000,000,000,000; shorten",
    ),
    *(
        ({f"axes.{name}": [True, 2]}, f"axes.{name}.0: expected a number, got True; correct it")
        for name in ("expert_ffn_ratio", "n_kv_heads")
    ),
    ({"nonsense": 1}, "nonsense: unknown key; "),
    ({"axes.widths": [128]}, "axes.widths: unknown key; did you mean width?"),
    ({"conditions.max_depth": 3}, "conditions.max_depth: unknown key; "),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_a_refused_specification_says_what_was_expected_and_every_line_is_in_the_users_words(
    changes: dict[str, Any], message: str
) -> None:
    lines = refusal(changed(changes))
    assert any(line.startswith(message) for line in lines), lines
    for line in lines:
        where, _, what = line.partition(": ")
        assert ("expected " in what and ", got " in what) or what.startswith("unknown key"), line
        assert all(part.isdigit() or part.replace("_", "").isalpha() for part in where.split(".")), line
        assert "validation error" not in line


def test_a_name_that_cannot_be_a_folder_is_told_which_characters_may_stand_in_it() -> None:
    (line,) = refusal(changed({"name": "a b"}))
    assert line.startswith("name: expected ")
    assert "expected text" not in line, f"'a b' is text: {line}"


def test_faults_of_several_axes_come_at_once() -> None:
    lines = refusal(changed({"axes.width": [128, 100], "axes.top_k": [2], "axes.expert_ffn_ratio": [0.501]}))
    assert {line.split(":")[0] for line in lines} == {"axes.width", "axes.top_k", "axes.expert_ffn_ratio"}
    lines = refusal(changed({"axes.depth": [], "axes.width": "x", "head_dim": -1}))
    assert {line.split(":")[0] for line in lines} == {"axes.depth", "axes.width", "head_dim"}


def test_ratios_that_give_one_expert_size_are_not_distinct() -> None:
    """Else the space would hold an architecture twice."""
    with pytest.raises(ValidationError):
        SpaceSpecification.model_validate(changed({"axes.expert_ffn_ratio": [1.0, 1.0000000005]}))


def test_axes_are_read_in_ascending_order_with_n_heads_last() -> None:
    axes = SpaceSpecification.model_validate(
        changed({"axes.depth": [8, 2, {"from": 3, "to": 7, "step": 2}], "axes.n_kv_heads": ["n_heads", 2, 1]})
    ).axes
    assert axes.depth == [2, 3, 5, 7, 8]
    assert axes.n_kv_heads == [1, 2, "n_heads"]


@pytest.mark.parametrize(("stop", "values"), [(4, [2, 4]), (5, [2, 4]), (6, [2, 4, 6]), (2, [2])])
def test_a_range_includes_its_end_when_the_step_meets_it(stop: int, values: list[int]) -> None:
    content = changed({"axes.depth": {"from": 2, "to": stop, "step": 2}})
    assert SpaceSpecification.model_validate(content).axes.depth == values


def test_divisors_are_those_of_every_width() -> None:
    content = changed({"axes.n_kv_heads": "divisors", "axes.width": [64 * 6, 64 * 10]})
    assert SpaceSpecification.model_validate(content).kv_axis() == [1, 2, 3, 5, 6, 10]


def test_what_is_left_out_is_dense_with_heads_of_64() -> None:
    axes = {"depth": [1], "width": [64], "expert_size": [8], "n_kv_heads": [1]}
    specification = SpaceSpecification.model_validate({"axes": axes})
    assert (specification.axes.n_experts, specification.axes.top_k, specification.head_dim) == ([1], [1], 64)
    assert specification.name == "custom"


@pytest.mark.parametrize(
    ("limit", "experts", "most"), [(0.29, 100, 29), (0.07, 100, 7), (0.57, 100, 57), (0.3, 64, 19)]
)
def test_a_share_that_is_a_whole_number_of_experts_is_allowed(limit: float, experts: int, most: int) -> None:
    """0.29 · 100 is 28.999… in floating point, and 29 of 100 experts are within 0.29."""
    conditions = Conditions(max_activation_rate=limit)
    assert largest_top_k(experts, conditions) == most


def test_an_expert_of_one_feature_is_the_smallest() -> None:
    assert SpaceSpecification.model_validate(changed({"axes.expert_ffn_ratio": [1 / 128, 1]}))


@pytest.mark.parametrize(
    ("axes", "conditions"),
    [
        ({}, {}),
        ({"n_kv_heads": [1, 2, 4, 5, 8, 16, "n_heads"]}, {"max_activation_rate": 0.5}),
        ({"expert_ffn_ratio": [0.5, 1, 2, 5]}, {"max_expert_ffn_ratio": 4}),
        ({"expert_ffn_ratio": None, "expert_size": [100, 700, 1100]}, {"max_expert_ffn_ratio": 1.25}),
    ],
)
def test_the_count_is_that_of_the_tables(axes: dict[str, Any], conditions: dict[str, Any]) -> None:
    some = {"depth": [1, 2], "width": [512, 1024, 1344], "n_experts": [1, 2, 4, 9], "top_k": [1, 2, 3]}
    some |= {"expert_ffn_ratio": [0.5, 1], "n_kv_heads": "divisors", **axes}
    specification = SpaceSpecification.model_validate(
        {"axes": {name: values for name, values in some.items() if values}, "conditions": conditions}
    )
    space = SearchSpace(specification)
    assert count(specification) == space.size == sum(len(block) for block in space.enumerate())
