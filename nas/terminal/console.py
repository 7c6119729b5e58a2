"""Printing: results on standard output, progress and notices on standard error."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from nas.files.json_values import finite
from nas.terminal.streams import holds_unicode
from nas.terminal.styles import BAD, DOUBT, Styled, is_live, shown, write_line
from nas.terminal.width import columns, wrapped
from objectives.display_text import escaped

LONGEST_LINE, MOST_LINES = 1_000, 100
WARNING = "Warning: "

Line = list[str]  # of parts that are shown already


def harmless(text: str) -> str:
    """Text as a terminal may get it: what it would obey instead of showing is escaped."""
    return "\n".join(escaped(line) for line in text.split("\n"))


def shortened(text: str) -> str:
    """A message fit for a terminal: harmless, a line of thousands of characters cut inside, hundreds of lines cut."""
    lines = harmless(text).split("\n")
    sentences = [line if len(line) <= LONGEST_LINE else f"{line[:600]} … {line[-300:]}" for line in lines[:MOST_LINES]]
    return "\n".join(sentences + [f"and {len(lines) - MOST_LINES:,} more"] * (len(lines) > MOST_LINES))


def sentence(*parts: str) -> list[Line]:
    """A sentence as lines that fit the screen; parts may be styled, the first may hold line breaks."""
    *before, first = (parts[0] if parts else "").split("\n")
    kept = Styled(first, parts[0].style, parts[0].link) if parts and isinstance(parts[0], Styled) else first
    lines: list[Line] = []
    for line in (*([text] for text in before), [kept, *parts[1:]]):
        lines += wrapped([shown(part, sys.stdout) for part in line], columns(sys.stdout))
    return lines


def write(lines: Iterable[Line]) -> None:
    """Lines of result, laid out already."""
    for line in lines:
        write_line(sys.stdout, line)


def say(*parts: str) -> None:
    """A sentence of the result."""
    write(sentence(*parts))


def notice(text: str) -> None:
    """A line beside the result; a warning's first word is coloured on a terminal."""
    _beside(text, WARNING.strip() if text.startswith(WARNING) else "", DOUBT)


def complain(text: str) -> None:
    """Print the message that ends a command; on a terminal its subject is coloured."""
    subject, colon, _ = text.partition(": ")
    _beside(text, subject + ":" if colon and "\n" not in subject else "", BAD)


def _beside(text: str, head: str, style: str) -> None:
    """Lines on standard error; a screen's are wrapped, others stay whole."""
    for number, line in enumerate(shortened(text).split("\n")):
        marked = number == 0 and bool(head) and line.startswith(head)
        parts = [Styled(head, style), line[len(head) :]] if marked else [line]
        whole = [shown(part, sys.stderr) for part in parts]
        for each in wrapped(whole, columns(sys.stderr)) if is_live(sys.stderr) else [whole]:
            write_line(sys.stderr, each)
    sys.stderr.flush()


def say_json(content: Any) -> None:
    """A result as JSON."""
    sys.stdout.write(harmless(json.dumps(finite(content), indent=2, ensure_ascii=not holds_unicode())) + "\n")
