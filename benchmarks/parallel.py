"""How busy workers are kept, and what an evaluation costs the driver: processes and a dask cluster, with and without waiting.

python -m benchmarks.parallel [--workers 4] [--seconds 0.2] [--evaluations 300] [--places processes,dask] [--cases NAME,NAME]
python -m benchmarks.parallel --saturation MS     where the driver becomes the bottleneck, for so many ms per evaluation

The objective sleeps. A worker counts from the moment at which all of them have begun, so that starting processes is no part of it.
"""

import argparse
import heapq
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.record.store import RunStore
from nas.search.assembly import Study, assemble
from nas.search.cluster import pool_of
from nas.search.lifecycle import search_of, store_columns
from nas.search.loop import Limits, Search
from nas.search.strategy import Strategy
from search_spaces.arrays import IntArray

ROOT = Path(__file__).resolve().parents[1]
SLEEPER = """\
import os, time

def cost(a):
    start = time.monotonic()
    time.sleep(float(os.environ["SLEEP_S"]))
    with open(os.environ["SLEPT"], "a") as file:
        file.write(f"{os.getpid()} {start} {time.monotonic()}\\n")
    return a.depth * a.width / 1e4 + 1 / (1 + a.n_kv_heads)
"""


@dataclass(frozen=True)
class Case:
    """A strategy with its parameters, asked for batches or without waiting; seconds and evaluations in place of the usual."""

    algo: str
    asynchronous: bool
    params: dict[str, int]
    seconds: float | None = None
    evaluations: int | None = None


CASES = {
    "batches of 100": Case("random", False, {"batch": 100}),
    "nsga2, broods of 20": Case("nsga2", False, {}),
    "nsga2": Case("nsga2", True, {}),
    "local_search": Case("local_search", True, {}),
    "optuna_tpe": Case("optuna_tpe", True, {}, 2.0, 60),
    "optuna_gp": Case("optuna_gp", True, {}, 2.0, 60),
}


@dataclass(frozen=True)
class Result:
    """Share of the workers' time that was spent evaluating, and ms of processor time per evaluation: the driver's, the strategy's within it."""

    efficiency: float
    driver_ms: float
    strategy_ms: float


class Clocked:
    """A strategy, and the seconds of processor time since a moment that its asks and tells took."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy, self.seconds = strategy, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.strategy, name)

    def ask(self, at_most: int) -> IntArray:
        """The strategy's."""
        with self._clock():
            return self.strategy.ask(at_most)

    def tell(self, evaluations: Evaluations) -> None:
        """The strategy's."""
        with self._clock():
            self.strategy.tell(evaluations)

    @contextmanager
    def _clock(self) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


def measured(case: Case, raw: dict[str, object], slept: Path, workers: int, evaluations: int) -> Result:
    """One search on workers that were started for it."""
    slept.unlink(missing_ok=True)
    study = assemble(
        {
            "algo": case.algo,
            "asynchronous": case.asynchronous,
            "params": case.params,
            "objectives": ["loss", "sleeper:cost"],
            "baselines": [],
            "applications": {},
            "workers": workers,
            **raw,
        },
        {},
        frozenset(raw),
    )
    with tempfile.TemporaryDirectory() as folder:
        spent_ms = searched(study, Path(folder), case.evaluations or evaluations)
    return Result(busy(slept, workers), *spent_ms)


def searched(study: Study, folder: Path, evaluations: int) -> tuple[float, float]:
    """Search; ms of processor time per evaluation after the first ones, by which everything was started, and the strategy's of these."""
    problem, begun = study.problem, list[tuple[int, float, float]]()
    names = tuple(objective.name for objective in problem.objectives)
    store = RunStore(folder / "run.sqlite", problem.metric_names, names, problem.budgets)
    store.create({}, store_columns(problem))
    pool = pool_of(study.config)
    assert pool is not None

    search = search_of(study, store, None, pool)
    search.strategy = strategy = Clocked(search.strategy)

    def report(search: Search) -> None:
        if not begun:
            begun.append((len(search.archive), time.process_time(), strategy.seconds))

    search.run(Limits(evaluations), report)
    [(first, start, thought)], end = begun, time.process_time()
    pool.close()
    store.close()
    each = 1e3 / (evaluations - first)
    return each * (end - start), each * (strategy.seconds - thought)


def busy(slept: Path, workers: int) -> float:
    """Share of all workers' time, from when the last of them began, that was spent in the objective."""
    rows = [line.split() for line in slept.read_text().splitlines()]
    spans = np.array([(float(start), float(end)) for _, start, end in rows])
    first: dict[str, float] = {}
    for process, start, _ in rows:
        first[process] = min(float(start), first.get(process, np.inf))
    if len(first) < workers:
        raise SystemExit(f"expected {workers} workers, got {len(first)}; give more --evaluations")
    began, ended = max(first.values()), spans[:, 1].max()
    inside = np.clip(spans[:, 1], began, ended) - np.clip(spans[:, 0], began, ended)
    return float(inside.sum() / (workers * (ended - began)))


@contextmanager
def cluster(workers: int, folder: Path) -> Iterator[str]:
    """A scheduler and worker processes on the loopback interface; the scheduler's file."""
    place = folder / "scheduler.json"
    lines = [
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(place)],
        ["distributed.cli.dask_worker", "--scheduler-file", str(place), "--nworkers", str(workers), "--nthreads", "1"],
    ]
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([sys.executable, "-m", *line, "--no-dashboard"], **quiet) for line in lines]  # type: ignore[call-overload]
    try:
        from distributed import Client

        while not place.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(place), set_as_default=False) as client:
            client.wait_for_workers(workers)
        yield str(place)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def saturated(workers: int, seconds: float, driver_ms: float, seed: int = 0) -> float:
    """Share of their time that workers are busy, simulated over 20 evaluations each, whose durations vary by a third.

    The driver serves one answer after the other; a worker has its next design when its answer was served.
    """
    durations = seconds * np.random.default_rng(seed).gamma(9.0, 1 / 9.0, 21 * workers)
    ends, free, idle = durations[:workers].tolist(), 0.0, 0.0
    heapq.heapify(ends)
    for duration in durations[workers:].tolist():
        end = heapq.heappop(ends)
        free = max(free, end) + driver_ms / 1e3
        idle += free - end
        heapq.heappush(ends, free + duration)
    return 1.0 - idle / (workers * free)


def main() -> None:
    """Measure, or simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--evaluations", type=int, default=300)
    parser.add_argument("--places", default="processes,dask")
    parser.add_argument("--cases", default=",".join(name for name in CASES if "," not in name))
    parser.add_argument("--saturation", type=float, metavar="MS")
    asked = parser.parse_args()
    if asked.saturation is not None:
        print("| workers | 0.02 s | 0.2 s | 2 s | 20 s |\n|---|---|---|---|---|")
        for workers in (4, 40, 400, 4000):
            shares = [saturated(workers, seconds, asked.saturation) for seconds in (0.02, 0.2, 2.0, 20.0)]
            print(f"| {workers:,} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + " |")
        return
    print(
        "| case | workers | an evaluation | kept busy | driver per evaluation | of these the strategy |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sleeper.py").write_text(SLEEPER)
        sys.path.insert(0, name)
        os.environ |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{name}", "SLEPT": str(folder / "slept")}
        for place in asked.places.split(","):
            for case_name in asked.cases.split(","):
                case = CASES[case_name]
                seconds = case.seconds or asked.seconds
                os.environ["SLEEP_S"] = str(seconds)
                with cluster(asked.workers, folder) if place == "dask" else tempfile.TemporaryDirectory() as where:
                    raw = {"executor": f"dask:{where}"} if place == "dask" else {}
                    found = measured(case, raw, folder / "slept", asked.workers, asked.evaluations)
                waits = "without waiting" if case.asynchronous else "in batches"
                spent = f"{found.driver_ms:.2f} ms | {found.strategy_ms:.2f} ms"
                print(
                    f"| {case_name}, {waits} | {asked.workers}, {place} | {seconds:g} s | {100 * found.efficiency:.1f} % | {spent} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
