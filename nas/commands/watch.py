"""The work of `watch`: look at a run until it ends, without touching it."""

import json
import shutil
import sys
import time
from pathlib import Path

from nas.answer.progress import NAME, Elsewhere, Progress, RunFollower, going_on_elsewhere, read
from nas.commands.requests import WatchRequest
from nas.errors import UsageError
from nas.files.tables import finite
from nas.record.store import FILE, begun
from nas.terminal.console import harmless, notice, say, say_json
from nas.terminal.doors import command
from objectives.display_text import in_a_command

Follower = RunFollower | Elsewhere
LOOK_S = 0.2


def watch(request: WatchRequest) -> None:
    """Show progress until nothing more comes.

    Raises:
        UsageError: no run within the time to wait.
    """
    follower = awaited(request)
    shown = Shown(as_json=request.json, once=request.once)
    try:
        while True:
            found = follower.look()
            shown(found)
            if request.once or not found.going_on:
                return
            time.sleep(request.every)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped watching; {request.run} is left alone. Watch on with: {command('watch')} {in_a_command(request.run)}"
        ) from None


def awaited(request: WatchRequest) -> Follower:
    """The reader that follows the folder, once there is something to follow.

    Raises:
        UsageError: there is not, and the time to wait is over.
    """
    patience = 0.0 if request.once or _holds_something_else(request.run) else request.wait
    end, announced = time.monotonic() + patience, request.quiet
    while (found := follower_of(request.run)) is None:
        if time.monotonic() >= end:
            reason = "nothing to watch in it" if request.run.is_dir() else "no folder"
            raise UsageError(f"{request.run}: expected the folder of a run, got {reason}; list runs with 'ls runs'")
        if not announced:
            notice(f"{request.run}: no run there yet, waiting up to {request.wait:g} s …")
            announced = True
        time.sleep(LOOK_S)
    return found


def _holds_something_else(path: Path) -> bool:
    """Whether a folder has files, and none that a run begins with: none will be laid out in it.

    The lock and unfinished files, which are hidden, come before those.
    """
    try:
        names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
    except OSError:
        return False
    return bool(names) and not names & {"config.yaml", "manifest.json", FILE, NAME}


def follower_of(path: Path) -> Follower | None:
    """The reader that follows a folder; None where nothing has begun in it."""
    if going_on_elsewhere(path):
        return Elsewhere(path) if read(path) else None
    return RunFollower(path) if begun(path / FILE) else None


class Shown:
    """Progress on standard output: a block that is rewritten on a terminal, one line a look elsewhere, JSON lines."""

    def __init__(self, *, as_json: bool, once: bool) -> None:
        self.as_json, self.once, self.height = as_json, once, 0
        self.rewritten = sys.stdout.isatty() and not once and not as_json

    def __call__(self, found: Progress) -> None:
        """Show where it stands now."""
        if self.as_json and self.once:
            say_json(found.json())
        elif self.as_json:
            say(json.dumps(finite(found.json())))
        elif self.once:
            say("\n".join(found.lines()))
        elif self.rewritten:
            self._rewrite([harmless(line).replace("\n", " ") for line in found.lines()])
        else:
            say("; ".join(found.lines()))
        sys.stdout.flush()

    def _rewrite(self, lines: list[str]) -> None:
        """The block in the place of the one before; a line longer than the terminal is cut."""
        width = shutil.get_terminal_size().columns - 1
        back = f"\x1b[{self.height}A\x1b[J" if self.height else ""
        sys.stdout.write(back + "".join(f"{line[:width]}\n" for line in lines))
        self.height = len(lines)
