"""Processes that import PyTorch once and then do what is asked of them, one thing after another."""

import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

READY_S = 120.0  # for importing PyTorch and transformers on a machine that has not read them yet
NEEDS = (
    "torch",
    "transformers",
    "transformers.models.qwen3.modeling_qwen3",
    "transformers.models.qwen3_moe.modeling_qwen3_moe",
)


@dataclass(eq=False)
class Worker:
    """A process that does one thing at a time; `busy` is what, None where it waits."""

    process: Any
    pipe: Connection
    busy: Any = None

    def ask(self, what: Any, told: Any) -> None:
        """Begin something."""
        self.busy = what
        self.pipe.send(told)


def started(call: Callable[[Any], Any], count: int) -> list[Worker]:
    """Processes that have imported what trainings need and now wait to `call`.

    Raises:
        TimeoutError: one is not ready in time.
    """
    context, found = get_context("spawn"), []
    for _ in range(count):
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(call, there), daemon=True)
        process.start()
        there.close()
        found.append(Worker(process, here))
    until = time.monotonic() + READY_S
    for worker in found:
        if not worker.pipe.poll(max(0.0, until - time.monotonic())):
            raise TimeoutError(f"expected {count} workers ready within {READY_S:g} s, got fewer")
        worker.pipe.recv()
    return found


def answers(workers: list[Worker], until: float) -> Iterator[tuple[Worker, Mapping[str, Any] | None]]:
    """What busy workers answer, as it comes, until a time of the monotonic clock or until none is busy; None from one that died."""
    while busy := {worker.pipe: worker for worker in workers if worker.busy is not None}:
        ready = wait(list(busy), max(0.0, until - time.monotonic()))
        if not ready:
            return
        for pipe in ready:
            worker = busy[pipe]
            try:
                content = worker.pipe.recv()
            except (EOFError, OSError):
                workers.remove(worker)
                content = None
            yield worker, content


def ended(workers: list[Worker]) -> None:
    """End all processes."""
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()


def _serve(call: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer what comes through the pipe until nobody asks any more; what the call prints is lost."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    for name in NEEDS:
        importlib.import_module(name)
    pipe.send("ready")
    while True:
        try:
            told = pipe.recv()
        except EOFError:
            return
        try:
            content = call(told)
        except Exception:
            content = {"state": "failed", "reason": traceback.format_exc()[-600:]}
        pipe.send(content)
