"""Printing: results on standard output, progress and notices on standard error."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from nas.files.tables import finite
from nas.terminal.streams import holds_unicode
from objectives.written_text import escaped

LONGEST_LINE, MOST_LINES = 1_000, 100


def harmless(text: str) -> str:
    """Text as a terminal may get it: what it would obey instead of showing is escaped."""
    return "\n".join(escaped(line) for line in text.split("\n"))


def brief(text: str) -> str:
    """A message as somebody reads it: harmless, a line of thousands of characters cut inside, hundreds of lines cut."""
    lines = harmless(text).split("\n")
    shown = [line if len(line) <= LONGEST_LINE else f"{line[:600]} … {line[-300:]}" for line in lines[:MOST_LINES]]
    return "\n".join(shown + [f"and {len(lines) - MOST_LINES:,} more"] * (len(lines) > MOST_LINES))


def say(text: str = "") -> None:
    """One line of result."""
    sys.stdout.write(harmless(text) + "\n")


def notice(text: str) -> None:
    """One line beside the result."""
    sys.stderr.write(brief(text) + "\n")
    sys.stderr.flush()


def say_json(content: Any) -> None:
    """A result as JSON."""
    say(json.dumps(finite(content), indent=2, ensure_ascii=not holds_unicode()))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Aligned columns, the first `left` of them to the left."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = [
            str(c).ljust(w) if i < left or i == len(header) - 1 else str(c).rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        say("  " + "  ".join(cells).rstrip())


class ProgressLine:
    """A line on standard error that is rewritten on a terminal, and written anew elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.begin, self.terminal = quiet, time.monotonic(), sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show the text."""
        text = brief(text)
        sys.stderr.write(f"\r\x1b[2K{text}" if self.terminal else text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self.terminal and not self.quiet:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


class Ticker(ProgressLine):
    """Progress: a line that is rewritten on a terminal, a plain line every ten seconds elsewhere."""

    def __init__(self, total: int | None, *, quiet: bool, start: int = 0) -> None:
        super().__init__(quiet=quiet)
        self.total, self.start = total, start
        self.next = self.begin + (0.2 if self.terminal else 10.0)
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
        self.next = now + (0.2 if self.terminal else 10.0)
        rate = (done - self.start) / max(now - self.begin, 1e-9)
        left = "" if self.total is None or rate == 0 else f", {duration((self.total - done) / rate)} left"
        of = "" if self.total is None else f" of {self.total:,}"
        self.show(f"{done:,}{of} architectures, {rate:,.0f}/s{left}, {best()}")


class Stages(ProgressLine):
    """What a command of some seconds is doing: a line that is rewritten on a terminal, plain lines after 5 s elsewhere."""

    def __call__(self, text: str) -> None:
        """Say what begins now."""
        if not self.quiet and (self.terminal or time.monotonic() >= self.begin + 5.0):
            self.show(f"{text} …")


def duration(seconds: float) -> str:
    """`12 s`, `3 min`, `1.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
