"""Worker processes that run cells, whatever the workers do; results do not depend on how many there are."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TypeVar

from nas.search.worker_pool import end_at_once, process_pool

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessPool:
    """Processes that are started when first needed; one worker is this process itself."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.executor: Executor | None = None

    def run(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        died: Callable[[T], R],
        done: Callable[[T, R], None] = lambda task, result: None,
    ) -> list[R]:
        """The function's result for every task, in order; `died` answers for a task that kills its worker."""
        results: dict[int, R] = {}

        def finish(row: int, result: R) -> None:
            results[row] = result
            done(tasks[row], result)

        if self.workers == 1:
            for row, task in enumerate(tasks):
                finish(row, function(task))
        else:
            self._spread(function, tasks, died, finish)
        return [results[row] for row in range(len(tasks))]

    def _spread(
        self, function: Callable[[T], R], tasks: Sequence[T], died: Callable[[T], R], finish: Callable[[int, R], None]
    ) -> None:
        waiting = deque(range(len(tasks)))
        while waiting:
            for row in self._round(function, tasks, waiting, self.workers, finish):
                if self._round(function, tasks, deque([row]), 1, finish):  # alone, the guilty one is found
                    finish(row, died(tasks[row]))

    def _round(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        waiting: deque[int],
        at_once: int,
        finish: Callable[[int, R], None],
    ) -> list[int]:
        """Work through `waiting`; rows in flight when a worker died are returned."""
        flying: dict[Future[R], int] = {}
        try:
            while waiting or flying:
                while waiting and len(flying) < at_once:
                    future = self._executor().submit(function, tasks[waiting[0]])
                    flying[future] = waiting.popleft()
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    finish(flying[future], future.result())
                    del flying[future]
        except BrokenExecutor:
            self.close()
            return sorted(flying.values())
        return []

    def _executor(self) -> Executor:
        if self.executor is None:
            self.executor = process_pool(self.workers)
        return self.executor

    def close(self) -> None:
        """End the workers at once; what they were writing is continued from its log."""
        executor, self.executor = self.executor, None
        if executor is not None:
            end_at_once(executor)
