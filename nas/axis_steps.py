"""Spaces that lie one step beyond a space: one axis holds the next value outside it, all others stay."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from search_spaces.space import SearchSpace

AXES = ("depth", "width", "n_experts", "top_k", "expert_size", "expert_ffn_ratio", "n_kv_heads")


def beyond(space: SearchSpace) -> Iterator[tuple[str, float, SearchSpace]]:
    """Axis, further value and space, for the value below and above each axis where such a space exists."""
    mapping = space.mapping()
    for axis in AXES:
        values = mapping["axes"].get(axis)
        for value in _steps(axis, values, space) if isinstance(values, list) else ():
            changed = deepcopy(mapping)
            changed["axes"][axis] = [value]
            _widen(changed, axis, value)
            try:
                yield axis, value, SearchSpace.from_mapping(changed)
            except (ValidationError, ValueError):  # no architecture has this value
                continue


def _steps(axis: str, values: list[Any], space: SearchSpace) -> Iterator[float]:
    """The values before the first and after the last, as far apart as the nearest two."""
    numbers = [value for value in values if not isinstance(value, str)]
    if not numbers:
        return
    least = space.specification.head_dim if axis == "width" else 1
    low = numbers[1] - numbers[0] if len(numbers) > 1 else least
    high = numbers[-1] - numbers[-2] if len(numbers) > 1 else least
    if numbers[0] - low > 0:
        yield numbers[0] - low
    yield numbers[-1] + high


def _widen(mapping: dict[str, Any], axis: str, value: float) -> None:
    """A further number of experts keeps the top_k it allows, a further top_k the experts that allow it."""
    axes = mapping["axes"]
    if axis == "n_experts":
        axes["top_k"] = [k for k in axes["top_k"] if k < value or k == value == 1]
    if axis == "top_k":
        axes["n_experts"] = [e for e in axes["n_experts"] if e > value]
    if axis in ("expert_size", "expert_ffn_ratio"):
        ratio = value if axis == "expert_ffn_ratio" else value / min(axes["width"])
        limit = mapping.get("conditions", {}).get("max_expert_ffn_ratio")
        if limit is not None and ratio > limit:
            mapping["conditions"]["max_expert_ffn_ratio"] = ratio
