"""Text from other people's files: names that are safe to show, and CSV cells that spreadsheets do not run as formulas."""

import csv
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

LONGEST = 200
LACKING = "expected it in every row or in none, got nothing; fill it in"
#: Terminal controls (C0, C1), marks that change the direction of writing, line separators, halves of characters.
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_FORMULA = re.compile("^'*[=+@\t\r\uff1d\uff0b\uff0d\uff20-]")


def shown_name(text: str) -> str:
    """Return the name.

    Raises:
        ValueError: it is too long, or holds what a terminal obeys instead of showing.
    """
    if len(text) > LONGEST:
        raise ValueError(f"expected a name of at most {LONGEST} characters, got {len(text):,}; shorten it")
    if found := UNSHOWN.search(text):
        raise ValueError(f"expected a name of plain text, got the control character {escaped(found[0])}; remove it")
    return text


def escaped(text: str) -> str:
    """Return text with invisible characters written as numbers, as in JSON."""
    return UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_a_command(path: str | Path) -> str:
    """Return a path or name quoted as one argument of a shell."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def chance(probability: float) -> str:
    """Return a probability in two digits, never rounded to certainty."""
    return f"{min(max(probability, 0.01), 0.99):.2f}" if 0.0 < probability < 1.0 else f"{probability:.0f}"


def cell(text: str) -> str:
    """Return a CSV cell that spreadsheets show as text: with an apostrophe if it looks like a formula and is no number."""
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def read_cell(text: str) -> str:
    """Return the value that `cell` was called with."""
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def lacking_row(cells: Iterable[str | None]) -> int | None:
    """Return the index of the first blank label if other rows have one; None if none or all are blank."""
    filled = [bool((cell or "").strip()) for cell in cells]
    return filled.index(False) if any(filled) and not all(filled) else None


def csv_fault(error: csv.Error) -> str:
    """Return the fault of a CSV file in words."""
    message = str(error)
    if "field limit" in message:
        return f"a cell of more than {csv.field_size_limit():,} characters, or a quote that is never closed"
    return "a quote that is never closed" if "unexpected end" in message else message
