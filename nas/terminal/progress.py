"""Shows a command's progress on standard error: one line that is rewritten on a terminal, plain lines at intervals elsewhere."""

import sys
import time
from collections.abc import Callable

from nas.terminal.console import shortened
from nas.terminal.styles import is_live, shown
from nas.terminal.width import columns, cut

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
