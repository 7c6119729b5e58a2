"""Ctrl-C from the first import on: no traceback, exit code 130."""

import os
import signal
import time
from _thread import get_ident, start_new_thread
from types import FrameType

from nas.startup.import_path import is_program, started_with_m

INTERRUPTED = 130
IMPORTING = "<frozen importlib"  # how the files of Python's own import begin
LATER = 0.002  # s


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
        signal.signal(signal.SIGINT, interrupt)


def interrupt(_: int, frame: FrameType | None) -> None:
    """Raise as Python does, but never inside its import: a callback there prints the traceback and forgets the exception.

    Raises:
        KeyboardInterrupt: at once, or as soon as the module that is imported goes on.
    """
    if frame is None or not frame.f_code.co_filename.startswith(IMPORTING):
        raise KeyboardInterrupt
    start_new_thread(_interrupt_later, (get_ident(),))


def _interrupt_later(thread: int) -> None:
    time.sleep(LATER)
    signal.pthread_kill(thread, signal.SIGINT)
