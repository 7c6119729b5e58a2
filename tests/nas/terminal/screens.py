"""A command on a pseudo-terminal: what it writes, and the lines that stand on the screen when it has ended."""

import importlib
import os
import pty
import re
import select
import struct
import sys
import termios
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from nas.terminal.doors import door, installed

ROOT = Path(__file__).resolve().parents[3]
CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)")
CLEAR = "\r\x1b[2K"  # before every state of a line that is rewritten
LIMIT_S = 240


@dataclass(frozen=True)
class Screen:
    """What came out of a pseudo-terminal, and the exit code."""

    written: str
    code: int

    @property
    def lines(self) -> list[str]:
        """The lines as they stand at the end, without codes."""
        return [CODE.sub("", line) for line in standing(self.written)]


def standing(written: str) -> list[str]:
    """The lines that stand on a screen: of a rewritten one what was written last, with its colours."""
    lines = [line.rpartition(CLEAR)[2].split("\r")[-1] for line in written.replace("\r\n", "\n").split("\n")]
    return lines if lines[-1] else lines[:-1]


def on_screen(arguments: Sequence[str], folder: Path, columns: int, rows: int = 40, **environment: str) -> Screen:
    """Run a command on a terminal of a size, in a copy of this process, which has the code loaded already."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    }
    set_up: Mapping[str, str] = {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment}
    module = installed().get(arguments[0]) or door(arguments[0])
    importlib.import_module(module)
    for work in (f"nas.commands.{arguments[0]}", f"{module.removesuffix('.__main__')}.command"):
        with suppress(ModuleNotFoundError):
            importlib.import_module(work)
    child, terminal = pty.fork()
    if child == 0:
        os._exit(_run(arguments, folder, set_up))
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    written = _all_of(terminal)
    _, status = os.waitpid(child, 0)
    return Screen(
        written.decode(environment.get("PYTHONIOENCODING", "utf-8"), "replace"), os.waitstatus_to_exitcode(status)
    )


def _run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """The command in a fresh fork, with the terminal as its streams; its exit code."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, encoding=encoding) for fd, mode in enumerate("rww"))  # noqa: SIM115
    module, *rest = arguments
    sys.argv, code = [f"nas.{module}", *rest], 0
    try:
        importlib.import_module(installed().get(module) or door(module)).main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _all_of(terminal: int) -> bytes:
    """Everything until the other side closes."""
    found, end = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # how Linux says that the other side closed
            piece = b""
        if not piece:
            break
        found += piece
    os.close(terminal)
    return found
