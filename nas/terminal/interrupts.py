"""Ctrl-C, SIGTERM and a terminal that goes away (SIGHUP) from the first import on: no traceback, exit code 130."""

import os
import signal
import time
from _thread import get_ident, start_new_thread
from types import FrameType

from nas.terminal.import_path import is_program, started_with_m

INTERRUPTED = 130
LEFT_ALONE = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,  # nohup ignores it, and is left to
}
IMPORTING = "<frozen importlib"  # how the files of Python's own import begin
BUILDING = f"{os.sep}pydantic{os.sep}"  # in the files that make a class a model
LATER = 0.002  # s
TWICE = 1.0  # s within which a second press says what the first one did
_pressed: list[float] = []  # when that was


def end_quietly(*_: object) -> None:
    """Nothing is open while modules are imported, so nothing needs to be printed or closed."""
    os._exit(INTERRUPTED)


def guard_imports() -> None:
    """End a command that is interrupted while it imports; where we are imported as a library, nothing changes."""
    if started_with_m() or is_program():
        for sent, usual in LEFT_ALONE.items():
            if signal.getsignal(sent) is usual:
                signal.signal(sent, end_quietly)


def take_over() -> None:
    """From here on they are an exception that the command answers."""
    for sent in LEFT_ALONE:
        if signal.getsignal(sent) is end_quietly:
            signal.signal(sent, interrupt)


def interrupt(sent: int, frame: FrameType | None) -> None:
    """Raise as Python does, but never inside its import or where pydantic makes a class a model: callbacks there print the traceback and forget the exception.

    A second one right after the first does nothing: it would cut short what says how to go on.

    Raises:
        KeyboardInterrupt: at once, or as soon as the module that is imported goes on.
    """
    file = "" if frame is None else frame.f_code.co_filename
    if file.startswith(IMPORTING) or BUILDING in file:
        start_new_thread(_interrupt_later, (get_ident(), sent))
        return
    before, _pressed[:] = _pressed[:], [time.monotonic()]
    if not before or _pressed[0] - before[0] > TWICE:
        raise KeyboardInterrupt


def _interrupt_later(thread: int, sent: int) -> None:
    time.sleep(LATER)
    signal.pthread_kill(thread, sent)
