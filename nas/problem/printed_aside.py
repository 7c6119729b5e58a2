"""What code of a user's prints, kept out of a command's answer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from threading import current_thread, main_thread


@contextmanager
def printed_aside() -> Iterator[None]:
    """The standard output is the standard error; of the main thread alone, since all threads share the one output and another may outlive it."""
    if current_thread() is not main_thread():
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
