"""Ctrl-C inside Python's own import and where pydantic makes a class a model, where an exception would be printed and forgotten."""

import os
import subprocess
import sys

import pytest

HERE = """
import os, signal, time, weakref
from nas.terminal.interrupts import interrupt
signal.signal(signal.SIGINT, interrupt)
places = {}
exec(compile("def callback(_):\\n    os.kill(os.getpid(), signal.SIGINT)\\n    time.sleep(0)", FILE, "exec"), globals(), places)
class Module: pass
module = Module()
kept = weakref.ref(module, places["callback"])
try:
    del module
    time.sleep(WAIT)
except KeyboardInterrupt:
    print("interrupted")
"""


def said(file: str, wait: int) -> tuple[str, str]:
    """What a process prints that is interrupted inside a callback of this file and then waits so many seconds."""
    code = HERE.replace("FILE", repr(file)).replace("WAIT", str(wait))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "file", ["<frozen importlib._bootstrap>", os.path.join("site-packages", "pydantic", "_internal", "_model.py")]
)
def test_an_interrupt_inside_a_callback_of_an_import_is_raised_right_after_it(file: str) -> None:
    assert said(file, wait=20) == ("interrupted\n", "")


def test_python_prints_and_forgets_that_of_another_callback() -> None:
    """What the callbacks of an import suffered; no module of ours has such callbacks."""
    out, err = said("own.py", wait=0)
    assert out == ""
    assert "Traceback" in err


AGAIN = """
import os, signal, time
from nas.terminal import interrupts
signal.signal(signal.SIGINT, interrupts.interrupt)
interrupts.TWICE = 0.2
for pause in (0.0, 0.01, 0.3):
    time.sleep(pause)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
        print("nothing")
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_a_second_press_right_after_the_first_says_nothing_new() -> None:
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["interrupted", "nothing", "interrupted"]
