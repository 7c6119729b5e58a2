"""The reader of users' tables: CSV or JSON lines, named columns, numbers as Python writes them.

Nothing is guessed. What is written otherwise is refused by its line and column, with the line of pandas that mends it.
"""

import ast
import codecs
import csv
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from objectives import outside
from objectives.display_text import csv_fault
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

MOST_BYTES = 100 * outside.MB
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOT_FINITE = {"nan", "inf", "-inf", "NaN", "Infinity", "-Infinity"}  # as Python and JSON write them
COUNTED = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?(\s*(k|thousand|m|million|b|g|billion|t|trillion))", re.IGNORECASE)
POWERS = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "g": 9, "billion": 9, "t": 12, "trillion": 12}
MENDED = "mended.csv"


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as written: column names, rows of as many cells, and the file line at which each row ends."""

    path: Path
    header: list[str]
    body: list[list[str]]
    lines: AnyArray
    text: str

    @property
    def columns(self) -> dict[str, list[str]]:
        """Return the cells of each column."""
        return {name: [row[i] for row in self.body] for i, name in enumerate(self.header)}

    @property
    def rows(self) -> list[dict[str, str]]:
        """Return the cells of each row by column."""
        return [dict(zip(self.header, row, strict=True)) for row in self.body]


@dataclass(frozen=True)
class Source:
    """The file of some rows: its path as typed if relative, else its name; SHA-256 of its text; the rows used."""

    name: str
    sha256: str
    rows: int


def source_of(sheet: Sheet, rows: int) -> Source:
    """Return the source of a table of which `rows` are used."""
    name = sheet.path.name if sheet.path.is_absolute() else str(sheet.path)
    return Source(name, hashlib.sha256(sheet.text.encode()).hexdigest(), rows)


def read_sheet(path: Path, row: str = "", *, most: int | None = None, most_bytes: int = MOST_BYTES) -> Sheet:
    """Return a table's cells without surrounding blanks; lines without any cell are skipped.

    row: what one row is ("trained model"); with it, a file without rows is refused. most: rows at most.

    Raises:
        ValueError: not readable, or not a table of this form, by line and column.
    """
    return sheet_of(path, _text(path, most_bytes), row, most=most)


def sheet_of(path: Path, text: str, row: str = "", *, most: int | None = None) -> Sheet:
    """Return the cells of a file's text.

    Raises:
        ValueError: not a table of this form.
    """
    numbered = _objects(path, text) if path.suffix == ".jsonl" else _cells(path, text)
    if len(numbered) < 2 and row:
        raise ValueError(f"{path}: expected a header and a row per {row}, got {len(numbered)} lines; add them")
    header, body = (numbered[0][1] if numbered else []), numbered[1:]
    if most is not None and len(body) > most:
        raise ValueError(f"{path}: expected at most {most:,} rows, got {len(body):,}; keep fewer")
    _refuse_separator(path, header, text)
    _refuse_ragged(path, header, body)
    sheet = _without_row_numbers(
        Sheet(path, header, [cells for _, cells in body], np.array([line for line, _ in body]), text)
    )
    _refuse_names(path, sheet.header)
    return sheet


def resaved(path: Path, options: str) -> str:
    """Return the line of pandas that reads a file with options and saves it in our form."""
    return f'pd.read_csv("{path.name}", {options}).to_csv("{MENDED}", index=False)'


def _text(path: Path, most_bytes: int) -> str:
    """The text of a file."""
    try:
        data = outside.content(path, most_bytes)
    except OSError as error:
        raise ValueError(f"{path}: expected a readable CSV, got {error.strerror}; check the path") from None
    try:
        text = decoded(data)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return text
    if data.startswith(b"PK"):
        remedy = f'pd.read_excel("{path.name}").to_csv("{MENDED}", index=False)'
    else:
        remedy = resaved(path, f'encoding="{likely_encoding(data)}"') + ", with the encoding that it was saved in"
    raise ValueError(f"{path}: expected UTF-8, got other bytes; {remedy}")


def decoded(data: bytes) -> str:
    """Return text from UTF-8, or from UTF-16 that says so.

    Raises:
        UnicodeDecodeError: another encoding, which is not guessed.
    """
    return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")


def likely_encoding(data: bytes) -> str:
    """Return the likely encoding of text that is not what it says: UTF-16 where every other of the first bytes is zero, else Windows-1252."""
    first, second = data[:1] == b"\0", data[1:2] == b"\0"
    return "cp1252" if first == second else "utf-16-be" if first else "utf-16-le"


def _cells(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Rows of a CSV, the header first, with the line at which each ends."""
    if text.lstrip()[:1] in ("{", "["):
        line = f'pd.read_json("{path.name}"{", lines=True" if text.lstrip()[0] == "{" else ""})'
        raise ValueError(f'{path}: expected CSV, got JSON; {line}.to_csv("{MENDED}", index=False)')
    reader = csv.reader(io.StringIO(text, newline=None), strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: expected CSV, got {csv_fault(error)}; correct it") from None
    return [(line, cells) for line, cells in rows if any(cells)]


def _objects(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Rows of JSON lines, their keys first in the order in which they come; a key that an object lacks is an empty cell."""
    found: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = outside.parsed(line, once=True)
            if not isinstance(row, dict):
                raise ValueError(line[:40])
            found.append((number, _flat(row)))
        except ValueError as error:
            raise ValueError(f"{path}:{number}: expected a JSON object, got {error}; write one row per line") from None
    header = list(dict.fromkeys(name for _, row in found for name in row))
    return [(0, header), *((line, [row.get(name, "") for name in header]) for line, row in found)] if found else []


def _flat(content: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Values as cells, those of dicts within dicts by names with points."""
    found: dict[str, str] = {}
    for key, value in content.items():
        cell = "" if value is None else str(value).strip()
        inner = _flat(value, f"{before}{key}.") if isinstance(value, dict) and value else {f"{before}{key}": cell}
        if twice := found.keys() & inner.keys():
            raise ValueError(f"{min(twice)} twice")
        found |= inner
    return found


def _refuse_separator(path: Path, header: Sequence[str], text: str) -> None:
    for mark in ";\t":
        if any(mark in name for name in header):
            options = f'sep="{mark}"'.replace("\t", r"\t") + (', decimal=","' if re.search(r"\d,\d", text) else "")
            shown = ",".join(header)[:80]
            raise ValueError(f"{path}:1: expected cells separated by commas, got {shown}; {resaved(path, options)}")


def _refuse_ragged(path: Path, header: Sequence[str], body: Sequence[tuple[int, list[str]]]) -> None:
    """Rows of more or fewer cells than the header."""
    uneven = [(line, len(row)) for line, row in body if len(row) != len(header)]
    if not uneven:
        return
    line, count = uneven[0]
    rest = f", wrong in {len(uneven)} rows{listed(np.array([line for line, _ in uneven]))}" if len(uneven) > 1 else ""
    remedy = "correct the row, with decimals written with points and text that holds commas in quotes"
    if header[0].startswith("#"):
        remedy = f"line 1 is no header: {resaved(path, 'skiprows=1')}"
    raise ValueError(f"{path}:{line}: expected {len(header)} cells, got {count}{rest}; {remedy}")


def _without_row_numbers(sheet: Sheet) -> Sheet:
    """The sheet without a first column that has no name and holds numbers of rows, as pandas saves one beside every table."""
    first = [row[0] for row in sheet.body]
    if sheet.header[:1] != [""] or not all(cell.isdecimal() for cell in first) or len(set(first)) < len(first):
        return sheet
    return replace(sheet, header=sheet.header[1:], body=[row[1:] for row in sheet.body])


def _refuse_names(path: Path, header: Sequence[str]) -> None:
    """Columns without a name, and names that come twice."""
    if "" in header:
        place = header.index("")
        raise ValueError(
            f'{path}:1: expected a name for column {place + 1}, got none; df = df.drop(columns="Unnamed: {place}"), or name it'
        )
    if twice := next((name for i, name in enumerate(header) if name in header[:i]), None):
        raise ValueError(
            f'{path}:1: expected each column once, got {twice} twice; df = df.drop(columns="{twice}.1"), or rename one'
        )


def unfolded(sheet: Sheet, names: Sequence[str] = ("config", "summary")) -> Sheet:
    """Return a sheet with a column for each key of columns that hold Python dicts, as exports of Weights & Biases do.

    Such a table's `name` is that of a run.

    Raises:
        ValueError: a cell that is no dict.
    """
    columns = sheet.columns
    dicts = [name for name in names if any(cell.startswith("{") for cell in columns.get(name, ()))]
    if dicts and "run_name" not in columns:
        columns = {"run_name" if name == "name" else name: cells for name, cells in columns.items()}
    for name in dicts:
        rows = [_dict(sheet, name, row, cell) for row, cell in enumerate(columns.pop(name))]
        inner = {f"{name}.{key}": key for row in rows for key in row}
        _refuse_names(sheet.path, [*columns, *inner])
        columns |= {column: [row.get(key, "") for row in rows] for column, key in inner.items()}
    return replace(sheet, header=list(columns), body=[list(row) for row in zip(*columns.values(), strict=True)])


def _dict(sheet: Sheet, name: str, row: int, cell: str) -> dict[str, str]:
    try:
        written = ast.literal_eval(_NotFinite().visit(ast.parse(cell or "{}", mode="eval")))
        if isinstance(written, dict):
            return _flat(written)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    mended = f'df = df.join(pd.json_normalize(df.pop("{name}").tolist()).add_prefix("{name}.")) before it is saved'
    raise ValueError(f"{sheet.path}:{sheet.lines[row]}: {name}: expected a dict of Python, got {cell[:40]!r}; {mended}")


class _NotFinite(ast.NodeTransformer):
    """Numbers that are not finite as Python writes them in a dict."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in NOT_FINITE else node


def number(cell: str) -> float:
    """Return a cell as a number, NaN if it is none."""
    return float(cell) if NUMBER.fullmatch(cell) else float("nan")


def numbers_of(cells: Sequence[str]) -> FloatArray:
    """Return cells as numbers, NaN where they are none, (n,)."""
    return np.array([number(cell) for cell in cells], dtype=np.float64)


def numbers_or_empty(name: str, cells: Sequence[str], lines: AnyArray, path: Path) -> FloatArray:
    """Return a column of numbers, NaN where a cell is empty, (n,).

    Raises:
        ValueError: a cell that is neither.
    """
    values = numbers_of(cells)
    wrong = ~np.isfinite(values) & np.array([bool(cell) for cell in cells], dtype=bool)
    if wrong.any():
        raise ValueError(not_numbers(path, lines, wrong, name, cells, "a number or an empty cell"))
    return values


def not_numbers(
    path: Path, lines: AnyArray, wrong: BoolArray, name: str, cells: Sequence[str], expected: str = "a number"
) -> str:
    """Return the fault of a column with cells that are not numbers, and the line of pandas that repairs the first."""
    remedy = mended(name, cells[int(np.argmax(wrong))])
    return fault(path, lines, wrong, name, expected, list(map(repr, cells)), remedy)


def mended(name: str, cell: str) -> str:
    """Return the line of pandas that turns a column with such a cell into numbers."""
    column, texts = f'df["{name}"]', f'df["{name}"].str'
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", cell):
        decimals = "" if cell.count(",") > 1 or "." in cell else f' (of decimals {texts}.replace(",", "."))'
        return f'{column} = {texts}.replace(",", "").astype(float){decimals}'
    if re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?", cell):
        return f'{column} = {texts}.replace(".", "").str.replace(",", ".").astype(float)'
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", cell):
        return f'{column} = {texts}.replace(",", ".").astype(float)'
    if re.fullmatch(r"[+-]?\d{1,3}([ \u00a0\u2009\u202f'’_]\d{3})+", cell):
        return rf'{column} = {texts}.replace(r"\D", "", regex=True).astype(float)'
    if unit := COUNTED.fullmatch(cell):
        return f'{column} = {texts}.removesuffix("{unit[1]}").astype(float) * 1e{POWERS[unit[2].lower()]}'
    if re.fullmatch(r"[+-]?[\d.]+%", cell):
        return f'{column} = {texts}.removesuffix("%").astype(float) / 100'
    if not cell:
        return f'correct it, or df = df.dropna(subset=["{name}"])'
    return f'correct it, or {column} = pd.to_numeric({column}, errors="coerce") empties such cells'


def fault(
    path: Path, lines: AnyArray, wrong: BoolArray, name: str, expected: str, cells: Sequence[str], remedy: str
) -> str:
    """Return what is wrong with a column: its first wrong cell, and the lines of all if there are several."""
    count, first = int(wrong.sum()), int(np.argmax(wrong))
    more = f", wrong in {count} rows{listed(lines[wrong])}" if count > 1 else ""
    return f"{path}:{lines[first]}: {name}: expected {expected}, got {cells[first]}{more}; {remedy}"


def listed(lines: AnyArray) -> str:
    """Return the first of some lines in brackets, "" for none."""
    shown = ", ".join(str(line) for line in lines[:5].tolist()) + (", …" if len(lines) > 5 else "")
    return f" (lines {shown})" if len(lines) else ""
