"""One worker in a process of its own: whatever it does, the answer is a state and the next one runs."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

KEEPER = Path(__file__).with_name("keeper.py")
TAIL = 64_000  # bytes of output that are looked at
NUMBERS = ("prefill_ms", "decode_ms")


@dataclass(frozen=True)
class Answer:
    """How a worker ended: `ok` with its content, or timeout, killed, crashed, out of memory, garbage with a reason."""

    state: str
    content: dict[str, Any]
    reason: str
    seconds: float


def run_worker(command: Sequence[str], job: Mapping[str, Any], timeout: float, memory_gb: float | None) -> Answer:
    """Run a worker on a job; its process group is gone when this returns, and when this process is killed."""
    begin = time.monotonic()
    watched, held = os.pipe()
    environment = os.environ | ({"OMP_NUM_THREADS": str(job["threads"])} if job.get("threads") else {})
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        given.write(json.dumps(job).encode())
        given.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER), str(watched), *command],
                stdin=given,
                stdout=out,
                stderr=err,
                env=environment,
                start_new_session=True,
                pass_fds=(watched,),
                preexec_fn=None if memory_gb is None else lambda: _limit(memory_gb),
            )
        except OSError as error:
            os.close(held)
            return Answer("crashed", {}, f"{sys.executable}: {error.strerror}", 0.0)
        finally:
            os.close(watched)
        late = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(held)
        seconds = time.monotonic() - begin
        if late:
            return Answer("timeout", {}, f"no answer within {timeout:g} s", seconds)
        return _answer(process.returncode, _tail(out), _tail(err), seconds)


def _limit(memory_gb: float) -> None:
    limit = int(memory_gb * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    return file.read().decode("utf-8", "replace").strip()


def _answer(code: int, out: str, err: str, seconds: float) -> Answer:
    last = err.splitlines()[-1][:300] if err else ""
    if code and ("MemoryError" in err or "out of memory" in err.lower() or "can't allocate memory" in err.lower()):
        return Answer("out of memory", {}, last, seconds)
    if code < 0:
        return Answer("killed", {}, f"signal {-code} {last}".strip(), seconds)
    if code:
        return Answer("crashed", {}, last or f"exit code {code}", seconds)
    content = parsed(out)
    if content is None:
        return Answer("garbage", {}, f"expected a line of JSON with {', '.join(NUMBERS)}, got {out[-80:]!r}", seconds)
    return Answer("ok", content, "", seconds)


def parsed(out: str) -> dict[str, Any] | None:
    """The result on the last line, or None where there is none: positive finite times, as many of each phase."""
    try:
        content = json.loads(out.splitlines()[-1])
        times = [[float(t) for t in content[name]] for name in NUMBERS]
    except (IndexError, ValueError, TypeError, KeyError):
        return None
    sound = (
        all(times)
        and len(times[0]) == len(times[1])
        and all(math.isfinite(t) and t > 0 for phase in times for t in phase)
    )
    return dict(content) if sound else None
