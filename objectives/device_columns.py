"""Device figures that are metrics by name: price, area, lead time, date of availability."""

import math
import re
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from objectives.plugins import importable
from objectives.quantities import DATE, day_in_words, day_number, short, split
from search_spaces.columns import ALIASES, DEFAULTS, FILE_COLUMNS, SHAPE

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
OF_ARCHITECTURES = frozenset((*SHAPE, *ALIASES, *DEFAULTS, *FILE_COLUMNS))


class Figure(BaseModel):
    """A figure of a device: value, unit ("" for a pure number, `date` for a day as YYYYMMDD), source and date.

    `249`, `249 USD` and `2026-12-01` are written for {value: 249}, {value: 249, unit: USD} and {value: 20261201, unit: date}.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"type": ["object", "string", "number"]})
    value: Annotated[float, Field(allow_inf_nan=False)]
    unit: Annotated[str, Field(max_length=20)] = ""
    source: str = ""
    date: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, raw: Any) -> Any:
        given = dict(raw) if isinstance(raw, Mapping) else {"value": raw}
        if isinstance(given.get("date"), date):
            given["date"] = given["date"].isoformat()
        return {**given, **_read(given["value"], given.get("unit", ""))} if "value" in given else given

    def in_words(self) -> dict[str, str]:
        """Return value, unit, source and date as a table shows them."""
        value = day_in_words(self.value) if self.unit == "date" else f"{self.value:g}"
        return {"value": value, "unit": self.unit or "-", "source": self.source or "-", "read": self.date or "-"}


def _read(value: Any, unit: Any) -> dict[str, Any]:
    """Number and unit of a value as people write it.

    Raises:
        ValueError: neither a number nor a date, or another unit than the one beside it.
    """
    if isinstance(value, date) or (isinstance(value, str) and DATE.fullmatch(value.strip())):
        return {"value": day_number(value), "unit": "date"}
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f'expected a figure like "249 USD" or a date, got {short(value)}; write one')
    number, written = split(value, 'a figure like "249 USD" or a date') if isinstance(value, str) else (value, "")
    if written and unit and written != unit:
        raise ValueError(f"expected the figure in {unit}, got {value!r}; write the unit once")
    if not math.isfinite(number):
        raise ValueError(f'expected a figure like "249 USD" or a date, got {short(value)}; write one')
    return {"value": float(number), "unit": written or unit}


def refuse_taken(figures: dict[str, Figure]) -> dict[str, Figure]:
    """Return the figures, or raise an error if a name is already a metric's.

    Raises:
        ValueError: a name of a shipped metric, of a column of architectures, or none.
    """
    for name in figures:
        if not NAME.fullmatch(name):
            raise ValueError(
                f"{shown(name)}: expected a name of lower-case letters, digits and _, got {name!r}; call it {suggested(name)}"
            )
        if name in importable("objectives.metrics"):
            raise ValueError(taken(name, "a metric that is computed"))
        if name in OF_ARCHITECTURES:
            raise ValueError(taken(name, "a column of architectures"))
    return figures


def taken(name: str, what: str) -> str:
    """Return the error for a name that is already used for something else."""
    return f"{name}: expected a name of its own, got that of {what}; call it board_{name}"


def shown(name: str) -> str:
    """Return a name as the head of a message, without blanks or colons."""
    return re.sub(r"[\s:]+", "_", name)[:60]


def suggested(name: str) -> str:
    """Return the nearest valid name."""
    found = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:50]
    return found if NAME.fullmatch(found) else f"board_{found}".strip("_")


Figures = Annotated[dict[str, Figure], AfterValidator(refuse_taken)]
NONE: Mapping[str, Figure] = MappingProxyType({})


def recorded(study: Mapping[str, Any]) -> Mapping[str, Figure]:
    """Return the figures of the devices in a resolved study, from the first device that has each."""
    devices = [study.get("device"), *(study.get("devices") or {}).values()]
    columns = [device.get("columns", {}) for device in devices if isinstance(device, Mapping)]
    return {name: Figure.model_validate(figure) for each in reversed(columns) for name, figure in each.items()}
