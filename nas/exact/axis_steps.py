"""Spaces that lie one step beyond a space: one axis holds the next value outside it, all others stay."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from search_spaces.space import SearchSpace
from search_spaces.specification import (
    OF_HEADS,
    SpaceSpecification,
    expert_faults,
    ffn_faults,
    heads_faults,
    kv_faults,
)

MOST_BACKBONES = {  # the axes whose values a value of this one can exclude
    "depth": (),
    "width": ("expert_ffn_ratio",),
    "head_dim": ("width",),
    "n_heads": ("width",),
    "n_experts": ("top_k",),
    "top_k": ("n_experts",),
    "expert_size": ("width",),
    "expert_ffn_ratio": ("width",),
    "n_kv_heads": ("n_heads", "width"),
}


def beyond(space: SearchSpace) -> Iterator[tuple[str, float, SearchSpace]]:
    """Axis, further value and space, for the value below and above each axis where such a space exists.

    Values of other axes that cannot stand beside the further one are left out. A further FFN beyond
    `max_expert_ffn_ratio` at every width raises that limit just so far that one width takes it.
    """
    for axis in MOST_BACKBONES:
        values = getattr(space.specification.axes, axis)
        for value in _steps(axis, values, space) if isinstance(values, list) else ():
            further = _with(space, axis, value)
            if further is not None:
                yield axis, value, further


def _steps(axis: str, values: list[Any], space: SearchSpace) -> Iterator[float]:
    """The values before the first and after the last, as far apart as the nearest two."""
    numbers = [value for value in values if not isinstance(value, str)]
    if not numbers:
        return
    least = space.specification.head_dims[0] if axis in ("width", "head_dim") else 1
    low = numbers[1] - numbers[0] if len(numbers) > 1 else least
    high = numbers[-1] - numbers[-2] if len(numbers) > 1 else least
    if numbers[0] - low > 0:
        yield numbers[0] - low
    yield numbers[-1] + high


def _with(space: SearchSpace, axis: str, value: float) -> SearchSpace | None:
    """The space that holds one value of an axis and what its backbones allow; None where no architecture has it."""
    mapping, changed = space.mapping(), _changed(_raised(space.specification, axis, value), axis, [value])
    mapping["axes"][axis] = [value]
    mapping["conditions"] = changed.conditions.model_dump(exclude_none=True)
    for backbone in MOST_BACKBONES[axis]:
        others = mapping["axes"].get(backbone)
        if others is not None:
            new = [other for other in others if not _held(space, axis, value, backbone, other)]
            mapping["axes"][backbone] = [other for other in new if _taken(changed, backbone, other)]
            changed = _changed(changed, backbone, mapping["axes"][backbone])
    try:
        return SearchSpace.from_mapping(mapping)
    except ValidationError:
        return None


def _changed(specification: SpaceSpecification, axis: str, values: list[Any]) -> SpaceSpecification:
    axes = specification.axes.model_copy(update={axis: values})
    return specification.model_copy(update={"axes": axes})


def _raised(specification: SpaceSpecification, axis: str, value: float) -> SpaceSpecification:
    """The specification with `max_expert_ffn_ratio` where the widest layers can take a further FFN."""
    limit = specification.conditions.max_expert_ffn_ratio
    if limit is None or axis not in ("expert_size", "expert_ffn_ratio"):
        return specification
    needed = value if axis == "expert_ffn_ratio" else value / max(specification.axes.width)
    raised = max(limit, needed * (1 + 1e-12))  # rounded, its product with the width must not fall below the value
    conditions = specification.conditions.model_copy(update={"max_expert_ffn_ratio": raised})
    return specification.model_copy(update={"conditions": conditions})


def _taken(specification: SpaceSpecification, backbone: str, other: Any) -> bool:
    """Whether a space with this value of the backbone alone is one; numbers of heads are left out by themselves."""
    if backbone == "n_heads":
        return True
    alone = _changed(specification, backbone, [other])
    axes, conditions = alone.axes, alone.conditions
    faults = (expert_faults(axes.n_experts, axes.top_k, conditions), ffn_faults(axes, conditions))
    return not any((*faults, heads_faults(alone), kv_faults(alone)))


def _held(space: SearchSpace, axis: str, value: float, backbone: str, other: Any) -> bool:
    """Whether a number of heads, or a width that has but one, has the further number of KV heads already, as `n_heads`."""
    if axis != "n_kv_heads" or "n_heads" not in space.specification.axes.n_kv_heads:
        return False
    of_width = [] if space.place.keys() & set(OF_HEADS) else [value * space.specification.head_dims[0]]
    return bool(other == value if backbone == "n_heads" else other in of_width)
