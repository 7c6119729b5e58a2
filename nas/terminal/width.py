"""Width of a screen and of text on it, and lines that are no wider."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from nas.terminal.styles import Styled

PIPED = 120  # columns where no screen is
LEAST = 40
WORD = re.compile(r" *[^ ]+")


def columns(stream: Any = None) -> int:
    """Columns of a stream's screen: COLUMNS where it is set, else the terminal's, else 120."""
    return max(_size(stream or sys.stdout, "COLUMNS", 0) or PIPED, LEAST)


def rows() -> int | None:
    """Lines of the screen that results go to: LINES where it is set, else the terminal's; None where no screen is."""
    return _size(sys.stdout, "LINES", 1) or None


def _size(stream: Any, variable: str, place: int) -> int:
    given = os.environ.get(variable, "")
    if given.isascii() and given.isdecimal() and int(given[:6]) > 0:
        return int(given[:6])
    try:
        return os.get_terminal_size(stream.fileno())[place] if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def cells(text: str) -> int:
    """Columns that text takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Text of at most so many columns, with … where something is left out."""
    if cells(text) <= width:
        return text
    kept = text[:width]
    while kept and cells(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def padded(text: str, width: int, *, left: bool) -> list[str]:
    """Text with spaces to a width, as parts of a line: its style does not cover the spaces."""
    spaces = " " * (width - cells(text))
    return [text, spaces] if left else [spaces, text]


def wrapped(parts: Sequence[str], width: int) -> Iterator[list[str]]:
    """Lines of a sentence, each at most `width` columns where its words are; further ones are indented.

    Words are never broken, so that a path or a command stays one.
    """
    text = "".join(parts)
    indent = len(text) - len(text.lstrip(" "))
    start, first = 0, True
    while True:
        hanging = 0 if first else indent + 2
        end = _end(text, start, width - hanging)
        yield [*([" " * hanging] if hanging else []), *_between(parts, start, end)]
        start, first = end + _spaces(text, end), False
        if start >= len(text):
            return


def _spaces(text: str, start: int) -> int:
    return len(text[start:]) - len(text[start:].lstrip(" "))


def _end(text: str, start: int, room: int) -> int:
    """Where a line that begins at `start` ends: after the last word that has room, at least after its first."""
    end = start
    for word in WORD.finditer(text, start):
        if cells(text[start : word.end()]) > room and end > start:
            return end
        end = word.end()
    return len(text)


def _between(parts: Sequence[str], start: int, end: int) -> list[str]:
    """The pieces of parts that lie between two places of their text, with their styles."""
    found, at = [], 0
    for part in parts:
        piece = part[max(start - at, 0) : max(end - at, 0)]
        at += len(part)
        if piece:
            found.append(Styled(piece, part.style, part.link) if isinstance(part, Styled) else piece)
    return found
