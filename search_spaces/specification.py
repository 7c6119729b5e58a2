"""What a search space's YAML may say, checked with pydantic."""

import math
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

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
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def kv_axis(self) -> list[int | str]:
        """KV-head values in gene order; `divisors` becomes every divisor of some n_heads."""
        if isinstance(self.axes.n_kv_heads, list):
            return list(self.axes.n_kv_heads)
        heads = {width // self.head_dim for width in self.axes.width}
        return sorted({kv for h in heads for kv in range(1, h + 1) if h % kv == 0})


def width_faults(widths: list[int], head_dim: int) -> list[str]:
    """Widths that are no multiple of the head size."""
    wrong = [w for w in widths if w % head_dim]
    return [f"axes.width: expected multiples of head_dim {head_dim}, got {wrong[0]}; change one"] if wrong else []


def expert_faults(experts: list[int], top_ks: list[int], conditions: Conditions) -> list[str]:
    """Numbers of experts without a valid top_k."""
    for n in experts:
        if not any(valid_top_k(n, k, conditions) for k in top_ks):
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


def valid_top_k(experts: int, top_k: int, conditions: Conditions) -> bool:
    """K < E within the activation limit, or E = K = 1."""
    if experts == 1 or top_k >= experts:
        return experts == top_k == 1
    limit = conditions.max_activation_rate
    return limit is None or top_k <= math.floor(limit * experts + 1e-9)
