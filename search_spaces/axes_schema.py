"""Pydantic models for the axes of a space, its layer rules and its conditions."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from search_spaces.columns import CODES

FULL = "full"
KINDS = ("local", "conv", "linear")
MOST_RULES = 10_000


class Rule(BaseModel):
    """Layers with full attention at the end of each `period` and one other kind elsewhere; without a period all are full.

    local: tokens of their window; conv: taps of their convolution; linear: family of their linear attention; kv_shared:
    layers at the end that read the KV cache of the last layer of their own kind before them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"type": ["object", "string"]})

    period: Annotated[int, Field(strict=True, ge=2, le=10_000)] | None = None
    local: Annotated[int, Field(strict=True, ge=1, le=2**31)] | None = None
    conv: Annotated[int, Field(strict=True, ge=1, le=1_000)] | None = None
    linear: Literal["deltanet", "mamba2"] | None = None
    kv_shared: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _full(cls, value: Any) -> Any:
        if isinstance(value, str) and value != FULL:
            raise ValueError(f"expected full or a mapping, got {value!r}; write for example {{period: 4, local: 1024}}")
        return {} if value == FULL else value

    @model_validator(mode="after")
    def _whole(self) -> "Rule":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) > 1:
            raise ValueError(f"expected one of {', '.join(KINDS)}, got {' and '.join(given)}; make two rules of them")
        if given and self.period is None:
            raise ValueError(f"expected period beside {given[0]}, got none; write for example period: 4")
        if self.period is not None and not given:
            raise ValueError(
                f"expected {', '.join(KINDS[:-1])} or {KINDS[-1]} beside period {self.period}, got none; add one"
            )
        if self.kv_shared is not None and given and given[0] != "local":
            raise ValueError(f"kv_shared: expected layers with a cache, full or local, got {given[0]}; drop it")
        return self

    @model_serializer
    def _written(self) -> str | dict[str, Any]:
        return {name: value for name, value in self if value is not None} or FULL

    def __str__(self) -> str:
        """`full`, `1 in 6 full, local 512, 10 share KV`."""
        of_others = [f"{kind} {value}" for kind in KINDS if (value := getattr(self, kind)) is not None]
        first = FULL if self.period is None else f"1 in {self.period} {FULL}"
        return ", ".join([first, *of_others, *([f"{self.kv_shared} share KV"] if self.kv_shared else [])])


def expanded(value: Any) -> Any:
    """Return rules without lists: one rule per combination, in order; `kv_shared` 0 means none.

    Raises:
        ValueError: too many.
    """
    return [rule for part in (value if isinstance(value, list) else [value]) for rule in _each(part)]


def _each(part: Any) -> Iterator[Any]:
    if not isinstance(part, dict):
        yield part
        return
    lists = [values if isinstance(values, list) else [values] for values in part.values()]
    if (count := math.prod(map(len, lists))) > MOST_RULES:
        raise ValueError(f"expected at most {MOST_RULES:,} rules, got {count:,}; shorten a list")
    for values in product(*lists):
        yield {name: v for name, v in zip(part, values, strict=True) if not (name == "kv_shared" and v == 0)}


MOST_TOKENS = 10**18
OF_RULES = "layers"  # the axis whose values are rules, none a number or a word
OF_NAMES = "device"  # the axis whose values are names, in the order they are given in
#: Limits on what a design can do at least, or (`UPPER`) may share at most, by their names among budgets, and the conditions that they are.
CAPABILITIES = {"full_layers": "min_full_layers", "window": "min_window", "kv_shared": "max_kv_shared"}
UPPER = ("kv_shared",)


def _whole(value: Any) -> Any:
    """A number of tokens as YAML has it, 1e9, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _no_truth(value: Any) -> Any:
    """A value that is neither true nor false, which count as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {value}; correct it")
    return value


Tokens = Annotated[int, BeforeValidator(_whole), Field(strict=True, ge=1, le=MOST_TOKENS)]
Positive = Annotated[int, Field(strict=True, ge=1, le=2**31)]
Label = Annotated[str, Field(min_length=1, max_length=200)]
Vocabulary = Annotated[int, Field(strict=True, ge=1, le=10**7)]


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


RuleAsWritten = str | dict[str, str | int | list[str | int]]
RulesAsWritten = RuleAsWritten | list[RuleAsWritten] | None
AxisAsWritten = str | Range | list[float | str | bool | Range] | None


class Axes(BaseModel):
    """The axes; the FFN axis is ratios or expert sizes; layers, heads and further columns appear only if searched."""

    model_config = ConfigDict(extra="forbid")

    depth: list[Positive]
    layers: list[Rule] | None = None
    width: list[Positive]
    head_dim: list[Positive] | None = None
    n_heads: list[Positive] | None = None
    n_experts: list[Positive] = [1]
    top_k: list[Positive] = [1]
    expert_ffn_ratio: list[Annotated[float, BeforeValidator(_no_truth), Field(gt=0, le=1000)]] | None = None
    expert_size: list[Positive] | None = None
    n_kv_heads: list[Annotated[int | str, BeforeValidator(_no_truth)]] | str
    tokens: list[Tokens] | None = None
    precision: list[str] | None = None
    speculation: list[str] | None = None
    experts_in: list[str] | None = None
    device: list[Label] | None = None
    vocabulary: list[Vocabulary] | None = None
    tied: list[bool] | None = None

    @field_validator("*", mode="before", json_schema_input_type=AxisAsWritten)
    @classmethod
    def _spread(cls, value: Any, info: ValidationInfo) -> Any:
        """Ranges become lists before the items are checked one by one."""
        if info.field_name in (OF_RULES, OF_NAMES, *CODES):
            return value
        if isinstance(value, dict):
            return Range.model_validate(value).values()
        if isinstance(value, list):
            return [
                v for part in value for v in (Range.model_validate(part).values() if isinstance(part, dict) else [part])
            ]
        return value

    @field_validator("*")
    @classmethod
    def _ascending(cls, value: Any, info: ValidationInfo) -> Any:
        """Values in order, each once; words in the order of `CODES`."""
        if value is None or isinstance(value, str) or info.field_name == OF_RULES:
            return value
        if info.field_name in CODES:
            return words_of(value, CODES[info.field_name])
        if not value:
            raise ValueError("expected at least one value, got an empty list; add values")
        if len(set(value)) < len(value):
            raise ValueError(f"expected distinct values, got {value}; remove the repeats")
        if all(isinstance(v, bool) for v in value):
            return sorted(value, reverse=True)  # of equal designs one with one table comes first
        if info.field_name == OF_NAMES:
            return value
        return sorted(v for v in value if not isinstance(v, str)) + [v for v in value if isinstance(v, str)]

    @field_validator("layers", mode="before", json_schema_input_type=RulesAsWritten)
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


def words_of(value: list[str], codes: tuple[str, ...]) -> list[str]:
    """Return the values of an axis of words in code order, each once.

    Raises:
        ValueError: an unknown word, a repeated one, or none.
    """
    known = [word for word in codes if word]
    for word in value:
        if word not in known:
            raise ValueError(f"expected values among {', '.join(known)}, got {word!r}; correct it")
    if not value or len(set(value)) < len(value):
        raise ValueError(f"expected at least one value, each once, got {value}; correct it")
    return sorted(value, key=known.index)


class Conditions(BaseModel):
    """Limits that relate genes to each other."""

    model_config = ConfigDict(extra="forbid")

    max_expert_ffn_ratio: Annotated[float, Field(gt=0)] | None = None
    max_activation_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    min_top_k: Positive | None = None
    min_query_ratio: Annotated[float, Field(gt=0)] | None = None
    max_query_ratio: Annotated[float, Field(gt=0)] | None = None
    min_full_layers: Positive | None = None
    full_layer_every: Positive | None = None
    min_window: Positive | None = None
    max_kv_shared: Annotated[int, Field(strict=True, ge=0)] | None = None
