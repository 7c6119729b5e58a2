"""The work of `demo`: the tour in a folder of its own, each command typed and run as a process of its own."""

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nas.commands.requests import DemoRequest
from nas.commands.tour import BOARD, BOARD_FILE, OPEN, SHOW, STEPS, Step
from nas.errors import PlasError
from nas.files.own_files import made_folder
from nas.files.tables import refuse_used, write
from nas.terminal.console import say
from nas.terminal.import_path import OWN
from nas.terminal.interrupts import INTERRUPTED
from nas.terminal.styles import TITLE, Styled, is_live
from nas.terminal.width import columns, wrapped

KEY_S = 0.012  # between two characters that type themselves
START = "import sys; sys.argv[0] = 'plas'; sys.path.append(sys.argv.pop(1)); from nas.__main__ import main; main()"


@dataclass(frozen=True)
class Manner:
    """How commands appear: character by character, each waiting for Enter before it runs, or all at once."""

    typed: bool
    waiting: bool


def demo(request: DemoRequest) -> None:
    """Show every step; what they make stays in the folder.

    Raises:
        UsageError: a folder that holds something.
        PlasError: a step that fails.
        KeyboardInterrupt: Ctrl-C, with where the files are.
    """
    folder, manner = prepared(request.out), manner_of(request)
    if not request.quiet:
        say(f"Five minutes with a device of your own, in {folder}.")
        say("Enter runs each command, Ctrl-C stops." if manner.waiting else "Ctrl-C stops.")
    number = 0
    try:
        for number, step in enumerate(steps(request), 1):
            show(step, "" if request.quiet else f"{number} of {len(STEPS)}. ", manner)
            judge(step, carried_out(step.command, folder), folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped at step {number} of {len(STEPS)}; the files so far are in {folder}") from None
    if not request.quiet:
        say("")
        say(
            f"The files are in {folder}. For your own device edit its {BOARD_FILE} and search again, with another --out."
        )


def prepared(out: Path | None) -> Path:
    """The folder of the tour with the device's file in it: the one that was named, else a new temporary one.

    Raises:
        UsageError: the folder holds something.
    """
    if out is not None:
        refuse_used("--out", out)
    folder = Path(tempfile.mkdtemp(prefix="plas-demo-")) if out is None else made_folder(out.absolute())
    write(folder / BOARD_FILE, BOARD)
    return folder


def manner_of(request: DemoRequest) -> Manner:
    """Typing and waiting where somebody looks on, neither with --quiet."""
    typed = is_live(sys.stdout) and not request.quiet
    return Manner(typed, typed and request.wait and sys.stdin is not None and sys.stdin.isatty())


def steps(request: DemoRequest) -> Iterator[Step]:
    """The tour's steps; without a screen, or with --no-open, the page's path is printed in place of opening it."""
    opening = OPEN if request.browser and sys.stdout.isatty() else f"{OPEN}--print "
    for step in STEPS:
        yield Step(step.says, step.command.replace(OPEN, opening))


def show(step: Step, place: str, manner: Manner) -> None:
    """The sentence where `place` says which step it is, and the command, continued on the next line where it is long."""
    if place:
        say("")
        say(Styled(f"{place}{step.says}", TITLE))
    lines = ["".join(line) for line in wrapped([f"$ {step.command}"], columns(sys.stdout) - 2)]
    for character in " \\\n".join(lines):
        sys.stdout.write(character)
        if manner.typed:
            sys.stdout.flush()
            time.sleep(KEY_S)
    if manner.waiting:
        sys.stdout.flush()
        sys.stdin.readline()
    else:
        sys.stdout.write("\n")
    sys.stdout.flush()


def carried_out(command: str, folder: Path) -> int:
    """The exit code of a step; the device's file is shown without a program, which not every machine has."""
    if command == SHOW:
        sys.stdout.write(BOARD)
        return 0
    return ran(command, folder)


def ran(command: str, folder: Path) -> int:
    """The exit code of a `plas` command run in the folder; Ctrl-C is left to it, and it says how to go on.

    Raises:
        KeyboardInterrupt: this process was asked to stop.
    """
    line = [sys.executable, "-P", "-c", START, OWN, *shlex.split(command)[1:]]
    process = subprocess.Popen(line, cwd=folder, stdin=subprocess.DEVNULL)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise


def judge(step: Step, code: int, folder: Path) -> None:
    """Go on after a step that ended well.

    Raises:
        PlasError: it failed.
        KeyboardInterrupt: it was stopped.
    """
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise PlasError(
            f"demo: expected '{step.command}' to end well, got exit code {code}; see what it said above, in {folder}"
        )
