"""Printing: results on standard output, progress and notices on standard error."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from nas.files.tables import finite
from nas.terminal.screen_text import BAD, DOUBT, Styled, columns, cut, is_live, shown, wrapped, write_line
from nas.terminal.streams import holds_unicode
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


def sentence(*parts: str, most: int | None = None) -> list[Line]:
    """A sentence as lines that fit the screen, of at most so many columns; parts may be styled, the first may hold line breaks."""
    *before, first = (parts[0] if parts else "").split("\n")
    kept = Styled(first, parts[0].style, parts[0].link) if parts and isinstance(parts[0], Styled) else first
    width = columns(sys.stdout)
    lines: list[Line] = []
    for line in (*([text] for text in before), [kept, *parts[1:]]):
        lines += wrapped([shown(part, sys.stdout) for part in line], width if most is None else min(width, most))
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


CLEAR = "\r\x1b[2K"
OFTEN_S, SELDOM_S = 0.2, 10.0  # between two states of the line on a terminal, elsewhere


class ProgressLine:
    """A line on standard error that is rewritten on a terminal, and written again elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.begin, self.terminal = quiet, time.monotonic(), is_live(sys.stderr)

    def show(self, text: str) -> None:
        """Show the text; on a terminal as much of it as a line holds."""
        text = shortened(text)
        line = cut(shown(text, sys.stderr), columns(sys.stderr) - 1)
        sys.stderr.write(f"{CLEAR}{line}" if self.terminal else text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self.terminal and not self.quiet:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


class Ticker(ProgressLine):
    """Progress: a line that is rewritten on a terminal, a plain line every ten seconds elsewhere."""

    def __init__(self, total: int | None, *, quiet: bool, start: int = 0) -> None:
        super().__init__(quiet=quiet)
        self.total, self.start = total, start
        self.interval = OFTEN_S if self.terminal else SELDOM_S
        self.next = self.begin + self.interval
        self.done = start

    def settled(self, more: int) -> None:
        """Show that `more` architectures were settled."""
        self.done += more
        self(self.done, lambda: "settled exactly")

    def __call__(self, done: int, best: Callable[[], str]) -> None:
        """Show `done` of the total, the rate, the time left and what is best so far."""
        now = time.monotonic()
        if self.quiet or now < self.next:
            return
        self.next = now + self.interval
        rate = (done - self.start) / max(now - self.begin, 1e-9)
        left = "" if self.total is None or rate == 0 else f", {duration((self.total - done) / rate)} left"
        of = "" if self.total is None else f" of {self.total:,}"
        self.show(f"{done:,}{of}, {rate:,.0f}/s{left}, {best()}")


class Stages(ProgressLine):
    """Shows the stages of a command of some seconds: one line that is rewritten on a terminal, plain lines after 5 s elsewhere."""

    def __call__(self, text: str) -> None:
        """Say what begins now."""
        if not self.quiet and (self.terminal or time.monotonic() >= self.begin + 5.0):
            self.show(f"{text} …")


def duration(seconds: float) -> str:
    """`12 s`, `3 min`, `1.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
