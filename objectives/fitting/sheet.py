"""The text of people's tables: encodings, separators and decimal commas, recognised or refused, no row ever shifted."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from objectives import outside
from objectives.display_text import csv_fault
from objectives.fitting.kept_rows import listed
from search_spaces.arrays import AnyArray

MOST_BYTES = 200 * outside.MB
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,(\d{1,2}|\d{4,}|\d+[eE][+-]?\d+)|[+-]?\d+(\.\d{3})+,\d+|[+-]?0,\d+")
POINT = re.compile(r"[+-]?\d+\.(\d{1,2}|\d{4,}|\d+[eE][+-]?\d+)|[+-]?0\.\d+")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
SURELY = re.compile(r"[+-]?\d{1,3}(,\d{3}){2,}|[+-]?\d{1,3}(,\d{3})+\.\d+")
GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")
UNIT = re.compile(r"(?<=\d)\s*([kmbgt]|thousand|million|billion|trillion|nats?|%)$", re.IGNORECASE)
APART = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f'’](?=\d{3}(?!\d))")  # between thousands alone


@dataclass(frozen=True, eq=False)
class Sheet:
    """Header, rows of as many cells, the line of the file at which each row ends, what was read how, the text."""

    header: list[str]
    body: list[list[str]]
    lines: AnyArray
    notes: tuple[str, ...]
    text: str


def read_sheet(path: Path, known: Callable[[str], bool], most: int) -> Sheet:
    """A table's cells, at most `most` rows; `known` says whether a column's name is one that is looked for.

    Raises:
        ValueError: not readable, more rows than a table of final losses has, or rows of other lengths than the header.
    """
    text, encoding = _text(path)
    table, title = _untitled(text)
    if (count := len(text.splitlines())) > most + 1:
        raise ValueError(
            f"{path}: expected at most {most:,} rows, got {count - 1:,}; keep the final loss of each model"
        )
    separator = _separator(path, table, known)
    rows = _parsed(path, table, separator)
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a header and a row per trained model, got {len(rows)} lines; add them")
    header = [name.strip() for name in rows[0][1]]
    if uneven := [(line, len(row)) for line, row in rows[1:] if len(row) != len(header)]:
        line, cells = uneven[0]
        rest = f", wrong in {len(uneven)} rows{listed(np.array([line for line, _ in uneven]))}"
        raise ValueError(
            f"{path}:{line}: expected {len(header)} cells, got {cells}{rest if len(uneven) > 1 else ''}; correct the row "
            "(numbers with decimal commas need semicolons or tabs between them, or quotes)"
        )
    notes = [f"the file is {encoding}"] if encoding else []
    notes += [f"line 1 is a title: {title}"] if title else []
    notes += [f"cells are separated by {SEPARATORS[separator]}"] if separator != "," else []
    return Sheet(header, [row for _, row in rows[1:]], np.array([line for line, _ in rows[1:]]), (*notes,), text)


def _untitled(text: str) -> tuple[str, str]:
    """The text with an empty first line where that is a remark of another shape than the table below it; the remark."""
    first, _, rest = text.partition("\n")
    if not first.startswith("#") or any(_even(text, mark) for mark in SEPARATORS if mark in first):
        return text, ""
    return (f"\n{rest}", first.strip()) if any(_even(rest, mark) for mark in SEPARATORS if mark in rest) else (text, "")


def _text(path: Path) -> tuple[str, str]:
    """The text, and the encoding where it is not UTF-8."""
    try:
        data = outside.content(path, MOST_BYTES)
    except OSError as error:
        raise ValueError(f"{path}: expected a readable CSV, got {error.strerror}; check the path") from None
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data[:2]:  # the first character of a header is ASCII
        encoding = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    try:
        return data.decode(encoding), "UTF-16" if encoding.startswith("utf-16") else ""
    except UnicodeDecodeError:
        return _of_one_byte(data, path), "not UTF-8, and read as Windows-1252, in which digits are the same"


def _of_one_byte(data: bytes, path: Path) -> str:
    """The text of an encoding in which digits, separators and letters without accents are those of ASCII, as spreadsheets write it.

    Raises:
        ValueError: bytes that stand in no text.
    """
    if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data):
        raise ValueError(f"{path}: expected a table as text, got bytes of something else; save it as CSV in UTF-8")
    return data.decode("cp1252", errors="replace")


def _separator(path: Path, text: str, known: Callable[[str], bool]) -> str:
    """The separator under which every row has the header's cells; of several, the one with most known columns.

    Raises:
        ValueError: two do equally well.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    headers = {mark: next(csv.reader([first], delimiter=mark), []) for mark in SEPARATORS if mark in first}
    whole = [mark for mark in headers if _even(text, mark)]
    score = {mark: sum(known(name.strip()) for name in headers[mark]) for mark in whole or headers}
    best = [mark for mark, names in score.items() if names == max(score.values())]
    if len(best) > 1:
        raise ValueError(
            f"{path}: expected one separator, got rows that {' and '.join(SEPARATORS[mark] for mark in best)} split "
            "equally well; save it with commas alone"
        )
    return best[0] if best else ","


def _even(text: str, separator: str) -> bool:
    try:
        rows = csv.reader(io.StringIO(text, newline=None), delimiter=separator)
        return len({len(row) for row in rows if any(cell.strip() for cell in row)}) == 1
    except csv.Error:
        return False


def _parsed(path: Path, text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Rows with the line at which each ends; empty lines are none."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=separator, strict=True)
    try:
        return [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num}: expected CSV, got {csv_fault(error)}; correct it") from None


Place = tuple[str, int]  # a column and a row


@dataclass(frozen=True, eq=False)
class _Cells:
    """Columns as written; `told`: the numeric ones without units; lines, path, columns without fractions, what was said."""

    columns: dict[str, list[str]]
    told: Mapping[str, list[str]]
    lines: AnyArray
    path: Path
    whole: Sequence[str]
    said: list[str]

    def first(self, pattern: re.Pattern[str], names: Sequence[str] | None = None) -> Place | None:
        """The first cell that is of a pattern."""
        columns = self.told if names is None else {name: self.told[name] for name in names if name in self.told}
        found = (
            (name, row) for name, cells in columns.items() for row, cell in enumerate(cells) if pattern.fullmatch(cell)
        )
        return next(found, None)

    def at(self, place: Place) -> str:
        """A numeric cell without its unit."""
        return self.told[place[0]][place[1]]

    def fault(self, place: Place, expected: str) -> str:
        """What is wrong at a cell."""
        return f"{self.path}:{self.lines[place[1]]}: {place[0]}: {expected}"


def with_points(
    columns: Mapping[str, list[str]], numeric: Sequence[str], lines: AnyArray, path: Path, whole: Sequence[str] = ()
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Cells with decimal points and no thousands separators, what was changed, and a fault of each column that can be read in two ways.

    numeric: the columns that decide which is which. whole: those that hold no fractions, in which a point or a comma before
    three digits stands between thousands.
    """
    closed, said = _closed_up(columns, numeric)
    told = {name: [_without_unit(cell) for cell in closed[name]] for name in numeric}
    cells = _Cells(closed, told, lines, path, whole, said)
    comma, point = cells.first(DECIMAL_COMMA), cells.first(POINT)
    if comma is None:
        return _commas_of_thousands(cells, sure=point is not None)
    if point is None:
        return _commas_decimal(cells, comma)
    both = (
        f"expected decimal points or decimal commas in one file, got {cells.at(comma)!r} beside {cells.at(point)!r} "
        f"(column {point[0]}, line {lines[point[1]]}); write all with points"
    )
    return closed, said, [cells.fault(comma, both)]


def _commas_decimal(cells: _Cells, comma: Place) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """A file with decimal commas: points stand between thousands in columns that hold commas, or no fractions."""
    faults = []
    for name in cells.told:
        sure = name in cells.whole or cells.first(DECIMAL_COMMA, [name]) is not None
        unclear = None if sure else cells.first(GROUPED, [name])
        if unclear is not None and (plain := cells.at(unclear)).count(".") == 1:
            expected = (
                f"expected numbers that can be read in one way, got {cells.columns[name][unclear[1]]!r} beside {cells.at(comma)!r}, "
                f"{plain.replace('.', '')} or {plain}; write it without the point, or with a comma"
            )
            faults.append(cells.fault(unclear, expected))
    found = {name: [_pointed(cell, name in cells.told) for cell in column] for name, column in cells.columns.items()}
    return found, [*cells.said, f"decimal commas are read, such as {cells.at(comma)!r}"], faults


def _commas_of_thousands(cells: _Cells, *, sure: bool) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """A file without decimal commas: commas stand between thousands, where a cell or a column shows that they do."""
    grouped = cells.first(THOUSANDS)
    if grouped is None:
        return cells.columns, cells.said, []
    sure = sure or cells.first(SURELY) is not None or cells.first(THOUSANDS, cells.whole) is not None
    cell = cells.at(grouped)
    if not sure:
        expected = (
            f"expected numbers that can be read in one way, got {cell!r}, {cell.replace(',', '')} or {cell.replace(',', '.')}; "
            "write it without the comma, or with a point"
        )
        return cells.columns, cells.said, [cells.fault(grouped, expected)]
    found = {
        name: [cell.replace(",", "") if THOUSANDS.fullmatch(_without_unit(cell)) else cell for cell in column]
        for name, column in cells.columns.items()
    }
    return found, [*cells.said, f"commas between thousands are left out, such as in {cell!r}"], []


def _closed_up(columns: Mapping[str, list[str]], numeric: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Numbers without the spaces and apostrophes between their thousands, and what was read so."""
    found, said = dict(columns), []
    for name in numeric:
        found[name] = [APART.sub("", cell) for cell in columns[name]]
        pairs = zip(columns[name], found[name], strict=True)
        said += [f"{name}: {old.strip()} is read as {new.strip()}" for old, new in pairs if old != new][:1]
    return found, said


def _without_unit(cell: str) -> str:
    """A cell without the unit of a count (10,000M, 3 billion)."""
    return UNIT.sub("", cell.strip())


def _pointed(cell: str, known: bool) -> str:
    plain = _without_unit(cell)
    if re.fullmatch(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?", plain) or (known and GROUPED.fullmatch(plain)):
        return cell.replace(".", "").replace(",", ".")
    return cell
