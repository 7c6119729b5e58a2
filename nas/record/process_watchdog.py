"""Run a command and end it, with all that it started, when the process that started it is gone.

`process_watchdog.py WATCH COMMAND…`: WATCH is the reading end of a pipe whose other end only the asking process holds, so that
its end, a kill too, is the end of the pipe. Leads its process group. Needs nothing but Python's standard library.
"""

import os
import signal
import subprocess
import sys
import threading


def end_with(watch: int) -> None:
    """Wait for the end of the pipe, then kill the process group, this process included."""
    os.read(watch, 1)
    os.killpg(0, signal.SIGKILL)


def keep(watch: int, command: list[str]) -> int:
    """The command's exit code; a signal that ended it ends this process alike."""
    threading.Thread(target=end_with, args=(watch,), daemon=True).start()
    try:
        code = subprocess.Popen(command).wait()
    except OSError as error:
        raise SystemExit(f"{command[0]}: {error.strerror}") from None
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
