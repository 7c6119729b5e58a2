"""Ctrl-C from the first import on: no traceback, exit code 130."""

import os
import signal

from nas.startup.import_path import is_program, started_with_m

INTERRUPTED = 130


def end_quietly(*_: object) -> None:
    """Nothing is open while modules are imported, so nothing needs to be said or closed."""
    os._exit(INTERRUPTED)


def guard_imports() -> None:
    """End a command that is interrupted while it imports; where we are imported as a library, nothing changes."""
    if (started_with_m() or is_program()) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_quietly)


def take_over() -> None:
    """From here on Ctrl-C is an exception that the command answers."""
    if signal.getsignal(signal.SIGINT) is end_quietly:
        signal.signal(signal.SIGINT, signal.default_int_handler)
