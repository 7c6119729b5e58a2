"""Evaluation of user metrics in worker processes, one architecture a task, whatever the workers do.

The driver alone owns strategy and log. Results do not depend on the number of workers; an
exception, a value that is not finite, a timeout or a dead worker fails its own architecture only.
"""

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

import numpy as np

from nas.errors import UsageError
from nas.problem.objective import Objective
from nas.problem.problem import call_user_metric, failure
from nas.study.own_modules import loaded
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

Answer = tuple[float, str]
GRACE_S = 60.0  # beyond the timeout, for starting a process, before a worker is killed from outside


class Overdue(KeyboardInterrupt):
    """Raised inside an evaluation whose time is up; not an Exception, so that user code does not catch it."""


def in_worker(
    name: str, architecture: Architectures, scenario: Scenario | None, timeout_s: float | None, place: str
) -> Answer:
    """A user metric of one architecture, in a worker, imported from its place: value and reason of failure.

    The clock runs from here, so that starting a process or waiting in a queue costs no time.
    Whatever the module or the function raises fails this architecture alone.

    Raises:
        UsageError: values of another shape or type, which no architecture would get right.
    """
    try:
        with clock(timeout_s):
            module, _, attribute = place.partition(":")
            function = getattr(loaded(module), attribute)
            metric = Objective(name, "", bool(getattr(function, "LOG_SCALE", False)), function)
            values, reasons = call_user_metric(metric, architecture, scenario)
            return float(values[0]), reasons[0]
    except UsageError:
        raise
    except Overdue:
        return np.nan, overdue(name, timeout_s)
    except BaseException as error:
        return np.nan, failure(name, error)


def _interrupt(*_: object) -> None:
    raise Overdue


@contextmanager
def clock(timeout_s: float | None) -> Iterator[None]:
    """Raise `Overdue` in here when the time is up; an executor of threads has only the driver's clock."""
    if timeout_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def overdue(name: str, timeout_s: float | None) -> str:
    """The reason of a timeout."""
    return f"{name}: timeout after {timeout_s:g} s"


def prepare_worker(path: Sequence[str]) -> None:
    """Workers import what the driver can import, leave Ctrl-C to the driver, and end when it is killed."""
    sys.path[:] = list(path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    driver = parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def process_pool(workers: int) -> Executor:
    """A fresh pool of processes that share nothing with the driver."""
    return ProcessPoolExecutor(workers, get_context("spawn"), prepare_worker, (list(sys.path),))


def end_at_once(executor: Executor) -> None:
    """Kill an executor's processes, if it has any, and forget what it was asked."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.kill()
    executor.shutdown(wait=False, cancel_futures=True)


class WorkerPool:
    """Calls user metrics through `concurrent.futures.Executor`s that may be killed and replaced."""

    def __init__(self, workers: int, timeout_s: float | None, make: Callable[[int], Executor] = process_pool) -> None:
        self.workers, self.timeout_s, self.make = workers, timeout_s, make
        self.executor: Executor | None = None

    def call(
        self, metric: Objective, architectures: Architectures, scenario: Scenario | None = None
    ) -> tuple[FloatArray, list[str]]:
        """Values (n,) and reasons of a user metric, in order; the scenario goes to one that takes it."""
        given = scenario if metric.wants_scenario else None

        def submit(row: int) -> Future[Answer]:
            what = (metric.name, architectures[row : row + 1], given, self.timeout_s, metric.place or metric.name)
            return self._executor().submit(in_worker, *what)

        answers: dict[int, Answer] = {}
        waiting = deque(range(len(architectures)))
        while waiting:
            suspects = self._run(metric.name, submit, waiting, answers, self.workers)
            for row in suspects:  # one of them killed its worker: alone, the guilty one is found
                alone = deque([row])
                if self._run(metric.name, submit, alone, answers, 1):
                    answers[row] = (np.nan, f"{metric.name}: the worker process died")
        rows = [answers[row] for row in range(len(architectures))]
        return np.array([value for value, _ in rows]), [reason for _, reason in rows]

    def _run(
        self,
        name: str,
        submit: Callable[[int], Future[Answer]],
        waiting: deque[int],
        answers: dict[int, Answer],
        at_once: int,
    ) -> list[int]:
        """Work through `waiting`; rows in flight, or refused, when a worker died are returned."""
        flying: dict[Future[Answer], tuple[int, float]] = {}
        while waiting or flying:
            while waiting and len(flying) < at_once:
                row = waiting.popleft()
                try:
                    future = submit(row)
                except BrokenExecutor:
                    return sorted([row, *self._died(flying)])
                flying[future] = (row, time.monotonic())
            done, _ = wait(flying, timeout=self._patience(flying), return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenExecutor) for future in done):
                return self._died(flying)
            for future in done:
                answers[flying.pop(future)[0]] = future.result()
            self._end_overdue(name, flying, waiting, answers)
        return []

    def _executor(self) -> Executor:
        if self.executor is None:
            self.executor = self.make(self.workers)
        return self.executor

    def _patience(self, flying: dict[Future[Answer], tuple[int, float]]) -> float | None:
        if self.timeout_s is None:
            return None
        return max(0.0, min(start for _, start in flying.values()) + self.timeout_s + GRACE_S - time.monotonic())

    def _died(self, flying: dict[Future[Answer], tuple[int, float]]) -> list[int]:
        self.close()
        return sorted(row for row, _ in flying.values())

    def _end_overdue(
        self,
        name: str,
        flying: dict[Future[Answer], tuple[int, float]],
        waiting: deque[int],
        answers: dict[int, Answer],
    ) -> None:
        """Fail what ignores its own clock; its worker is killed, so what flew beside it starts again."""
        if self.timeout_s is None:
            return
        now = time.monotonic()
        late = [
            row
            for future, (row, start) in flying.items()
            if now - start >= self.timeout_s + GRACE_S and not future.done()
        ]
        if not late:
            return
        for row in late:
            answers[row] = (np.nan, overdue(name, self.timeout_s))
        waiting.extendleft(sorted((row for row, _ in flying.values() if row not in late), reverse=True))
        flying.clear()
        self.close()

    def close(self) -> None:
        """End the workers, also those that hang."""
        executor, self.executor = self.executor, None
        if executor is not None:
            end_at_once(executor)


class Pace:
    """How many architectures to evaluate before the log is written: about a second of work."""

    def __init__(self, least: int) -> None:
        self.size = self.least = least

    def took(self, count: int, seconds: float) -> None:
        """Adapt to what the last block took."""
        if count >= self.size and seconds < 0.5:
            self.size *= 2
        elif seconds > 2.0:
            self.size = max(self.least, self.size // 2)
