"""Workers that answer, hang, crash, print garbage, are killed or fill the memory: each is a state, none is an exception."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nas.record.process import Answer, parsed, run_worker

GOOD = {"prefill_ms": [2.0, 1.0], "decode_ms": [0.5, 0.5]}


def worker(tmp_path: Path, code: str, timeout: float = 20.0, memory_gb: float | None = None) -> Answer:
    """A stand-in worker."""
    script = tmp_path / "worker.py"
    script.write_text(code)
    return run_worker([sys.executable, "-S", str(script)], {"threads": 1}, timeout, memory_gb)


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (f"print('loading'); print('{json.dumps(GOOD)}')", "ok", ""),
        ("raise RuntimeError('no such chip')", "crashed", "RuntimeError: no such chip"),
        ("raise SystemExit(7)", "crashed", "exit code 7"),
        (
            "print('(part) ValueError: no room', file=__import__('sys').stderr); raise SystemExit('Failed. See root cause above.')",
            "crashed",
            "ValueError: no room",
        ),
        ("print('hello')", "garbage", "hello"),
        ("pass", "garbage", "expected a line of JSON"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 9999)", "garbage", "expected"),
        ('print(\'{"prefill_ms": [], "decode_ms": []}\')', "garbage", "expected"),
        ('print(\'{"prefill_ms": [-1], "decode_ms": [1]}\')', "garbage", "expected"),
        ('print(\'{"prefill_ms": [NaN], "decode_ms": [1]}\')', "garbage", "expected"),
        ("import os; os.kill(os.getpid(), 9)", "killed", "signal 9"),
    ],
)
def test_states(code: str, state: str, reason: str, tmp_path: Path) -> None:
    """How a worker ended, and why."""
    answer = worker(tmp_path, code)
    assert answer.state == state
    assert reason in answer.reason
    assert answer.content == (GOOD if state == "ok" else {})


@pytest.mark.slow
def test_hanging_worker_and_its_children(tmp_path: Path) -> None:
    """After the timeout the worker is gone and so is the process that it started."""
    child = "import time, pathlib; time.sleep(2); pathlib.Path('alive').touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}], cwd={str(tmp_path)!r}); time.sleep(60)"
    answer = worker(tmp_path, code, timeout=0.5)
    assert answer.state == "timeout"
    time.sleep(2.2)
    assert not (tmp_path / "alive").exists()


def test_filling_the_memory(tmp_path: Path) -> None:
    """A worker beyond its limit is out of memory, not the machine."""
    assert worker(tmp_path, "x = bytearray(3_000_000_000)", memory_gb=1.0).state == "out of memory"


def test_missing_interpreter() -> None:
    """An interpreter that is not there is a crash with its name."""
    answer = run_worker(["/no/such/python"], {}, 1.0, None)
    assert (answer.state, answer.reason.startswith("/no/such/python")) == ("crashed", True)


def test_more_output_than_the_tail() -> None:
    """The result is the last line."""
    assert parsed("x" * 10 + "\n" + json.dumps(GOOD)) == GOOD
    assert parsed("") is None


def test_no_worker_outlives_its_measurement(tmp_path: Path) -> None:
    """When the measuring process is killed outright, its worker and what that started are gone too."""
    beat = (
        "import os, pathlib, time\nbeat = pathlib.Path(NAME)\nwhile True:\n    part = beat.with_suffix('.part')\n"
        "    part.write_text(str(os.getpid()))\n    part.replace(beat)\n    time.sleep(0.02)\n"
    )
    child, script = tmp_path / "child.py", tmp_path / "worker.py"
    child.write_text(beat.replace("NAME", repr(str(tmp_path / "child"))))
    start = f"import subprocess, sys\nsubprocess.Popen([sys.executable, {str(child)!r}])\n"
    script.write_text(start + beat.replace("NAME", repr(str(tmp_path / "worker"))))
    ask = f"from nas.record.process import run_worker\nimport sys\nrun_worker([sys.executable, {str(script)!r}], {{}}, 60.0, None)"
    parent = subprocess.Popen([sys.executable, "-c", ask])
    beats = [tmp_path / "worker", tmp_path / "child"]
    try:
        assert until(lambda: all(path.exists() for path in beats))
        pids = [int(path.read_text()) for path in beats]
    finally:
        parent.kill()
        parent.wait()
    ended = until(lambda: not any(map(alive, pids)))
    for pid in filter(alive, pids):
        os.kill(pid, signal.SIGKILL)
    assert ended


def until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")
