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
GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")


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
    if (count := len(text.splitlines())) > most + 1:
        raise ValueError(
            f"{path}: expected at most {most:,} rows, got {count - 1:,}; keep the final loss of each model"
        )
    separator = _separator(path, text, known)
    rows = _parsed(path, text, separator)
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a header and a row per trained model, got {len(rows)} lines; add them")
    header = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(
                f"{path}:{line}: expected {len(header)} cells, got {len(row)}; correct the row "
                "(numbers with decimal commas need semicolons or tabs between them, or quotes)"
            )
    notes = [f"the file is {encoding}"] if encoding else []
    notes += [f"cells are separated by {SEPARATORS[separator]}"] if separator != "," else []
    return Sheet(header, [row for _, row in rows[1:]], np.array([line for line, _ in rows[1:]]), (*notes,), text)


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
        raise ValueError(f"{path}: expected UTF-8 or UTF-16 text, got another encoding; save it as UTF-8") from None


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


def with_points(
    columns: Mapping[str, list[str]], numeric: Sequence[str], path: Path
) -> tuple[dict[str, list[str]], list[str]]:
    """Cells with decimal points and no thousands separators, and what was changed; `numeric` columns decide which is which.

    Raises:
        ValueError: the numbers can be read in two ways.
    """
    cells = [_without_unit(cell) for name in numeric for cell in columns[name]]
    comma = next((cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)), None)
    point = next((cell for cell in cells if POINT.fullmatch(cell)), None)
    grouped = next((cell for cell in cells if THOUSANDS.fullmatch(cell) and not DECIMAL_COMMA.fullmatch(cell)), None)
    if comma is not None and point is not None:
        raise ValueError(
            f"{path}: expected decimal points or decimal commas, got {point!r} and {comma!r}; write all with points"
        )
    if comma is not None:
        unclear = next((cell for cell in cells if GROUPED.fullmatch(cell)), None)
        if unclear is not None:
            raise ValueError(
                f"{path}: expected numbers without thousands separators, got {unclear!r} beside {comma!r}; "
                "write it without the point, or with a comma"
            )
        return {name: [_pointed(cell) for cell in column] for name, column in columns.items()}, [
            f"decimal commas are read, such as {comma!r}"
        ]
    if grouped is None:
        return dict(columns), []
    if point is None and not any(cell.count(",") > 1 or "." in cell for cell in cells if THOUSANDS.fullmatch(cell)):
        raise ValueError(
            f"{path}: expected numbers that can be read in one way, got {grouped!r}, "
            f"{grouped.replace(',', '')} or {grouped.replace(',', '.')}; write it without the comma, or with a point"
        )
    said = f"commas between thousands are left out, such as in {grouped!r}"
    strip = {
        name: [cell.replace(",", "") if THOUSANDS.fullmatch(_without_unit(cell)) else cell for cell in column]
        for name, column in columns.items()
    }
    return strip, [said]


def _without_unit(cell: str) -> str:
    """A cell without the unit of a count (10,000M)."""
    return re.sub(r"(?<=\d)\s*[kmbgt]$", "", cell.strip(), flags=re.IGNORECASE)


def _pointed(cell: str) -> str:
    if not re.fullmatch(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?", _without_unit(cell)):
        return cell
    return cell.replace(".", "").replace(",", ".")
