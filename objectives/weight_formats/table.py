"""The table of weight formats, checked, and bytes per weight in rows of any length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict

from objectives.device import Peak
from objectives.packaged import packaged
from search_spaces.arrays import FloatArray

Values = FloatArray | float
#: Classes of tensors; `weights` is of every matrix of a layer that has none of its own.
TensorClass = Literal["weights", "values", "down", "experts", "expert_down", "head", "embedding", "small"]
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


class WeightFormat(BaseModel):
    """A weight format, keys as `formats.yaml` describes them; a class of two types has each in half of the layers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    weights: TypeNames
    values: TypeNames | None = None
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

    def types(self, kind: TensorClass) -> tuple[BlockType, ...]:
        """The types of a class of tensors."""
        own: TypeNames | None = getattr(self, kind)
        if own is None and kind == "expert_down":
            return self.types("down")
        return tuple(TYPES[name] for name in own or self.weights)

    def bytes_of(self, kind: TensorClass, row: FloatArray | None = None) -> Values:
        """Bytes per weight of a class in rows of so many weights, (n,) where rows are; of whole blocks without.

        Of two types the mean, as half of the layers has each.
        """
        types = self.types(kind)
        if row is None or all(each.fallback is None for each in types):
            return sum(each.per_weight for each in types) / len(types)
        found: FloatArray = np.mean([each.bytes_in(row) for each in types], axis=0)
        return found

    @property
    def plain(self) -> bool:
        """Whether every matrix of a layer has one type, whatever its rows."""
        own = {self.types(kind) for kind in ("weights", "values", "down", "experts", "expert_down")}
        return len(own) == 1 and all(each.fallback is None for each in self.types("weights"))


def _types(content: Mapping[str, Mapping[str, Any]]) -> dict[str, BlockType]:
    """The types by name, each after the one that it falls back to."""
    found: dict[str, BlockType] = {}
    for name, keys in content.items():
        fallback = keys.get("fallback")
        found[name] = BlockType(name, keys["weights"], keys["bytes"], None if fallback is None else found[fallback])
    return found


_CONTENT: Any = packaged("objectives.weight_formats", "formats")
TYPES: Mapping[str, BlockType] = _types(_CONTENT["types"])
WEIGHT_FORMATS: Mapping[str, WeightFormat] = {
    name: WeightFormat.model_validate(keys) for name, keys in _CONTENT["formats"].items()
}
