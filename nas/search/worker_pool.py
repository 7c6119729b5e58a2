"""User metrics on worker processes, one architecture a task, whatever the workers do.

The driver alone owns strategy and log. Results do not depend on the number of workers; an
exception, a value that is not finite, a timeout or a dead worker fails its own architecture only.
"""

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from nas.errors import NotRunError, PlasError
from nas.problem.objective import Objective
from nas.search.in_worker import Answer, in_worker, overdue, prepare_worker
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

GRACE_S = 60.0  # beyond the timeout, for starting a process, before a worker is killed from outside
ENDING_S = 10.0  # for an executor whose processes are gone to end its own thread
TRIES = 3  # of a task that did not come to run, and of connections without an answer, one after the other


class UnreachableError(BrokenExecutor):
    """The connection to the workers is lost; no task is the cause."""


class WorkerDiedError(Exception):
    """A task whose worker died, as often as the executor tries it."""


@dataclass(frozen=True, eq=False)
class Task:
    """A metric of one architecture; `key` identifies it among all tasks: the architecture's, and the metric's label. others: further columns of its function."""

    key: tuple[int, str]
    metric: Objective
    architecture: Architectures
    scenario: Scenario | None = None
    others: tuple[Objective, ...] = ()


@dataclass(frozen=True, eq=False)
class Flight:
    """A task that was sent, since when it is waited for (∞ while it stands behind others), and whether a worker was seen with it."""

    task: Task
    since: float = math.inf
    seen: bool = False


Arrival = tuple[Task, Answer | list[Answer]]


def process_pool(workers: int) -> Executor:
    """A fresh pool of processes that share nothing with the driver."""
    return ProcessPoolExecutor(workers, get_context("spawn"), prepare_worker, (list(sys.path),))


def end_at_once(executor: Executor) -> None:
    """Kill an executor's processes, if it has any, and drop its tasks.

    The thread that minds them is waited for: while it closes its pipe, the end of this process must not write to that.
    """
    minding = getattr(executor, "_executor_manager_thread", None)
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.kill()
    executor.shutdown(wait=False, cancel_futures=True)
    if minding is not None:
        minding.join(ENDING_S)


class WorkerPool:
    """Tasks through `concurrent.futures.Executor`s that may be killed and replaced, at most `workers` at work at once."""

    def __init__(self, workers: int, timeout_s: float | None, make: Callable[[int], Executor] = process_pool) -> None:
        self.workers, self.timeout_s, self.make = workers, timeout_s, make
        self.executor: Executor | None = None
        self.waiting: deque[Task] = deque()
        self.suspects: deque[Task] = deque()  # one of them killed its worker: alone, the guilty one is found
        self.flying: dict[Future[Any], Flight] = {}
        self.ended: SimpleQueue[Future[Any]] = SimpleQueue()  # told by each: nobody looks through all that fly
        self.alone = False
        self.tries: Counter[tuple[int, str]] = Counter()
        self.losses = 0

    @property
    def at_once(self) -> int:
        """Tasks that are worked on at the same time."""
        return self.workers

    @property
    def spare(self) -> int:
        """Further ones that wait, so that no worker waits for the driver: one for every four workers; beside one alone none."""
        return -(-self.at_once // 4) if self.at_once > 1 else 0

    @property
    def sent_at_once(self) -> int:
        """Tasks that are sent before one of them is back: a worker takes the next one while the driver thinks."""
        return self.at_once + self.spare

    def add(self, tasks: Iterable[Task]) -> None:
        """Tasks to send, in order, as workers become free."""
        self.waiting.extend(tasks)

    def arrivals(self) -> list[Arrival]:
        """Results that have come back since the last call, waiting for one if need be; none where no task runs.

        Raises:
            UsageError: values of another shape or type, which no architecture would get right.
            PlasError: the workers cannot be reached any more, or cannot run what they are sent.
        """
        while self.waiting or self.suspects or self.flying:
            if found := self._send() or self._received():
                return found + self._send()  # no worker waits while the driver works on what it got
        return []

    def _send(self) -> list[Arrival]:
        """Give the workers what they have room for, suspects alone; the one that is guilty, where that shows here."""
        while self._room():
            self.alone = bool(self.suspects)
            task = (self.suspects or self.waiting).popleft()
            try:
                future = self.opened().submit(*self._sent(task))
            except BrokenExecutor as error:
                return self._broke(error, task)
            self.flying[future] = Flight(task)
            future.add_done_callback(self.ended.put)
        for future, flight in islice(self.flying.items(), self.at_once):  # executors begin in order
            if flight.since == math.inf:
                self.flying[future] = replace(flight, since=time.monotonic())
        return []

    def _room(self) -> bool:
        if self.suspects or (self.alone and self.flying):
            return not self.flying
        return bool(self.waiting) and len(self.flying) < self.sent_at_once

    def _sent(self, task: Task) -> tuple[Any, ...]:
        """The function that a worker calls, with its arguments."""
        metric, given = task.metric, task.scenario if task.metric.wants_scenario else None
        place = metric.place or metric.name
        what = (metric.name, task.architecture, given, self.timeout_s, place)
        return in_worker, *what, metric.settings, metric.fidelity, [other.name for other in task.others]

    def _received(self) -> list[Arrival]:
        """Answers that are there, after waiting for one; broken executors and hanging tasks are seen to."""
        found: list[Arrival] = []
        broken: BaseException | None = None
        for future in sorted(self._done(), key=lambda future: isinstance(future.exception(), PlasError)):
            error = future.exception()
            if found and isinstance(error, PlasError):
                self.ended.put(future)  # it may end the run: what arrived beside it is kept first
            elif isinstance(error, BrokenExecutor):
                broken = error
            else:
                found += self._settled(self.flying.pop(future).task, future, error)
        self.losses = 0 if found else self.losses
        return found + (self._broke(broken) if broken else self._end_overdue())

    def _done(self) -> list[Future[Any]]:
        """Tasks that have ended, in that order, after waiting for one or until one may be overdue; none of executors that are gone."""
        ended: list[Future[Any]] = []
        if not self.flying:
            return ended
        with suppress(Empty):
            ended.append(self.ended.get(timeout=self._patience()))
            while True:
                ended.append(self.ended.get_nowait())
        return [future for future in ended if future in self.flying]

    def _settled(self, task: Task, future: Future[Any], error: BaseException | None) -> list[Arrival]:
        """A task's answer; one that a worker could not run is sent again."""
        if isinstance(error, WorkerDiedError):
            return [(task, died(task))]
        if not isinstance(error, NotRunError):
            return [(task, future.result())]
        self.tries[task.key] += 1
        if self.tries[task.key] == TRIES:
            raise PlasError(f"executor: expected workers that can evaluate {task.metric.name}, got {error}")
        self.waiting.appendleft(task)
        return []

    def opened(self) -> Executor:
        """The executor, a new one where there is none."""
        if self.executor is None:
            self.executor = self.make(self.workers)
        return self.executor

    def _broke(self, error: BaseException, *refused: Task) -> list[Arrival]:
        """Replace a broken executor; what was under way starts again, the task that breaks it alone is answered."""
        tasks = [*(flight.task for flight in self.flying.values()), *refused]
        self.close()
        if isinstance(error, UnreachableError):
            self.losses += 1
            if self.losses == TRIES:
                raise PlasError(
                    f"executor: {error}, {TRIES} times without an answer; what arrived is kept, go on with --resume"
                )
            self.waiting.extendleft(reversed(tasks))
            return []
        if self.alone:
            return [(task, died(task)) for task in tasks]
        self.suspects.extend(tasks)
        return []

    def _patience(self) -> float | None:
        """Seconds until a task in flight may be overdue."""
        if self.timeout_s is None:
            return None
        oldest = min(flight.since for flight in self.flying.values())
        return max(0.0, oldest + self.timeout_s + GRACE_S - time.monotonic())

    def _end_overdue(self) -> list[Arrival]:
        """Fail what ignores its own clock."""
        if self.timeout_s is None:
            return []
        latest = time.monotonic() - self.timeout_s - GRACE_S
        late = [f for f, flight in self.flying.items() if flight.since <= latest and not f.done()]
        return self._stopped(late) if late else []

    def _stopped(self, late: list[Future[Any]]) -> list[Arrival]:
        """Kill the workers of hanging tasks, which fail; what flew beside them starts again."""
        tasks = [self.flying.pop(future).task for future in late]
        self.waiting.extendleft(flight.task for flight in reversed(self.flying.values()))
        self.close()
        return [(task, self._late(task)) for task in tasks]

    def _late(self, task: Task) -> Answer:
        return np.nan, overdue(task.metric.name, self.timeout_s)

    def close(self) -> None:
        """End the workers, also those that hang."""
        executor, self.executor = self.executor, None
        self.flying.clear()
        if executor is not None:
            end_at_once(executor)


def died(task: Task) -> Answer:
    """The answer of a task that killed its worker."""
    return np.nan, f"{task.metric.name}: the worker process died"


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
