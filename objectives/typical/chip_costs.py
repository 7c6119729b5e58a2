"""Cost models of chips: area per dense TOP/s and per MB of SRAM, from published figures, as functions in formulas."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.plugins import packaged

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Published(BaseModel):
    """A published figure: its value, what was read, where and from when it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    value: _Positive
    read: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(pattern=r"^https://")]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Coefficient(BaseModel):
    """A cost per unit of one figure of a chip; `low` and `high` are the least and the greatest of the published figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    of: str
    unit: str
    value: _Positive
    low: _Positive
    high: _Positive
    what: str
    figures: Annotated[tuple[Published, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _of_figures(self) -> Self:
        """The ends are published figures, and so is the value."""
        values = [each.value for each in self.figures]
        if (self.low, self.high) != (min(values), max(values)) or self.value not in values:
            raise ValueError(f"expected ends and a value among {values}, got {self.low}, {self.value}, {self.high}")
        return self


@cache
def coefficients() -> Mapping[str, Coefficient]:
    """The shipped coefficients by the names that formulas call them by."""
    content = packaged("objectives.typical", "chip_costs")["coefficients"]
    return MappingProxyType({name: Coefficient.model_validate(_dated(each)) for name, each in content.items()})


def _dated(content: Mapping[str, Any]) -> dict[str, Any]:
    """Dates as text, which YAML reads as days."""
    figures = [{**each, "date": str(each["date"])} for each in content["figures"]]
    return {**content, "figures": figures}


def functions() -> dict[str, Callable[..., Any]]:
    """Each coefficient times a figure, by its name; `NAME_low` and `NAME_high` are the ends of what was published."""
    found: dict[str, Callable[..., Any]] = {}
    for name, known in coefficients().items():
        ends = {name: known.value, f"{name}_low": known.low, f"{name}_high": known.high}
        found |= {each: lambda x, by=by: by * x for each, by in ends.items()}
    return found
