"""Workers of a dask cluster in the place of processes: connected to, counted, lost, found again.

dask alone decides where a task runs and starts it again when its worker dies; nothing here schedules.
"""

import logging
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from nas.errors import NotRunError, PlasError, UsageError
from nas.problem.problem import one_line
from nas.search.in_worker import Place, at_worker, place_of, version_here
from nas.search.worker_pool import Arrival, Task, UnreachableError, WorkerDiedError, WorkerPool
from objectives.plugins import DISTRIBUTION

if TYPE_CHECKING:
    from distributed import Client
from pydantic import BaseModel

from nas.problem.problem import Problem
from nas.search.discovery import able_to
from nas.search.strategy import Traits
from nas.study.configuration import StudyConfig

CONNECT_S = 10.0
RECONNECT_S = 120.0  # a scheduler that is started again needs its time
COUNT_S = 5.0  # between two looks at how many workers there are
TALKATIVE = ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado.application")


class Cluster(Executor):
    """distributed's client as an executor whose errors say whose fault it was."""

    def __init__(self, client: "Client", needs: Mapping[str, float]) -> None:
        self.client, self.needs = client, dict(needs)
        self.sent: dict[Future[Any], tuple[str, Any]] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A task's future.

        Raises:
            UnreachableError: the connection is gone.
        """
        answer: Future[Any] = Future()
        key = f"plas-{uuid4().hex}"
        try:
            inner = self.client.submit(fn, *args, key=key, pure=False, resources=self.needs or None, **kwargs)
        except Exception as error:
            raise UnreachableError(f"expected a dask scheduler, got {one_line(error)}") from None
        self.sent[answer] = (key, inner)
        self.client.loop.add_callback(self._follow, answer, inner)
        return answer

    async def _follow(self, answer: Future[Any], inner: Any) -> None:
        """Settle a task's future whatever happens to dask's, whose memory is released with it.

        dask's own executor leaves a future pending for ever when the connection is lost between a task's end and its result.
        """
        try:
            outcome = await self.client.gather(inner, asynchronous=True)
        except BaseException as error:
            failed = inner.status == "error"
            answer.set_exception(
                translated(error) if failed else UnreachableError(f"the dask scheduler was lost ({one_line(error)})")
            )
        else:
            answer.set_result(outcome)
        finally:
            self.sent.pop(answer, None)

    def running_on(self, answer: Future[Any]) -> str | None:
        """The address of the worker that a task was given to; None while it waits for one."""
        key = self.sent.get(answer, ("", None))[0]
        with suppress(Exception):
            return next((worker for worker, keys in self.client.processing().items() if key in keys), None)
        return None

    def stop(self, answer: Future[Any], worker: str) -> None:
        """Give a task up and restart its worker, where a nanny can; what it had besides goes to another."""
        _, inner = self.sent.pop(answer)
        inner.cancel()
        with suppress(Exception):
            self.client.restart_workers([worker], timeout=CONNECT_S, raise_for_error=False)

    def slots(self) -> int:
        """Evaluations that run at the same time: threads of workers that have what one needs.

        Raises:
            OSError: the scheduler does not answer.
        """
        return sum(room_of(worker, self.needs) for worker in self._workers().values())

    def _workers(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        return found

    @property
    def dashboard(self) -> str:
        """The address of dask's dashboard; "" of a scheduler without one."""
        with suppress(Exception):
            return str(self.client.dashboard_link or "")
        return ""

    def description(self) -> str:
        """The address of the cluster, in a line."""
        workers, slots = len(self._workers()), self.slots()
        needed = "".join(f" with {name} {amount:g}" for name, amount in self.needs.items())
        waits = "" if slots else f"; evaluations wait for a worker{needed}"
        seen = f"; dashboard {self.dashboard}" if self.dashboard else ""
        several = "s" if workers != 1 else ""
        return f"Cluster {self.client.scheduler.address}: {workers} worker{several}, {slots} evaluations at once{waits}{seen}"

    def versions(self) -> dict[str, str | BaseException]:
        """Version of this project on each worker, or the error of the request."""
        found: dict[str, str | BaseException] = self.client.run(version_here, on_error="return")
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which drops pending tasks; its workers stay."""
        with suppress(Exception):
            self.client.close(timeout=CONNECT_S)


def translated(error: BaseException) -> BaseException:
    """A task's error as the pool knows it: of the user's function, of its worker, or of what the worker lacks."""
    if isinstance(error, UsageError):
        return error
    if type(error).__name__ == "KilledWorker":
        return WorkerDiedError(one_line(error))
    return error if isinstance(error, NotRunError) else NotRunError(f"{type(error).__name__}: {one_line(error)}")


def room_of(worker: Mapping[str, Any], needs: Mapping[str, float]) -> int:
    """Evaluations that a worker takes at once, by its threads and what it declares."""
    declared = worker.get("resources") or {}
    return min([int(worker["nthreads"]), *(int(declared.get(name, 0) / amount) for name, amount in needs.items())])


def connected(address: str, needs: Mapping[str, float], patience_s: float) -> Cluster:
    """A cluster by the address of its scheduler, `tcp://host:8786`, or the file that it writes, `scheduler.json`.

    Raises:
        UsageError: the extra is missing, nobody answers, or the workers have another version of this project.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise UsageError(
            f"executor: expected the package distributed, got none installed ({error.name}); pip install 'plas-codesign[dask]'"
        ) from None
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    where = {"scheduler_file" if address.endswith(".json") else "address": address}
    try:
        if "scheduler_file" in where:
            Path(address).stat()  # the client would wait for one
        cluster = Cluster(Client(**where, timeout=patience_s, set_as_default=False, name="plas"), needs)
    except Exception as error:
        raise UsageError(
            f"executor: expected a dask scheduler at {address}, got {one_line(error)}; start one with 'dask scheduler'"
        ) from None
    refuse_other_versions(cluster)
    return cluster


def refuse_other_versions(cluster: Cluster) -> None:
    """Refuse workers that lack what this driver needs.

    Raises:
        UsageError: with the first such worker.
    """
    here = version_here()
    for worker, found in cluster.versions().items():
        if found == here or isinstance(found, OSError):  # it ends, or does not answer in time
            continue
        got = one_line(found) if isinstance(found, BaseException) else found
        cluster.shutdown()
        raise UsageError(
            f"executor: expected {DISTRIBUTION} {here} on every worker, got {got} on {worker}; install it in their environment"
        )


class ClusterPool(WorkerPool):
    """Tasks on a cluster, as many at once as it has room for, or `workers` where that is less; its size may change."""

    def __init__(
        self, address: str, needs: Mapping[str, float], workers: int | None = None, timeout_s: float | None = None
    ) -> None:
        super().__init__(workers or sys.maxsize, timeout_s)
        self.address, self.needs = address, needs
        self.executor = self.cluster = connected(address, needs, CONNECT_S)
        self.slots, self.counted = self.cluster.slots(), time.monotonic()
        self.places: dict[str, Place] = {}

    @property
    def at_once(self) -> int:
        """One for every slot of the cluster; one where it has none yet."""
        if self.executor is not None and time.monotonic() - self.counted >= COUNT_S:
            with suppress(Exception):
                self.slots = self.cluster.slots()
            self.counted = time.monotonic()
        return max(1, min(self.slots, self.workers))

    @property
    def sent_at_once(self) -> int:
        """As many as there is room for: dask would give one more to a worker, whose evaluation may take days beside an idle one."""
        return self.at_once

    def opened(self) -> Executor:
        """The cluster; one that was lost is waited for.

        Raises:
            PlasError: it does not come back.
        """
        if self.executor is None:
            try:
                self.executor = self.cluster = connected(self.address, self.needs, RECONNECT_S)
            except UsageError as error:
                raise PlasError(f"{error}; what arrived is kept, go on with --resume") from None
        return self.executor

    def _sent(self, task: Task) -> tuple[Any, ...]:
        _, *what = super()._sent(task)
        module = (task.metric.place or task.metric.name).partition(":")[0]
        if module not in self.places:
            self.places[module] = place_of(module)
        return at_worker, self.places[module], *what

    def _patience(self) -> float:
        patience = super()._patience()
        return COUNT_S if patience is None else min(COUNT_S, patience)

    def _stopped(self, late: list[Future[Any]]) -> list[Arrival]:
        """Restart the workers of tasks that hang, which fail; one that waits for a worker has its time before it.

        dask does not say when a task began: one that is found running is given its time once more.
        """
        found: list[Arrival] = []
        for future in late:
            flight, worker = self.flying[future], self.cluster.running_on(future)
            if worker is not None and flight.seen:
                self.cluster.stop(future, worker)
                found.append((self.flying.pop(future).task, self._late(flight.task)))
            else:
                self.flying[future] = replace(flight, since=time.monotonic(), seen=worker is not None)
        return found


def pool_of(config: StudyConfig, problem: Problem) -> WorkerPool | None:
    """The workers of a study, if any, none where formulas are all that is computed; processes start when they are needed, a cluster is connected to now.

    Raises:
        UsageError: the cluster cannot be used.
    """
    if config.executor is not None and not problem.analytic:
        address = config.executor.partition(":")[2]
        return ClusterPool(address, config.resources, config.workers, config.evaluation_timeout)
    return WorkerPool(config.workers, config.evaluation_timeout) if config.workers and not problem.analytic else None


def refuse_asynchronous(config: StudyConfig, traits: Traits, problem: Problem) -> None:
    """Refuse to ask whenever a worker is idle where there is none, or of a strategy that must wait.

    Raises:
        UsageError: with what to add or to drop.
    """
    if config.asynchronous and (problem.analytic or (config.workers is None and config.executor is None)):
        raise UsageError(
            "asynchronous: expected an objective of your own and workers that evaluate it, got none; add --workers or --set executor=URL, "
            "or drop it"
        )
    if config.asynchronous:
        refuse_waiting(config.algo, traits)


def refuse_waiting(algo: str, traits: Traits) -> None:
    """Refuse a strategy that must receive everything before it is asked again.

    Raises:
        UsageError: with those that need not wait.
    """
    if not traits.asynchronous:
        able = ", ".join(able_to("asynchronous"))
        raise UsageError(
            f"asynchronous: expected a strategy that need not wait ({able}), got {algo}; choose one, or drop it"
        )


def few_whole_values(config: StudyConfig, traits: Traits, problem: Problem) -> list[str]:
    """A sentence where steps leave few values at the full fidelity to a strategy that learns from these alone."""
    stepped = [metric.name for metric in problem.functions if metric.fidelities]
    if not (stepped and traits.informed and traits.cap):
        return []
    return [
        f"{config.algo} learns from values of {stepped[0]} at the full fidelity alone, of which steps leave it few: it comes "
        "farthest without them, and less far the smaller the share that goes on (keep)"
    ]


def idle_workers(config: StudyConfig, parameters: BaseModel, problem: Problem) -> list[str]:
    """A sentence where a strategy asks for fewer architectures at once than there are workers to evaluate them."""
    workers, batch = config.workers or 1, getattr(parameters, "batch", None)
    if problem.analytic or config.asynchronous or not isinstance(batch, int) or batch >= workers:
        return []
    return [
        f"{config.algo} asks for {batch} at once, so that {workers - batch} of {workers} workers wait; --param batch={workers} "
        "keeps them busy, each design chosen without the values of those beside it"
    ]
