"""Candidate files: architectures with an id and any metrics, CSV or JSON lines; a frontier.csv is one."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.tables import csv_text, finite, write
from objectives.display_text import read_cell, shown_name
from objectives.measured_formats import FORMATS
from objectives.plugins import normalised
from objectives.table import mended, numbers_of, read_sheet
from objectives.table_names import DONE, STATES, STATUS, inexact
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import FloatArray, python_value
from search_spaces.columns import NAMES, PRECISIONS, near_column, unknown_columns

OF_TRAINING = "tokens"  # lists of trainings have others beside
NAMED = ("id", "question", "name", "model")
BEGINS = re.compile(r"[+-]?[.,]?\d")  # as a number does


def write_candidates(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as .csv or .jsonl.

    Raises:
        UsageError: another ending.
        PlasError: the folder cannot be written.
    """
    if path.suffix == ".csv":
        write(path, csv_text(columns))
    elif path.suffix == ".jsonl":
        rows = [dict(zip(columns, map(python_value, row), strict=True)) for row in zip(*columns.values(), strict=True)]
        write(path, "".join(json.dumps(finite(row), ensure_ascii=False) + "\n" for row in rows))
    else:
        raise UsageError(f"out: expected a .csv or .jsonl file, got {path}; change its ending")


def read_candidates(path: Path) -> tuple[Architectures, list[str]]:
    """Architectures and ids of a candidate file, in order; ids are the questions of a picks.csv, else row numbers.

    Raises:
        UsageError: unreadable, or rows that are no architectures, with their line.
    """
    rows = read_rows(path)
    if not rows:
        raise UsageError(f"{path}: expected architectures, got an empty file; write one per row")
    further = [name for name in rows[0] if name not in NAMES]
    misspelt = [name for name in further if near_column(name, rows[0]) not in ("", OF_TRAINING)]
    faults = inexact(further, rows[0], {*NAMES} - {OF_TRAINING}, path)
    if faults := faults or [f"{path}:1: {fault}" for fault in unknown_columns(misspelt)]:
        raise UsageError("\n".join(faults))
    given: list[dict[str, Any]] = [{n: cell for n, cell in row.items() if n in NAMES and cell} for row in rows]
    for row in given:
        written = str(row.get("precision", ""))
        if written not in PRECISIONS and normalised(written.strip()) in FORMATS:  # of measurements, not of designs
            del row["precision"]
    try:
        found = architectures_of(given)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    return found, [_identity(path, number, row) for number, row in enumerate(rows)]


def read_numbers(path: Path) -> dict[str, FloatArray]:
    """Columns of a candidate file that hold numbers, those of architectures aside, each (n,), NaN where a row has none.

    Raises:
        UsageError: unreadable, or a number that is written otherwise than Python writes it.
    """
    rows = read_rows(path)
    further = [name for name in rows[0] if name not in NAMES] if rows else []
    numbers: dict[str, FloatArray] = {}
    for name in further:
        cells = [row[name] for row in rows]
        values = numbers_of(cells)
        if not np.isfinite(values).any():
            continue
        for number, cell in enumerate(cells, 1):
            if name not in NAMED and not np.isfinite(values[number - 1]) and BEGINS.match(cell):
                raise UsageError(f"{path}: row {number}: {name}: expected a number, got {cell!r}; {mended(name, cell)}")
        numbers[name] = np.where(np.isfinite(values), values, np.nan)
    return numbers


def read_failed(path: Path) -> list[bool]:
    """Whether each row of a candidate file says that it failed, diverged or ran out of memory, in a column state or status.

    Raises:
        UsageError: unreadable.
    """
    return [any(row.get(name, "").lower() in STATES - DONE for name in STATUS) for row in read_rows(path)]


def read_seeds(path: Path) -> dict[str, list[int]]:
    """Seeds by id where a candidate file has a column `seed`, in order, each once.

    Raises:
        UsageError: unreadable, or a seed that is none.
    """
    found: dict[str, list[int]] = {}
    for number, row in enumerate(read_rows(path)):
        if not (given := row.get("seed", "")):
            continue
        try:
            seed = int(given)
        except ValueError:
            seed = -1
        if seed < 0:
            raise UsageError(
                f"{path}: row {number + 1}: seed: expected a whole number from 0, got {given!r}; correct it"
            )
        own = found.setdefault(_identity(path, number, row), [])
        own += [] if seed in own else [seed]
    return found


def _identity(path: Path, number: int, row: Mapping[str, str]) -> str:
    try:
        return shown_name(read_cell(row.get("id") or row.get("question") or str(number)))
    except ValueError as error:
        raise UsageError(f"{path}: row {number + 1}: id: {error}") from None


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a candidate file as they are written, "" where one lacks a column.

    Raises:
        UsageError: unreadable, or no table.
    """
    try:
        return read_sheet(path).rows
    except ValueError as error:
        raise UsageError(str(error)) from None
