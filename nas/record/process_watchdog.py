"""Run a command and end it, with all that it started, when the process that started it is gone.

`process_watchdog.py WATCH COMMAND…`: WATCH is the reading end of a pipe whose other end only the asking process holds, so that
its end, a kill too, is the end of the pipe. Leads its process group. Needs nothing but Python's standard library, and of it what loads in milliseconds.
"""

import os
import signal
import sys
import threading

IGNORED = [signal.SIGPIPE, signal.SIGXFSZ]  # by Python, and by what it starts unless it is told otherwise


def end_with(watch: int) -> None:
    """Wait for the end of the pipe, then kill the process group, this process included."""
    os.read(watch, 1)
    os.killpg(0, signal.SIGKILL)


def keep(watch: int, command: list[str]) -> int:
    """The command's exit code; a signal that ended it ends this process alike."""
    threading.Thread(target=end_with, args=(watch,), daemon=True).start()
    os.set_inheritable(watch, False)
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=IGNORED)
    except OSError as error:
        raise SystemExit(f"{command[0]}: {error.strerror}") from None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
