"""Runs of a comparison in worker processes: searched or continued, then read back as traces.

Results do not depend on how many workers there are, nor on whether one of them is killed.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from nas.compare.anytime import Trace
from nas.compare.configuration import RunSpec
from nas.errors import PlasError, UsageError
from nas.files.own_files import inner_folder
from nas.record import folder as run_folder
from nas.record.identity import difference
from nas.record.store import FILE, Recorded, RunStore, begun, final
from nas.search.assembly import Study
from nas.search.cluster import pool_of
from nas.search.lifecycle import create_run, read_manifest, retry_failed, search_of, store_of, try_update
from nas.search.loop import Limits
from nas.search.worker_pool import end_at_once, process_pool

PATIENCE_S = 5.0  # for a worker of a killed driver to let go of its folder


def execute(cell: RunSpec) -> str:
    """Search until the run holds what it should; "" or the reason why it failed."""
    try:
        inner_folder(cell.folder.parents[3], *cell.folder.parts[-4:])
        with locked(cell.folder):
            if cell.retry or not is_done(cell):
                search(cell)
    except Exception as error:
        reason = str(error) if isinstance(error, PlasError) else f"{type(error).__name__}: {error}"
        return " ".join(reason.split())[:300]
    return ""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The run folder's lock, waited for a few seconds."""
    deadline = time.monotonic() + PATIENCE_S
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(run_folder.locked(folder))
                break
            except UsageError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield


def is_done(cell: RunSpec) -> bool:
    """Whether the run is finished as this study with enough designs.

    Raises:
        UsageError: it is another study's.
    """
    if not begun(cell.folder / FILE):
        return False
    run = run_folder.open_run(cell.folder)
    run.store.close()
    if found := difference(run.resolved, cell.setup.resolved()):
        raise UsageError(f"{cell.folder}: {found}; start a new comparison instead")
    manifest = read_manifest(cell.folder, cell.setup).content
    return manifest.get("state") == "finished" and (
        (manifest.get("limit") or 0) >= cell.limit
        or not str(manifest.get("stop_reason")).endswith("distinct evaluations")
    )


def finished(cell: RunSpec) -> bool:
    """Whether the run is there with enough designs."""
    try:
        return is_done(cell)
    except PlasError:
        return False


def search(cell: RunSpec) -> None:
    """Run the search from its beginning or from what is recorded; the manifest says how it went."""
    study = cell.setup
    store, recorded = opened(cell.folder, study)
    manifest = read_manifest(cell.folder, study)
    manifest.update(state="running", ended=None, stop_reason=None)
    config = study.config
    pool = pool_of(config, study.problem)
    try:
        limits = Limits(study.limit, config.time_limit, config.stop_when_stable)
        searching = search_of(study, store, recorded, pool)
        if cell.retry and recorded is not None:
            retry_failed(searching, store, recorded)
        reason = searching.run(limits)
    except BaseException as error:
        state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        try_update(manifest, state=state, ended=run_folder.now(), stop_reason=f"{type(error).__name__}: {error}")
        raise
    finally:
        store.close()
        if pool is not None:
            pool.close()
    manifest.update(state="finished", ended=run_folder.now(), stop_reason=reason, limit=study.limit)


def opened(folder: Path, study: Study) -> tuple[RunStore, Recorded | None]:
    """The run's store, laid out again unless something is recorded."""
    if not begun(folder / FILE):
        for leftover in folder.glob(f"{FILE}*"):
            leftover.unlink()
        return create_run(study, folder)[0], None
    run = run_folder.open_run(folder)
    run.store.check()
    recorded = run.store.read()
    run.store.close()
    return store_of(study.problem, folder), recorded


def trace(cell: RunSpec, asked: int) -> Trace:
    """The run's evaluations, at most `asked` designs or the strategy's cap.

    Raises:
        PlasError: a damaged store.
    """
    most = min(asked, cell.limit)
    run = run_folder.open_run(cell.folder)
    recorded = run.store.read()
    rows, strategy_s, objectives_s = run.store.spent()
    run.store.close()
    evaluations = final(recorded.evaluations, recorded.retried)[slice(0, most)]
    seconds = np.repeat(np.cumsum(strategy_s + objectives_s), rows)[:most]
    reason = str(read_manifest(cell.folder, cell.setup).content["stop_reason"])
    return Trace(
        cell.strategy,
        f"s{cell.seed}",
        cell.seed,
        evaluations.values,
        evaluations.feasible,
        evaluations.keys,
        "" if len(evaluations) >= asked else ended(reason, cell.cap, len(evaluations)),
        seconds,
        float(np.repeat(strategy_s / np.maximum(rows, 1), rows)[:most].sum()),
    )


def ended(reason: str, cap: int | None, count: int) -> str:
    """Why a run holds fewer designs than asked: capped, stalled, exhausted, time, or stopped by its own rule."""
    if cap is not None and count >= cap:
        return "capped"
    for word, mark in (("stalled", "stalled"), ("space exhausted", "exhausted"), ("time limit", "time")):
        if reason.startswith(word):
            return mark
    return "stopped"


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
