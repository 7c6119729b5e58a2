"""Cases from a table: a row each, columns named as study keys, every fault with its line and column."""

import re
from pathlib import Path
from typing import Any

from nas.devices.configuration import WEIGHTS, Row, weight_of
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import Faults, unknown
from nas.files.faults import Path as Place
from nas.study.budget_parser import split_budgets
from objectives.table import NUMBER, read_sheet

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
