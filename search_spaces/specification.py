"""What a search space's YAML may say, checked with pydantic."""

import math
from bisect import bisect_right
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MOST = 2**63  # a key, the number of an architecture, is a signed 64-bit integer
MOST_CELLS = 10_000_000  # of a table that says which values of one axis go with which of another
Positive = Annotated[int, Field(strict=True, ge=1, le=2**31)]


class Range(BaseModel):
    """The integers `from`, `from + step`, … up to and including `to`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    start: Positive = Field(alias="from")
    stop: Positive = Field(alias="to")
    step: Positive = 1

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if self.stop < self.start:
            raise ValueError(f"expected from <= to, got {self.start} and {self.stop}; swap them")
        if (count := (self.stop - self.start) // self.step + 1) > 1_000_000:
            raise ValueError(f"expected at most 1,000,000 values, got {count:,}; raise step")
        return self

    def values(self) -> list[int]:
        """The integers of the range, ascending."""
        return list(range(self.start, self.stop + 1, self.step))


class Axes(BaseModel):
    """The six axes; the FFN axis is given as ratios or as expert sizes."""

    model_config = ConfigDict(extra="forbid")

    depth: list[Positive]
    width: list[Positive]
    n_experts: list[Positive] = [1]
    top_k: list[Positive] = [1]
    expert_ffn_ratio: list[Annotated[float, Field(gt=0, le=1000)]] | None = None
    expert_size: list[Positive] | None = None
    n_kv_heads: list[int | str] | str

    @field_validator("depth", "width", "n_experts", "top_k", "expert_size", "n_kv_heads", mode="before")
    @classmethod
    def _spread(cls, value: Any) -> Any:
        """Ranges become lists before the items are checked one by one."""
        if isinstance(value, dict):
            return Range.model_validate(value).values()
        if isinstance(value, list):
            return [
                v for part in value for v in (Range.model_validate(part).values() if isinstance(part, dict) else [part])
            ]
        return value

    @field_validator("depth", "width", "n_experts", "top_k", "expert_size", "expert_ffn_ratio", "n_kv_heads")
    @classmethod
    def _ascending(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if not value:
            raise ValueError("expected at least one value, got an empty list; add values")
        if len(set(value)) < len(value):
            raise ValueError(f"expected distinct values, got {value}; remove the repeats")
        return sorted(v for v in value if not isinstance(v, str)) + [v for v in value if isinstance(v, str)]

    @field_validator("n_kv_heads")
    @classmethod
    def _kv_words(cls, value: Any) -> Any:
        if isinstance(value, str) and value != "divisors":
            raise ValueError(f"expected divisors, got {value!r}; did you mean divisors?")
        for i, kv in enumerate(value if isinstance(value, list) else []):
            if isinstance(kv, str) and kv != "n_heads":
                raise ValueError(f"{i}: expected n_heads, got {kv!r}; did you mean n_heads?")
            if isinstance(kv, int) and (isinstance(kv, bool) or not 1 <= kv <= 2**31):
                raise ValueError(f"{i}: expected at least 1, got {kv!r}; correct it")
        return value

    @model_validator(mode="after")
    def _one_ffn_axis(self) -> "Axes":
        if (self.expert_ffn_ratio is None) == (self.expert_size is None):
            given = "neither" if self.expert_size is None else "both"
            raise ValueError(f"expected expert_ffn_ratio or expert_size, got {given}; give exactly one")
        return self


class Conditions(BaseModel):
    """Limits that tie a gene to others."""

    model_config = ConfigDict(extra="forbid")

    max_expert_ffn_ratio: Annotated[float, Field(gt=0)] | None = None
    max_activation_rate: Annotated[float, Field(gt=0, le=1)] | None = None


class SpaceSpecification(BaseModel):
    """A search space as YAML."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")] = "custom"
    description: str = ""
    head_dim: Positive = 64
    axes: Axes
    conditions: Conditions = Conditions()

    @model_validator(mode="after")
    def _consistent(self) -> "SpaceSpecification":
        faults = [
            *width_faults(self.axes.width, self.head_dim),
            *expert_faults(self.axes.n_experts, self.axes.top_k, self.conditions),
            *ffn_faults(self.axes, self.conditions),
            *kv_faults(self.axes, self.head_dim),
        ]
        faults = faults or size_faults(self)
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def kv_axis(self) -> list[int | str]:
        """KV-head values in gene order; `divisors` becomes every divisor of some n_heads."""
        if isinstance(self.axes.n_kv_heads, list):
            return list(self.axes.n_kv_heads)
        return sorted({kv for width in self.axes.width for kv in divisors(width // self.head_dim)})


def width_faults(widths: list[int], head_dim: int) -> list[str]:
    """Widths that are no multiple of the head size."""
    wrong = [w for w in widths if w % head_dim]
    return [f"axes.width: expected multiples of head_dim {head_dim}, got {wrong[0]}; change one"] if wrong else []


def expert_faults(experts: list[int], top_ks: list[int], conditions: Conditions) -> list[str]:
    """Numbers of experts without a valid top_k."""
    for n in experts:
        if min(top_ks) > largest_top_k(n, conditions):
            needed = "1 (dense)" if n == 1 else f"fewer than n_experts {n}"
            limit = conditions.max_activation_rate
            extra = f" within max_activation_rate {limit:g}" if limit else ""
            return [f"axes.top_k: expected {needed}{extra}, got {top_ks}; add such a value"]
    return []


def ffn_faults(axes: Axes, conditions: Conditions) -> list[str]:
    """Ratios that give no whole expert size, and limits that leave nothing."""
    limit, narrow = conditions.max_expert_ffn_ratio, min(axes.width)
    if axes.expert_size is not None:
        small = min(axes.expert_size)
        if limit is not None and small > limit * narrow:
            return [
                f"axes.expert_size: expected a value up to {limit * narrow:g} (width {narrow}), got {small}; add one"
            ]
        return []
    ratios = axes.expert_ffn_ratio or []
    for width in axes.width:
        if len({round(ratio * width) for ratio in ratios}) < len(ratios):
            return [
                f"axes.expert_ffn_ratio: expected ratios of distinct expert sizes, got two of one size at width {width}; remove one"
            ]
    for ratio in ratios:
        for width in axes.width:
            size = ratio * width
            if abs(size - round(size)) > 1e-9 * size or round(size) < 1:
                return [
                    f"axes.expert_ffn_ratio: expected a whole expert size, got {ratio:g} of width {width} = {size:g}; "
                    "give expert_size instead"
                ]
    if limit is not None and min(ratios) > limit:
        return [f"axes.expert_ffn_ratio: expected a ratio up to {limit:g}, got {min(ratios):g}; add one"]
    return []


def kv_faults(axes: Axes, head_dim: int) -> list[str]:
    """Widths whose number of heads no listed KV value divides."""
    if isinstance(axes.n_kv_heads, str) or "n_heads" in axes.n_kv_heads:
        return []
    for width in axes.width:
        heads = width // head_dim
        if not any(heads % kv == 0 for kv in axes.n_kv_heads if isinstance(kv, int)):
            return [
                f"axes.n_kv_heads: expected a divisor of n_heads {heads} (width {width}), got none; add 1 or n_heads"
            ]
    return []


def expert_faults_of(mapping: Any) -> list[str]:
    """K against E alone, in a space whose other parts are wrong, so that no fault hides another."""
    axes = mapping.get("axes") if isinstance(mapping, dict) else None
    if not isinstance(axes, dict):
        return []
    conditions = mapping.get("conditions", {})
    try:
        neutral = {"depth": [1], "width": [64], "expert_size": [1], "n_kv_heads": [1]}
        given = {key: axes[key] for key in ("n_experts", "top_k") if key in axes}
        checked = Axes.model_validate({**neutral, **given})
        return expert_faults(checked.n_experts, checked.top_k, Conditions.model_validate(conditions))
    except ValueError:
        return []


def divisors(n: int) -> list[int]:
    """Every divisor of a number, ascending."""
    small = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return small + [n // i for i in reversed(small) if i * i < n]


def size_faults(space: SpaceSpecification) -> list[str]:
    """A space whose tables would fill the memory, or of more architectures than can be numbered."""
    axes = space.axes
    ffn = ("expert_ffn_ratio", axes.expert_ffn_ratio) if axes.expert_size is None else ("expert_size", axes.expert_size)
    for (one, ones), (other, others) in (
        (("n_experts", axes.n_experts), ("top_k", axes.top_k)),
        (("width", axes.width), ffn),
        (("width", axes.width), ("n_kv_heads", range(_kv_values(space)))),
    ):
        if (cells := len(ones) * len(others or ())) > MOST_CELLS:
            return [
                f"axes.{other}: expected at most {MOST_CELLS:,} pairs of {one} and {other}, got {cells:,}; shorten either axis"
            ]
    size = count(space)
    if size >= MOST:
        return [f"axes: expected fewer than {MOST:,} (2^63) architectures, got {size:,}; shorten an axis"]
    return []


def _kv_values(space: SpaceSpecification) -> int:
    """How many values the axis of KV heads has; of divisors, counted until their table is too large."""
    if isinstance(space.axes.n_kv_heads, list):
        return len(space.axes.n_kv_heads)
    found: set[int] = set()
    for width in space.axes.width:
        found.update(divisors(width // space.head_dim))
        if len(found) * len(space.axes.width) > MOST_CELLS:
            break
    return len(found)


def count(space: SpaceSpecification) -> int:
    """Number of architectures, exact however many."""
    axes, conditions = space.axes, space.conditions
    pairs = sum(bisect_right(axes.top_k, largest_top_k(experts, conditions)) for experts in axes.n_experts)
    limit = conditions.max_expert_ffn_ratio
    largest = math.inf if limit is None else limit * (1 + 1e-12)
    sizes = axes.expert_size
    of_width = 0
    for width in axes.width:
        if sizes is None:
            ffns = sum(round(ratio * width) <= largest * width for ratio in axes.expert_ffn_ratio or [])
        else:
            ffns = bisect_right(sizes, largest * width)
        of_width += ffns * len(_kv_of(axes.n_kv_heads, width // space.head_dim))
    return len(axes.depth) * pairs * of_width


def _kv_of(axis: list[int | str] | str, heads: int) -> Collection[int]:
    """The distinct numbers of KV heads that a number of heads allows."""
    if isinstance(axis, str):
        return divisors(heads)
    return {heads if kv == "n_heads" else int(kv) for kv in axis if kv == "n_heads" or heads % int(kv) == 0}


def largest_top_k(experts: int, conditions: Conditions) -> int:
    """K < E within the activation limit, or E = K = 1: the largest K of a number of experts, 0 if none."""
    limit = conditions.max_activation_rate
    if experts == 1 or limit is None:
        return max(experts - 1, 1)
    return min(experts - 1, math.floor(limit * experts + 1e-9))
