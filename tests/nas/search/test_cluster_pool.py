"""Evaluations on a cluster that are deaf to their timeout: their worker is restarted, and what waits keeps its time."""

import asyncio
import importlib
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from importlib.util import find_spec
from typing import Any, cast

import pytest

from nas.problem.objective import Objective
from nas.search import cluster as connecting
from nas.search import worker_pool as evaluating
from nas.search.cluster import Cluster, ClusterPool
from nas.search.worker_pool import Task, UnreachableError
from tests.nas.search.test_worker_pool import answered, architectures

TIMEOUT_S, LATE = 0.05, "slow: timeout after 0.05 s"


class Hanging:
    """A cluster of two slots whose workers never answer: the first task is with a worker, the second waits for one."""

    def __init__(self) -> None:
        self.sent: list[Future[Any]] = []
        self.asked: dict[int, list[float]] = {0: [], 1: []}
        self.stopped: list[tuple[int, str]] = []

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        """A future that nobody settles."""
        self.sent.append(Future())
        return self.sent[-1]

    def running_on(self, future: Future[Any]) -> str | None:
        """The worker of the first; the second's from the third look on."""
        number = self.sent.index(future)
        self.asked[number].append(time.monotonic())
        return f"worker {number}" if number == 0 or len(self.asked[1]) > 2 else None

    def stop(self, future: Future[Any], worker: str) -> None:
        """Note whose worker is restarted."""
        self.stopped.append((self.sent.index(future), worker))

    def slots(self) -> int:
        """Two."""
        return 2

    def shutdown(self, **_: Any) -> None:
        """Nothing to leave."""


def test_one_that_runs_has_its_time_once_more_and_one_that_waits_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """dask does not say when a task began: it is given up at the second look that finds it on a worker, and no sooner."""
    made = Hanging()
    monkeypatch.setattr(evaluating, "GRACE_S", 0.05)
    monkeypatch.setattr(connecting, "connected", lambda *_: made)
    pool = ClusterPool("tcp://nowhere:1", {}, None, TIMEOUT_S)
    metric = Objective("slow", place="json:loads")
    pool.add(Task((i, "slow"), metric, architectures(1)) for i in range(2))
    begin = time.monotonic()
    answers = answered(pool)
    assert {key: reason for key, (_, reason) in answers.items()} == {0: LATE, 1: LATE}
    assert made.stopped == [(0, "worker 0"), (1, "worker 1")]
    assert len(made.asked[0]) == 2
    assert len(made.asked[1]) == 4, "twice it waited, once it was seen, then it was given up"
    assert time.monotonic() - begin >= 4 * (TIMEOUT_S + 0.05)
    assert not pool.flying


class Lost:
    """A client that loses its scheduler between the end of a task and the gathering of its result."""

    loop: "Lost"
    status = "finished"

    def __init__(self) -> None:
        self.loop = self

    def submit(self, *_: Any, **__: Any) -> "Lost":
        """dask's future: it has ended."""
        return self

    async def gather(self, *_: Any, **__: Any) -> Any:
        """The connection is gone."""
        raise OSError("Timed out trying to connect")

    def add_callback(self, function: Callable[..., Any], *given: Any) -> None:
        """The client's loop, at once."""
        asyncio.run(function(*given))


def test_a_result_that_is_lost_with_the_scheduler_is_no_silence() -> None:
    """The future ends, as one of a cluster that is gone: the pool connects again and sends the task once more."""
    future = Cluster(cast("Any", Lost()), {}).submit(len, "abc")
    assert future.done()
    assert isinstance(future.exception(), UnreachableError)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="needs the extra dask, which is not installed")
def test_the_worker_of_a_deaf_evaluation_is_restarted(
    user_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On real workers with nannies: the others' answers are whole, and the restarted worker evaluates again."""
    from distributed import LocalCluster

    monkeypatch.setattr(evaluating, "GRACE_S", 2.0)
    monkeypatch.setattr(connecting, "COUNT_S", 0.5)
    name = user_module("import time\ndef fn(a):\n    time.sleep(60 * (a.depth[0] == 2))\n    return a.depth / 2\n")
    metric = Objective(f"{name}:fn", function=importlib.import_module(name).fn)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        pool = ClusterPool(cluster.scheduler_address, {}, None, 1.0)
        designs = architectures(4)
        pool.add(Task((i, metric.name), metric, designs[i : i + 1]) for i in range(4))
        begin, answers = time.monotonic(), answered(pool)
        pool.close()
    expected: Mapping[int, str] = {0: "", 1: f"{metric.name}: timeout after 1 s", 2: "", 3: ""}
    assert {key: reason for key, (_, reason) in answers.items()} == expected
    assert [answers[key][0] for key in (0, 2, 3)] == [0.5, 1.5, 2.0]
    assert time.monotonic() - begin < 50, "nobody waited for the sleeper"
    assert name in sys.modules
