"""One worker in a process of its own: whatever it does, the answer is a state and the next one runs."""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from objectives import outside

WATCHDOG = Path(__file__).with_name("process_watchdog.py")
TAIL = 64_000  # bytes of output that are looked at
NUMBERS = ("prefill_ms", "decode_ms")
FAULT = re.compile(r"\b[A-Z]\w*Error: .*")


@dataclass(frozen=True)
class Answer:
    """How a worker ended: `ok` with its content, or timeout, killed, crashed, out of memory, garbage with a reason."""

    state: str
    content: dict[str, Any]
    reason: str
    seconds: float


class Worker:
    """A worker under way; its process group is gone when `ended` returns, and when this process is killed."""

    def __init__(
        self,
        command: Sequence[str],
        job: Mapping[str, Any],
        memory_gb: float | None = None,
        parse: Callable[[str], dict[str, Any] | None] | None = None,
    ) -> None:
        """Start a worker on a job; `parse` reads its answer from what it printed.

        Raises:
            OSError: no process can be made.
        """
        self.begin, self.parse = time.monotonic(), parse or parsed
        watched, self.held = os.pipe()
        environment = os.environ | ({"OMP_NUM_THREADS": str(job["threads"])} if job.get("threads") else {})
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (closed by `ended`)
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps(job).encode())
            given.seek(0)
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(WATCHDOG), str(watched), *command],
                    stdin=given,
                    stdout=self.out,
                    stderr=self.err,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(watched,),
                    preexec_fn=None if memory_gb is None else lambda: _limit(memory_gb),
                )
            except OSError:
                self._close()
                raise
            finally:
                os.close(watched)

    def wait(self, timeout: float) -> bool:
        """Whether it ended by itself within so many seconds."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def output(self) -> str:
        """The end of what it has printed so far."""
        return _tail(self.out)

    def ended(self, late: str = "") -> Answer:
        """End it if it has not ended; `late`: why that counts as a timeout."""
        try:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            seconds = time.monotonic() - self.begin
            if late:
                return Answer("timeout", {}, late, seconds)
            return _answer(self.process.returncode, _tail(self.out), _tail(self.err), seconds, self.parse)
        finally:
            self._close()

    def _close(self) -> None:
        os.close(self.held)
        self.out.close()
        self.err.close()


def run_worker(
    command: Sequence[str],
    job: Mapping[str, Any],
    timeout: float,
    memory_gb: float | None,
    parse: Callable[[str], dict[str, Any] | None] | None = None,
) -> Answer:
    """Run a worker on a job to its end; its process group is gone when this returns, and when this process is killed."""
    try:
        worker = Worker(command, job, memory_gb, parse)
    except OSError as error:
        return Answer("crashed", {}, f"{sys.executable}: {error.strerror}", 0.0)
    late = True
    try:
        late = not worker.wait(timeout)
    finally:
        answer = worker.ended(f"no answer within {timeout:g} s" if late else "")
    return answer


def _limit(memory_gb: float) -> None:
    limit = int(memory_gb * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _tail(file: IO[bytes]) -> str:
    """The end of a file that another process may be writing at the same place: nothing here moves it."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), TAIL, max(0, size - TAIL)).decode("utf-8", "replace").strip()


def _answer(code: int, out: str, err: str, seconds: float, parse: Callable[[str], dict[str, Any] | None]) -> Answer:
    last = _reason(err)[:300]
    if code and ("MemoryError" in err or "out of memory" in err.lower() or "can't allocate memory" in err.lower()):
        return Answer("out of memory", {}, last, seconds)
    if code < 0:
        return Answer("killed", {}, f"signal {-code} {last}".strip(), seconds)
    if code:
        return Answer("crashed", {}, last or f"exit code {code}", seconds)
    content = parse(out)
    if content is None:
        return Answer("garbage", {}, f"expected a line of JSON with the result, got {out[-80:]!r}", seconds)
    return Answer("ok", content, "", seconds)


def _reason(err: str) -> str:
    """The last line of what went wrong, or the first fault where that only points at one (vLLM's engine is a process of its own)."""
    last = err.splitlines()[-1] if err else ""
    return next(iter(FAULT.findall(err)), last) if "root cause above" in last else last


def answer_of(out: str) -> dict[str, Any] | None:
    """The JSON object on the last line, or None where there is none."""
    try:
        content = outside.parsed(out.splitlines()[-1])
    except (IndexError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def parsed(out: str) -> dict[str, Any] | None:
    """The result on the last line, or None where there is none: positive finite times, as many of each phase."""
    content = answer_of(out) or {}
    try:
        times = [[float(t) for t in content[name]] for name in NUMBERS]
    except (ValueError, TypeError, KeyError):
        return None
    sound = (
        all(times)
        and len(times[0]) == len(times[1])
        and all(math.isfinite(t) and t > 0 for phase in times for t in phase)
    )
    return dict(content) if sound else None
