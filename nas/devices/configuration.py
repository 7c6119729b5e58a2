"""A study of several devices as it is written: keys that it has besides a study's, its cases."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nas.files.faults import Path as Place
from nas.search.reading import ReadStudy
from nas.study.configuration import marked
from nas.study.key_marks import PerCase
from nas.study.value_parsers import none_word, split_names
from objectives.device import Device

SHIPPED = "devices_paper"  # the study of a command that names no device
REFERENCE = "qwen2.5_0.5b"  # where a case has no limit of its own: as fast as this model is there
EVERYTHING = "all"
CASE_KEYS = tuple(marked(PerCase))
WEIGHTS = ("weight", "units")


def _listed(value: Any) -> Any:
    """One mapping is a list of one: a device or a model written out."""
    return split_names(value) if isinstance(value, str) else value


class DevicesConfig(BaseModel):
    """Keys of a file for `devices` that are no study's; `devices` may map labels to devices written out.

    `models_under` are the conventions that published models are priced under; preset `device` where none were chosen.
    """

    model_config = ConfigDict(extra="forbid")
    devices: Annotated[
        Annotated[list[str], Field(min_length=1)] | dict[str, dict[str, Any]] | None, BeforeValidator(_listed)
    ] = None
    precisions: Annotated[Annotated[list[str], Field(min_length=1)] | None, BeforeValidator(_listed)] = None
    workloads: Annotated[Annotated[list[str], Field(min_length=1)] | None, BeforeValidator(_listed)] = None
    cases: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    as_fast_as: Annotated[str | dict[str, Any] | None, BeforeValidator(none_word)] = REFERENCE
    models: Annotated[list[str | dict[str, Any]], BeforeValidator(_listed), Field(min_length=1)] = [EVERYTHING]
    models_under: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """One case as given: study keys, its own budgets, an application's name, its weight or units sold; each with its place."""

    values: dict[str, Any]
    budgets: dict[str, Any] = field(default_factory=dict)
    application: str = ""
    label: str = ""
    origins: Mapping[Place, str] = field(default_factory=dict)
    weight: float = 1.0


def weight_of(given: Mapping[str, Any]) -> float:
    """The weight of a case from its keys `weight` or `units`, 1 where neither is given: installed packages count by it.

    Raises:
        ValueError: both, or no positive number.
    """
    named = [given[name] for name in WEIGHTS if name in given]
    if len(named) > 1:
        raise ValueError("expected weight or units, got both; remove one")
    value = named[0] if named else 1.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
        raise ValueError(f"expected a positive number, got {value!r}; correct it")
    return float(value)


@dataclass(frozen=True, eq=False)
class CaseList:
    """The study that all cases share, and the cases.

    `models` is the shared study under the conventions for published models. `devices` are known by name already;
    `named` is the device of cases that name none. `faults` of a table are those that were seen without knowing the study.
    `of_packages` are keys named as commands of installed packages, which read them: nothing here does.
    """

    shared: ReadStudy
    models: ReadStudy
    origins: dict[Place, str]
    rows: tuple[Row, ...]
    devices: dict[str, Device]
    named: str
    config: DevicesConfig
    notices: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    of_packages: Mapping[str, Any] = field(default_factory=dict)

    @property
    def referred(self) -> bool:
        """Whether a reference model is given, so that it also limits cases that have limits of their own."""
        return "as_fast_as" in self.config.model_fields_set

    def for_models(self) -> "CaseList":
        """The same cases under the conventions for published models, which no other model's time limits."""
        return replace(self, shared=self.models, config=self.config.model_copy(update={"as_fast_as": None}))
