"""The axis of layer kinds as a space's YAML has it: rules, each of what stands between layers of full attention."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

FULL = "full"
KINDS = ("local", "conv", "linear")
MOST_RULES = 10_000


class Rule(BaseModel):
    """One layer of full attention in `period`, the last of each, all others of one kind; without a period all are full.

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
    """Rules with lists in them as one rule per combination, in order; `kv_shared` 0 is none.

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
