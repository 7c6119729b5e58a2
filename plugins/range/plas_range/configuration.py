"""A study of several devices as it is written: keys that it has besides a study's, its cases, a table of cases (a row each)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.files.faults import Path as Place
from nas.search.reading import ReadStudy
from nas.study.configuration import StudyConfig, marked
from nas.study.value_parsers import PerCase, none_word, split_budgets, split_names
from objectives.device import Device
from objectives.table import NUMBER, read_sheet

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


WORDS = ("device", "precision", "latency", "attention")
NUMBERS = ("batch", "input_tokens", "output_tokens", "input_text", "output_text", "vocabulary")
COLUMNS = ("case", *WORDS, *NUMBERS, "application", "budget", *WEIGHTS)
MOST_ROWS = 10_000
BETWEEN = re.compile(r"\s*;\s*|\s+(?=[A-Za-z_][\w@.:]*\s*(?:<=|>=|=))")  # before the next metric=limit


def table_rows(path: Path) -> tuple[list[Row], list[tuple[str, str]]]:
    """The cases of a table, and what is wrong with their labels and budgets; empty cells are left to the study.

    Raises:
        UsageError: not readable, unknown columns, a column twice.
    """
    try:
        sheet = read_sheet(path, "case", most=MOST_ROWS)
    except ValueError as error:
        raise UsageError(str(error)) from None
    faults = Faults()
    for i, name in enumerate(sheet.header, 1):
        if name not in COLUMNS:
            faults.lines.append((f"{path}:1:{i}", unknown("a column", name, COLUMNS)))
    faults.raise_if_any()
    rows = [
        _row(path, line, sheet.header, cells, faults)
        for line, cells in zip(sheet.lines.tolist(), sheet.body, strict=True)
    ]
    _refuse_twins(rows, faults)
    return rows, faults.lines


def _row(path: Path, line: int, names: list[str], cells: list[str], faults: Faults) -> Row:
    """A row's cells under study keys, with `file:line:column` of each."""
    given = {
        name: (cell, f"{path}:{line}:{i + 1}") for i, (name, cell) in enumerate(zip(names, cells, strict=True)) if cell
    }
    values: dict[str, Any] = {name: given[name][0] for name in WORDS if name in given}
    values |= {name: _value(*given[name]) for name in NUMBERS if name in given}
    origins: dict[Place, str] = {(name,): place for name, (_, place) in given.items()} | {(): f"{path}:{line}"}
    budgets = {}
    if "budget" in given:
        origins[("budgets",)] = given["budget"][1]
        try:
            budgets = split_budgets([part for part in BETWEEN.split(given["budget"][0]) if part.strip()])
        except ValueError as error:
            faults.lines.append((given["budget"][1], f"budget: {error}"))
    label, application = (given.get(name, ("", ""))[0] for name in ("case", "application"))
    return Row(values, budgets, application, label, origins, _weight(given, faults))


def _value(cell: str, place: str) -> Any:
    """A number as Python writes it; of anything else the text, which what takes no quantity refuses."""
    return yaml_source.parse(cell, place)[0] if NUMBER.fullmatch(cell) else cell


def _weight(given: dict[str, tuple[str, str]], faults: Faults) -> float:
    """The weight of a row; a fault is noted at its cell."""
    cells = {name: given[name] for name in WEIGHTS if name in given}
    try:
        return weight_of({name: _value(*cell) for name, cell in cells.items()})
    except ValueError as error:
        name, (_, place) = list(cells.items())[-1]
        faults.lines.append((place, f"{name}: {error}"))
        return 1.0


def _refuse_twins(rows: list[Row], faults: Faults) -> None:
    seen: dict[str, str] = {}
    for row in rows:
        place = row.origins.get(("case",), "")
        if row.label in seen:
            before = seen[row.label].rsplit(":", 2)[1]
            faults.lines.append(
                (place, f"case: expected each label once, got {row.label!r} as in line {before}; rename one")
            )
        elif row.label:
            seen[row.label] = place


# What a file for `devices` may hold, for its schema.
SeveralDevices = create_model("SeveralDevices", __base__=(DevicesConfig, StudyConfig))
