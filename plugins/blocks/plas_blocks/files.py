"""A library's file: Puzzletron's JSON, a table, or a folder that PLAS wrote; and a library written as such a table."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.faults import near_file
from nas.files.tables import csv_text, write
from objectives import outside
from objectives.display_text import read_cell
from objectives.table import read_sheet
from plas_blocks import puzzletron
from plas_blocks.checking import MOST_LAYERS, Meaning, checked
from plas_blocks.folder_names import TABLE
from plas_blocks.library import Library, Row

SIDE = "library.yaml"
MOST_BYTES = 400_000_000
OWN = ("id", "layer", "block", "parent", "content")  # columns that are no metric
TRUE, FALSE = ("1", "true", "yes"), ("", "0", "false", "no")


def read_library(path: Path, meaning: Meaning) -> Library:
    """The library of a JSON file, a CSV file, or a folder that holds one.

    Raises:
        UsageError: no such file, another format, or a library with faults.
    """
    if os.path.isdir(path):  # unlike Path.is_dir of any name
        held = [name for name in (TABLE, puzzletron.FILE) if os.path.isfile(path / name)]
        if not held:
            raise UsageError(f"{path}: expected {TABLE} or {puzzletron.FILE} in the folder, got neither; name the file")
        return read_library(path / held[0], _beside(path / SIDE, meaning) if held[0] == TABLE else meaning)
    source = text_of(path, "a library of blocks", "name a CSV file, Puzzletron's JSON or a folder with one")
    if path.suffix.lower() == ".json":
        rows, scores = puzzletron.rows_of(str(path), _json(path, source))
        meaning = Meaning((*meaning.scores, *scores), meaning.larger, meaning.rest)
    else:
        rows = _table(path)
    return checked(str(path), rows, meaning)


def text_of(path: Path, what: str, otherwise: str) -> str:
    """The text of a file from outside, at most as long as a library can be.

    Raises:
        UsageError: no such file, no text, or too much of it.
    """
    try:
        return outside.content(path, MOST_BYTES).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        message = getattr(error, "strerror", None) or "bytes that are no text"
        raise UsageError(f"{path}: expected {what}, got {message}; {near_file(path, otherwise)}") from None


def _json(path: Path, source: str) -> Any:
    try:
        return outside.parsed(source)
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON, got {str(error)[:80]}; write it again") from None


def _beside(path: Path, meaning: Meaning) -> Meaning:
    """Meaning of the columns by a folder's library.yaml; what the user gives goes before it."""
    if not path.is_file():
        return meaning
    content = yaml_source.read(path, own=True)[0]
    told = content if isinstance(content, dict) else {}
    scores, larger, rest = (told.get(key) for key in ("scores", "bigger_is_better", "rest"))
    return Meaning(
        meaning.scores or tuple(map(str, scores if isinstance(scores, list) else ())),
        meaning.larger or tuple(map(str, larger if isinstance(larger, list) else ())),
        meaning.rest or {str(k): v for k, v in (rest if isinstance(rest, dict) else {}).items() if _number(v)},
    )


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _table(path: Path) -> list[Row]:
    """Rows of a CSV with the columns layer, block, and metrics; parent marks the parent's own blocks."""
    try:
        sheet = read_sheet(path, most_bytes=MOST_BYTES)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if lacking := [name for name in ("layer", "block") if name not in sheet.header]:
        text = f"no {' and no '.join(lacking)}"
        raise UsageError(
            f"{path}: expected the columns layer, block and one a metric, got {text}; name them in the first row"
        )
    return [_line(path, number, row) for number, row in zip(sheet.lines.tolist(), sheet.rows, strict=True)]


def _line(path: Path, number: int, line: Mapping[str, str]) -> Row:
    where = f"line {number}"
    text = {read_cell(name): read_cell(value) for name, value in line.items()}
    values = {name: _value(cell) for name, cell in text.items() if name not in OWN}
    marked = text.get("parent", "").lower()
    if marked not in (*TRUE, *FALSE):
        raise UsageError(f"{path}: {where}: parent: expected 1 or 0, got {marked[:20]!r}; correct it")
    content = _json(path, text["content"]) if text.get("content") else {}
    content = content if isinstance(content, dict) else {}
    config = content.get("block_config")
    kind = json.dumps(config, sort_keys=True) if config is not None else ""
    return Row(
        where, layers_of(f"{path}: {where}", text["layer"]), text["block"], marked in TRUE, values, kind, content
    )


def layers_of(where: str, text: str) -> tuple[int, ...]:
    """`7` or `7-9`.

    Raises:
        UsageError: neither, or more layers than a model has.
    """
    ends = [end.strip() for end in text.split("-")]
    digits = len(ends) < 3 and all(end.isascii() and end.isdigit() and len(end) < 7 for end in ends)
    if not digits or not int(ends[0]) <= int(ends[-1]) < MOST_LAYERS:
        raise UsageError(
            f"{where}: layer: expected a number such as 7, or 7-9, got {text[:20]!r}; count from 0 to {MOST_LAYERS - 1} at most"
        )
    return tuple(range(int(ends[0]), int(ends[-1]) + 1))


def _value(cell: str) -> float | str | None:
    """A cell's number, nothing of an empty one, the text of what is none."""
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def write_library(folder: Path, library: Library) -> None:
    """library.csv with every replacement and library.yaml with what its columns mean.

    Raises:
        PlasError: the folder cannot be written.
    """
    n = len(library)
    columns: dict[str, Any] = {"id": list(range(n)), "layer": [library.written_layers(row) for row in range(n)]}
    columns |= {"block": list(library.blocks), "parent": library.parent.astype(int), **library.metrics}
    if any(library.contents):
        columns["content"] = [json.dumps(content) if content else "" for content in library.contents]
    write(folder / TABLE, csv_text(columns))
    side = {"scores": list(library.scores), "bigger_is_better": sorted(library.larger), "rest": dict(library.rest)}
    write(folder / SIDE, yaml_source.dump(side))
