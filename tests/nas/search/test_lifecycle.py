"""What SIGTERM does while a search lasts."""

import subprocess
import sys

TERMINATED = """
import os, signal, time
from nas.search.lifecycle import terminable
{before}
try:
    with terminable():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)
        print("went on")
except KeyboardInterrupt:
    print("interrupted")
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


def said(before: str = "") -> list[str]:
    """What a program prints that is terminated while it searches."""
    code = TERMINATED.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_sigterm_ends_a_search_as_ctrl_c_does_and_is_given_back() -> None:
    assert said() == ["interrupted", "True"]


def test_a_program_that_knows_what_sigterm_does_keeps_its_say() -> None:
    assert said("signal.signal(signal.SIGTERM, lambda *_: print('ours'))") == ["ours", "went on", "False"]
