"""Candidate files: architectures with an id and any metrics, CSV or JSON lines; a frontier.csv is one."""

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files.json_values import finite
from nas.files.tables import csv_text, write
from objectives import outside
from objectives.calibrating.formats import FORMATS
from objectives.display_text import csv_fault, is_separated_otherwise, longer_row, read_cell, shown_name
from objectives.fitting.kept_rows import DONE, STATES, STATUS
from objectives.plugins import normalised
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import FloatArray
from search_spaces.columns import ALIASES, DEFAULTS, FILE_COLUMNS, PRECISIONS

MOST_BYTES = 100_000_000


def write_candidates(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as .csv or .jsonl.

    Raises:
        UsageError: another ending.
        PlasError: the folder cannot be written.
    """
    if path.suffix == ".csv":
        write(path, csv_text(columns))
    elif path.suffix == ".jsonl":
        rows = [
            dict(zip(columns, (v.item() if hasattr(v, "item") else v for v in row), strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
        write(path, "".join(json.dumps(finite(row), ensure_ascii=False) + "\n" for row in rows))
    else:
        raise UsageError(f"out: expected a .csv or .jsonl file, got {path}; change its ending")


def read_candidates(path: Path, beginning: str = "") -> tuple[Architectures, list[str]]:
    """Architectures and ids of a candidate file, in order; ids are the questions of a picks.csv, else row numbers.

    beginning: that of the names of an architecture's columns, `analytic_` of a corrected_picks.csv's second ones.

    Raises:
        UsageError: unreadable, or rows that are no architectures, with their line.
    """
    rows = read_rows(path)
    if not rows:
        raise UsageError(f"{path}: expected architectures, got an empty file; write one per row")
    known = {f"{beginning}{name}": name for name in (*FILE_COLUMNS, *DEFAULTS)}
    given = [{known[n]: value for n, value in row.items() if n in known and value not in ("", None)} for row in rows]
    for row in given:
        written = str(row.get("precision", ""))
        if (
            written not in PRECISIONS and normalised(written.strip()) in FORMATS
        ):  # of measurements, and none that a design may have
            del row["precision"]
    try:
        found = architectures_of(given)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    return found, [_identity(path, number, row) for number, row in enumerate(rows)]


def read_numbers(path: Path) -> dict[str, FloatArray]:
    """Columns of a candidate file that hold numbers, those of architectures aside, each (n,), NaN where a row has none.

    Raises:
        UsageError: unreadable.
    """
    rows = read_rows(path)
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if isinstance(name, str)]
    further = [name for name in names if name not in {*FILE_COLUMNS, *DEFAULTS, *ALIASES}]
    found = {name: np.array([_number(row.get(name)) for row in rows]) for name in further}
    return {name: column for name, column in found.items() if np.isfinite(column).any()}


def _number(value: Any) -> float:
    """A cell as a number; NaN of anything else."""
    try:
        found = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def read_failed(path: Path) -> list[bool]:
    """Whether each row of a candidate file says that it failed, diverged or ran out of memory, in a column state or status.

    Raises:
        UsageError: unreadable.
    """
    return [any(str(row.get(name)).strip().lower() in STATES - DONE for name in STATUS) for row in read_rows(path)]


def read_seeds(path: Path) -> dict[str, list[int]]:
    """Seeds by id where a candidate file has a column `seed`, in order, each once.

    Raises:
        UsageError: unreadable, or a seed that is none.
    """
    found: dict[str, list[int]] = {}
    for number, row in enumerate(read_rows(path)):
        given = row.get("seed")
        if given in (None, ""):
            continue
        try:
            seed = int(str(given))
        except ValueError:
            seed = -1
        if seed < 0:
            raise UsageError(
                f"{path}: row {number + 1}: seed: expected a whole number from 0, got {given!r}; correct it"
            )
        own = found.setdefault(_identity(path, number, row), [])
        own += [] if seed in own else [seed]
    return found


def _identity(path: Path, number: int, row: Mapping[str, Any]) -> str:
    try:
        return shown_name(read_cell(str(row.get("id") or row.get("question") or number)))
    except ValueError as error:
        raise UsageError(f"{path}: row {number + 1}: id: {error}") from None


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a candidate file as they are written: cells of a CSV as text, values of JSON lines.

    Raises:
        UsageError: unreadable, or too large.
    """
    try:
        text = outside.content(path, MOST_BYTES).decode("utf-8-sig")
        if path.suffix == ".jsonl":
            return [_object(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        return _cells(path, csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}: expected a candidate file, got {csv_fault(error)}; correct the file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: expected a candidate file, got {getattr(error, 'strerror', None) or error}; write CSV or JSON lines"
        ) from None


def _cells(path: Path, reader: "csv.DictReader[str]") -> list[dict[str, Any]]:
    """The rows of a CSV, each of at most as many cells as the header."""
    header = list(reader.fieldnames or ())
    if is_separated_otherwise(header):
        raise UsageError(f"{path}: expected cells separated by commas, got {header[0]}; save it with commas")
    rows = list(reader)
    for number, row in enumerate(rows, 1):
        if fault := longer_row(len(header), row.pop(None, ())):
            raise UsageError(f"{path}: row {number}: {fault}")
    return rows


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = outside.parsed(line)
    except ValueError as error:
        raise UsageError(
            f"{path}: row {number}: expected a candidate file's JSON object, got {error}; correct the line"
        ) from None
    if not isinstance(row, dict):
        raise UsageError(f"{path}: row {number}: expected an object, got {line[:40]}; write one architecture per line")
    return row
