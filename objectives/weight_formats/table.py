"""The table of weight formats, checked: bytes per weight in rows of any length, and what they cost in loss (`costs.yaml`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from objectives.device import Peak
from objectives.plugins import packaged
from search_spaces.arrays import FloatArray

Values = FloatArray | float
#: Classes of tensors; `weights` is of every matrix of a layer that has none of its own.
TensorClass = Literal[
    "weights", "values", "output", "down", "experts", "expert_down", "head", "embedding", "tables", "small"
]
TypeNames = Annotated[tuple[str, ...], BeforeValidator(lambda names: (names,) if isinstance(names, str) else names)]


@dataclass(frozen=True)
class BlockType:
    """A type of tensors: weights per block of a row, bytes of the block, the type of rows that whole blocks do not fill."""

    name: str
    weights: int
    bytes: float
    fallback: "BlockType | None" = None

    @property
    def per_weight(self) -> float:
        """Bytes per weight of whole blocks."""
        return self.bytes / self.weights

    def fitting(self, row: int) -> "BlockType":
        """The type that rows of so many weights are written in."""
        return self if self.fallback is None or row % self.weights == 0 else self.fallback.fitting(row)

    def bytes_in(self, row: FloatArray) -> FloatArray:
        """Bytes per weight in rows of so many weights, (n,)."""
        if self.fallback is None:
            return np.full(len(row), self.per_weight)
        found: FloatArray = np.where(row % self.weights == 0, self.per_weight, self.fallback.bytes_in(row))
        return found


class OwnType(BaseModel):
    """A type that a format defines for itself, keys as those of `types` in `formats.yaml`; rows that it does not fill are in one that ships."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    weights: Annotated[int, Field(strict=True, ge=1, le=10**6)]
    bytes: Annotated[float, Field(gt=0, le=10**7)]
    fallback: str | None = None


class WeightFormat(BaseModel):
    """A weight format, keys as `formats.yaml` describes them; a class of two types has each in half of the layers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    types: dict[str, OwnType] = {}
    weights: TypeNames
    values: TypeNames | None = None
    output: TypeNames | None = None
    down: TypeNames | None = None
    experts: TypeNames | None = None
    expert_down: TypeNames | None = None
    head: TypeNames = ("F16",)
    embedding: TypeNames = ("F16",)
    small: TypeNames = ("F16",)
    inputs: str = "F16"
    activations: str = "F16"
    peak: Peak = "fp16"
    profile: str = ""
    measured_as: tuple[str, ...] = ()
    source: str

    def types_of(self, kind: TensorClass) -> tuple[BlockType, ...]:
        """The types of a class of tensors."""
        # Tables of per-layer embeddings are most of a model that has them: no engine leaves these in 16 bits.
        if kind == "tables":
            return self.types_of("embedding" if "embedding" in self.model_fields_set else "weights")
        own: TypeNames | None = getattr(self, kind)
        if own is None and kind == "expert_down":
            return self.types_of("down")
        return tuple(self.type_of(name) for name in own or self.weights)

    def type_of(self, name: str) -> BlockType:
        """A type by its name: the format's own, or one that ships."""
        if name not in self.types:
            return TYPES[name]
        own = self.types[name]
        return BlockType(name, own.weights, own.bytes, None if own.fallback is None else TYPES[own.fallback])

    def bytes_of(self, kind: TensorClass, row: FloatArray | None = None) -> Values:
        """Bytes per weight of a class in rows of so many weights, (n,) where rows are; of whole blocks without.

        Of two types the mean, as half of the layers has each.
        """
        types = self.types_of(kind)
        if row is None or all(each.fallback is None for each in types):
            return sum(each.per_weight for each in types) / len(types)
        found: FloatArray = np.mean([each.bytes_in(row) for each in types], axis=0)
        return found

    @model_validator(mode="after")
    def _known_types(self) -> "WeightFormat":
        """Refuse types that nothing defines."""
        lists = [getattr(self, kind) for kind in get_args(TensorClass) if kind != "tables"]
        named = [name for names in lists for name in names or ()] + [self.inputs, self.activations]
        fallbacks = [own.fallback for own in self.types.values() if own.fallback is not None]
        unknown = [name for name in named if name not in {*TYPES, *self.types}] + [
            n for n in fallbacks if n not in TYPES
        ]
        if unknown or TYPES.keys() & self.types.keys():
            got = unknown[0] if unknown else f"another {min(TYPES.keys() & self.types.keys())}"
            raise ValueError(
                f"types: expected {', '.join(TYPES)} or types of its own, got {got}; define it under types"
            )
        return self

    @property
    def plain(self) -> bool:
        """Whether every matrix of a layer has one type, whatever its rows."""
        own = {self.types_of(kind) for kind in ("weights", "values", "output", "down", "experts", "expert_down")}
        return len(own) == 1 and all(each.fallback is None for each in self.types_of("weights"))


def _types(content: Mapping[str, Mapping[str, Any]]) -> dict[str, BlockType]:
    """The types by name, each after the one that it falls back to."""
    found: dict[str, BlockType] = {}
    for name, keys in content.items():
        fallback = keys.get("fallback")
        found[name] = BlockType(name, keys["weights"], keys["bytes"], None if fallback is None else found[fallback])
    return found


_CONTENT: Any = packaged("objectives.weight_formats", "formats")
TYPES: Mapping[str, BlockType] = _types(_CONTENT["types"])
WEIGHT_FORMATS: dict[str, WeightFormat] = {
    name: WeightFormat.model_validate(keys) for name, keys in _CONTENT["formats"].items()
}


BILLION = 1e9
ENDS = (0.05, 0.95)
Nats = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FormatCosts(BaseModel):
    """Cost of format f of a model with N parameters without embeddings: nats_f · (N / 1e9)^−exponent.

    draws: exponent and nats of each format, in the order of `nats`, of a model that nothing was measured of. fitted_on: the
    parameters of the models measured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    nats: dict[str, Nats]
    exponent: Annotated[float, Field(ge=0)]
    fitted_on: dict[str, tuple[float, float]]
    models: dict[str, Annotated[int, Field(gt=0)]]
    draws: tuple[str, ...]

    @model_validator(mode="after")
    def _alike(self) -> "FormatCosts":
        wrong = [row for row in self.draws if len(row.split()) != 1 + len(self.nats)]
        if wrong or not self.nats.keys() == self.fitted_on.keys() == self.models.keys():
            raise ValueError(
                "draws, fitted_on, models: expected those of the formats of nats; run benchmarks/format_costs.py"
            )
        return self

    def measured(self, name: str) -> tuple[str, str] | None:
        """The format itself twice, where it was measured; else those next below and above it in bits, between whose costs its own is; None without."""
        if name in self.nats:
            return name, name
        if name not in WEIGHT_FORMATS or WEIGHT_FORMATS[name].inputs != "F16":
            return None
        bits = {each: (float(WEIGHT_FORMATS[each].bytes_of("experts")), self.nats[each]) for each in self.nats}
        own = float(WEIGHT_FORMATS[name].bytes_of("experts"))
        fewer, more = [each for each in bits if bits[each][0] <= own], [each for each in bits if bits[each][0] >= own]
        return (max(fewer, key=bits.__getitem__), min(more, key=bits.__getitem__)) if fewer and more else None

    def term(self, names: tuple[str, str]) -> tuple[float, float]:
        """Scale and exponent of the cost of what was `measured`, scale · N^−exponent nats; of two formats half way in logarithms."""
        return math.sqrt(self.nats[names[0]] * self.nats[names[1]]) * BILLION**self.exponent, self.exponent

    def drawn_terms(self, names: tuple[str, str]) -> tuple[FloatArray, FloatArray]:
        """The same under each draw, (draws,) both; of two formats the draws are of one and the other in turn."""
        rows, (first, second) = drawn_rows(), (1 + list(self.nats).index(name) for name in names)
        exponents = rows[:, 0]
        return np.where(np.arange(len(rows)) % 2, rows[:, first], rows[:, second]) * BILLION**exponents, exponents


@cache
def format_costs() -> FormatCosts:
    """Those of this package."""
    return FormatCosts.model_validate(packaged("objectives.weight_formats", "costs"))


@cache
def drawn_rows() -> FloatArray:
    """The numbers of the draws, (draws, 1 + formats)."""
    return np.array([[float(number) for number in row.split()] for row in format_costs().draws])
