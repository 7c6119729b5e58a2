"""Width of a screen and of text on it, and lines that are no wider."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nas.terminal.streams import encodable
from objectives.display_text import escaped

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
        start, first = len(text) - len(text[end:].lstrip(" ")), False
        if start >= len(text):
            return


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


if TYPE_CHECKING:
    from rich.console import Console

TITLE, GOOD, DOUBT, BAD, FAINT, COMMAND = "bold", "green", "yellow", "bold red", "dim", "cyan"
DUMB = ("dumb", "unknown")  # values of TERM that stand for terminals without any control codes


class Styled(str):
    """Text with a style of rich's (`bold`, `red`) and the address it links to; anything that builds on it is plain."""

    style: str
    link: str

    def __new__(cls, text: str, style: str = "", link: str = "") -> "Styled":
        made = super().__new__(cls, text)
        made.style, made.link = style, link
        return made


def linked(path: Path, text: str = "") -> Styled:
    """A file's path that opens it where a terminal has links."""
    try:
        address = path.resolve().as_uri()
    except (OSError, ValueError):
        address = ""
    return Styled(text or str(path), link=address)


def is_live(stream: Any) -> bool:
    """Whether lines of a stream can be rewritten."""
    return bool(stream.isatty()) and os.environ.get("TERM") not in DUMB


def is_coloured(stream: Any) -> bool:
    """Whether a stream gets colours: a terminal does; NO_COLOR and TERM=dumb forbid, FORCE_COLOR forces."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in DUMB:
        return False
    forced = os.environ.get("FORCE_COLOR")
    return forced not in ("", "0") if forced is not None else bool(stream.isatty())


def shown(part: str, stream: Any) -> str:
    """One line's text as a stream can write it, nothing in it obeyed; its style is kept."""
    text = encodable(escaped(part), stream)
    return Styled(text, part.style, part.link) if isinstance(part, Styled) else text


def write_line(stream: TextIO, parts: Sequence[str]) -> None:
    """Parts of one line that are `shown`, styled where the stream has colours."""
    if not any(isinstance(part, Styled) for part in parts) or not is_coloured(stream):
        stream.write("".join(parts) + "\n")
        return
    from rich.text import Text

    line = Text(end="\n")
    for part in parts:
        line.append(str(part), _style(part) or None)
    _console(stream).print(line, soft_wrap=True)


def _style(part: str) -> str:
    if not isinstance(part, Styled):
        return ""
    link = part.link if os.environ.get("TERM") != "linux" else ""  # the console's driver prints a link's address
    return f"{part.style} link {link}".strip() if link else part.style


@cache
def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)
