"""The axes and conditions of a space as its YAML has them, checked with pydantic."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from search_spaces.columns import PRECISIONS
from search_spaces.layer_rules import Rule, expanded

MOST_TOKENS = 10**18
#: Limits on what a design can do at least, or (`UPPER`) may share at most, by their names among budgets, and the conditions that they are.
CAPABILITIES = {"full_layers": "min_full_layers", "window": "min_window", "kv_shared": "max_kv_shared"}
UPPER = ("kv_shared",)


def _whole(value: Any) -> Any:
    """A number of tokens as YAML has it, 1e9, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Tokens = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=1, le=MOST_TOKENS)]
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
    """The axes; the FFN axis is given as ratios or as expert sizes, those of layers, heads and tokens only where searched."""

    model_config = ConfigDict(extra="forbid")

    depth: list[Positive]
    layers: list[Rule] | None = None
    width: list[Positive]
    head_dim: list[Positive] | None = None
    n_heads: list[Positive] | None = None
    n_experts: list[Positive] = [1]
    top_k: list[Positive] = [1]
    expert_ffn_ratio: list[Annotated[float, Field(gt=0, le=1000)]] | None = None
    expert_size: list[Positive] | None = None
    n_kv_heads: list[int | str] | str
    tokens: list[Tokens] | None = None
    precision: list[str] | None = None

    @field_validator(
        *("depth", "width", "head_dim", "n_heads", "n_experts", "top_k", "expert_size", "n_kv_heads"), mode="before"
    )
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

    @field_validator(
        *("depth", "width", "head_dim", "n_heads", "n_experts", "top_k", "expert_size", "expert_ffn_ratio"),
        *("n_kv_heads", "tokens"),
    )
    @classmethod
    def _ascending(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if not value:
            raise ValueError("expected at least one value, got an empty list; add values")
        if len(set(value)) < len(value):
            raise ValueError(f"expected distinct values, got {value}; remove the repeats")
        return sorted(v for v in value if not isinstance(v, str)) + [v for v in value if isinstance(v, str)]

    @field_validator("layers", mode="before")
    @classmethod
    def _each_rule(cls, value: Any) -> Any:
        return None if value is None else expanded(value)

    @field_validator("layers")
    @classmethod
    def _distinct_rules(cls, value: list[Rule] | None) -> list[Rule] | None:
        if value is not None and not value:
            raise ValueError("expected at least one rule, got an empty list; add full")
        seen = set[Rule]()
        for rule in value or ():
            if rule in seen:
                raise ValueError(f"expected distinct rules, got {rule} twice; remove the repeat")
            seen.add(rule)
        return value

    @field_validator("precision")
    @classmethod
    def _formats(cls, value: list[str] | None) -> list[str] | None:
        """Formats in the order of `PRECISIONS`, each once."""
        known = PRECISIONS[1:]
        for name in value or ():
            if name not in known:
                raise ValueError(f"expected formats among {', '.join(known)}, got {name!r}; correct it")
        if value is not None and (not value or len(set(value)) < len(value)):
            raise ValueError(f"expected at least one format, each once, got {value}; correct it")
        return None if value is None else sorted(value, key=known.index)

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
    min_query_ratio: Annotated[float, Field(gt=0)] | None = None
    max_query_ratio: Annotated[float, Field(gt=0)] | None = None
    min_full_layers: Positive | None = None
    full_layer_every: Positive | None = None
    min_window: Positive | None = None
    max_kv_shared: Annotated[int, Field(strict=True, ge=0)] | None = None
