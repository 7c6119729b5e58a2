"""Workers that die, hang, raise or return nonsense: each fails its own architecture, and their number changes nothing."""

import csv
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.errors import NotRunError, PlasError, UsageError
from nas.files.yaml_source import dump
from nas.problem.objective import Objective
from nas.search import worker_pool as evaluating
from nas.search.in_worker import Answer
from nas.search.worker_pool import TRIES, Pace, Task, UnreachableError, WorkerDiedError, WorkerPool
from search_spaces.architectures import Architectures, architectures_of

Inside = Callable[..., Any]
Checked = Callable[..., str]
Written = Callable[[str], str]

ILL = """\
import asyncio
import math
import os
import sys
import time

class Odd(BaseException):
    pass

def fn(a):
    depth = int(a.depth[0])
    if depth == 2:
        raise ValueError("no such\\nchip")
    if depth == 3:
        sys.exit(7)
    if depth == 4:
        raise Odd("of its own kind")
    if depth == 5:
        raise asyncio.CancelledError
    if depth == 6:
        return [math.nan]
    if depth == 7:
        return [-math.inf]
    if depth == 8:
        DEATH
    if depth == 9:
        time.sleep(60)
    return a.depth / 2
"""
REASONS = {
    2: "ValueError: no such chip",
    3: "SystemExit: 7",
    4: "Odd: of its own kind",
    5: "CancelledError: ",
    6: "nan",
    7: "-inf",
    9: "timeout after 0.5 s",
}


def architectures(count: int) -> Architectures:
    """Architectures of 1, 2, 3 … layers."""
    return architectures_of([{"depth": i + 1, "width": 768, "n_kv_heads": 1, "expert_size": 768} for i in range(count)])


class AtOnce(Executor):
    """Does what it is given before it returns: the smallest executor there is."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class Backwards(ThreadPoolExecutor):
    """Threads in which what came first takes longest."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future whose delay depends on the architecture."""

        def later() -> Any:
            time.sleep(0.02 / float(args[1].depth[0]))
            return fn(*args, **kwargs)

        return super().submit(later)


class Fragile(AtOnce):
    """Breaks when it is given one of some depths, as often as it is asked."""

    def __init__(self, breaking: tuple[int, ...], *, late: bool) -> None:
        self.breaking, self.late = breaking, late

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Refuses at once, or answers with a broken future."""
        if int(args[1].depth[0]) not in self.breaking:
            return super().submit(fn, *args, **kwargs)
        if not self.late:
            raise BrokenExecutor
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor())
        return future


def answered(pool: WorkerPool) -> dict[int, Answer]:
    """Everything that a pool was asked, once it is back; each is answered once."""
    found: dict[int, Answer] = {}
    while arrived := pool.arrivals():
        keys = [task.key[0] for task, _ in arrived]
        assert not found.keys() & keys
        assert len(set(keys)) == len(keys)
        found.update(zip(keys, (answer for _, answer in arrived), strict=True))
    return found


@pytest.fixture
def called() -> Iterator[Callable[..., tuple[list[float], list[str]]]]:
    """A user's metric evaluated on architectures of 1, 2, 3 … layers in a pool that is closed afterwards."""
    made: list[WorkerPool] = []

    def call(name: str, count: int, *arguments: Any) -> tuple[list[float], list[str]]:
        made.append(WorkerPool(*arguments))
        made[-1].add(Task((i, name), Objective(name), architectures(count)[i : i + 1]) for i in range(count))
        answers = answered(made[-1])
        return [answers[i][0] for i in range(count)], [answers[i][1] for i in range(count)]

    yield call
    for pool in made:
        pool.close()


Called = Callable[..., tuple[list[float], list[str]]]


def check(name: str, answer: tuple[list[float], list[str]], expected: dict[int, str]) -> None:
    """Rows fail for the expected reasons, and all others have their value."""
    for depth, (value, reason) in enumerate(zip(*answer, strict=True), 1):
        assert reason == (f"{name}: {expected[depth]}" if depth in expected else ""), depth
        assert math.isnan(value) if depth in expected and depth != 7 else depth == 7 or value == depth / 2, depth


@pytest.mark.slow
def test_everything_that_goes_wrong_in_processes_fails_its_own_architecture(
    called: Called, user_module: Written
) -> None:
    name = f"{user_module(ILL.replace('DEATH', 'os._exit(3)'))}:fn"
    check(name, called(name, 12, 2, 0.5), {**REASONS, 8: "the worker process died"})


MAKES: dict[str, Callable[[int], Executor]] = {
    "at once": lambda _: AtOnce(),
    "threads": ThreadPoolExecutor,
    "backwards": Backwards,
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_executor_will_do(
    make: Callable[[int], Executor], workers: int, called: Called, user_module: Written
) -> None:
    name = f"{user_module(ILL.replace('DEATH', 'pass').replace('time.sleep(60)', 'pass'))}:fn"
    expected = {depth: reason for depth, reason in REASONS.items() if depth != 9}
    check(name, called(name, 12, workers, None, make), expected)


def test_the_clock_of_an_evaluation_runs_in_the_main_thread_and_leaves_no_trace(
    called: Called, user_module: Written
) -> None:
    name = f"{user_module(ILL.replace('DEATH', 'pass'))}:fn"
    before = signal.getsignal(signal.SIGALRM)
    check(name, called(name, 12, 1, 0.5, MAKES["at once"]), REASONS)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
def test_threads_have_the_drivers_clock(called: Called, user_module: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "GRACE_S", 0.5)  # a busy machine may let the others wait
    text = "import time\ndef fn(a):\n    time.sleep(2.5 * (a.depth[0] == 2))\n    return a.depth / 2\n"
    name = f"{user_module(text)}:fn"
    check(name, called(name, 5, 2, 1.0, ThreadPoolExecutor), {2: "timeout after 1 s"})


@pytest.mark.parametrize("timeout_s", [None, 60.0])
@pytest.mark.parametrize("late", [False, True], ids=["refuses", "answers broken"])
@pytest.mark.parametrize("breaking", [(1,), (3, 4), (9,), tuple(range(1, 10))], ids=str)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_an_executor_that_breaks_is_replaced_and_the_guilty_found(
    breaking: tuple[int, ...], late: bool, workers: int, timeout_s: float | None, called: Called, user_module: Written
) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    answer = called(name, 9, workers, timeout_s, lambda _: Fragile(breaking, late=late))
    check(name, answer, dict.fromkeys(breaking, "the worker process died"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "deaf",
    [
        "signal.signal(signal.SIGALRM, signal.SIG_IGN)\n        time.sleep(60)",
        "try:\n            time.sleep(60)\n        except BaseException:\n            time.sleep(60)",
    ],
    ids=["ignores the signal", "catches everything"],
)
def test_what_is_deaf_to_its_clock_is_killed_from_outside(
    deaf: str, called: Called, user_module: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "GRACE_S", 10.0)  # two workers may be slow to start beside other tests
    text = f"import signal, time\ndef fn(a):\n    if a.depth[0] == 2:\n        {deaf}\n    return a.depth / 2\n"
    name = f"{user_module(text)}:fn"
    check(name, called(name, 5, 2, 0.2), {2: "timeout after 0.2 s"})


@pytest.mark.parametrize("body", ["5", "a.depth[:-1]", "np.ones((len(a), 1))", "'fast'", "None", "{}"])
@pytest.mark.parametrize("make", [MAKES["at once"], MAKES["threads"]], ids=["at once", "threads"])
def test_a_wrong_shape_or_type_stops_the_run_as_it_does_without_workers(
    body: str, make: Callable[[int], Executor], called: Called, user_module: Written
) -> None:
    name = user_module(f"import numpy as np\ndef fn(a):\n    return {body}\n") + ":fn"
    with pytest.raises(UsageError, match=rf"^{name}: expected .*shape \((1|n),\)"):
        called(name, 3, 2, None, make)


def test_a_module_that_only_the_driver_can_import_fails_every_architecture(
    called: Called, user_module: Written
) -> None:
    name = user_module("raise RuntimeError('no chip here')") + ":fn"
    _, reasons = called(name, 3, 2, None, MAKES["threads"])
    assert reasons == [f"{name}: RuntimeError: no chip here"] * 3


def test_no_process_is_started_for_nothing() -> None:
    pool = WorkerPool(2, None, lambda _: pytest.fail("an executor was made"))
    pool.add([])
    assert pool.arrivals() == []
    pool.close()


class Faulty(AtOnce):
    """Answers with an error so many times for one of some depths, then with its value."""

    def __init__(self, error: BaseException, times: dict[int, int]) -> None:
        self.error, self.times = error, times

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done."""
        depth = int(args[1].depth[0])
        if not self.times.get(depth):
            return super().submit(fn, *args, **kwargs)
        self.times[depth] -= 1
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


def test_nobody_is_to_blame_for_a_lost_connection_and_what_arrived_beside_it_stays(
    called: Called, user_module: Written
) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    made = Faulty(UnreachableError("cut"), {2: 2, 5: 1, 8: 2})
    check(name, called(name, 9, 3, None, lambda _: made), {})
    assert set(made.times.values()) == {0}


def test_a_connection_that_never_answers_ends_the_run_with_how_to_go_on(called: Called, user_module: Written) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    made: list[int] = []

    def make(workers: int) -> Executor:
        made.append(workers)
        return Faulty(UnreachableError("cut"), {1: 9})

    with pytest.raises(
        PlasError, match=r"^executor: cut, 3 times without an answer; what arrived is kept, .* --resume$"
    ):
        called(name, 1, 1, None, make)
    assert len(made) == TRIES


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_a_worker_could_not_run_is_sent_again_so_often(times: int, called: Called, user_module: Written) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    made = Faulty(NotRunError("no such module there"), {3: times})
    if times < TRIES:
        check(name, called(name, 5, 2, None, lambda _: made), {})
        return
    with pytest.raises(PlasError, match=f"^executor: expected workers that can evaluate {name}, got no such module"):
        called(name, 5, 2, None, lambda _: made)


def test_a_task_whose_worker_died_as_often_as_it_is_tried_fails_alone(called: Called, user_module: Written) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    answer = called(name, 6, 2, None, lambda _: Faulty(WorkerDiedError("four times"), {4: 1}))
    check(name, answer, {4: "the worker process died"})


def test_what_arrived_beside_an_answer_that_ends_the_run_is_handed_on_first(user_module: Written) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2 if a.depth[0] != 2 else 'much'\n") + ":fn"
    pool = WorkerPool(4, None, MAKES["at once"])
    pool.add(Task((i, name), Objective(name), architectures(4)[i : i + 1]) for i in range(4))
    assert sorted(task.key[0] for task, _ in pool.arrivals()) == [0, 2, 3]
    with pytest.raises(UsageError, match=name):
        pool.arrivals()


def test_workers_are_busy_again_before_what_they_found_is_handed_on(user_module: Written) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    pool = WorkerPool(2, None, ThreadPoolExecutor)
    pool.add(Task((i, name), Objective(name), architectures(7)[i : i + 1]) for i in range(7))
    left = 7
    while arrived := pool.arrivals():
        left -= len(arrived)
        assert len(pool.flying) == min(3, left)
    assert left == 0
    pool.close()


@pytest.mark.parametrize(("workers", "sent"), [(1, 1), (2, 3), (4, 5), (5, 7)])
def test_one_for_every_four_workers_stands_ready_and_its_clock_begins_when_a_worker_can(
    workers: int, sent: int, user_module: Written
) -> None:
    name = user_module("def fn(a):\n    return a.depth / 2\n") + ":fn"
    futures: list[Future[Answer]] = []

    class Slow(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            futures.append(Future())
            return futures[-1]

    pool = WorkerPool(workers, 1.0, Slow)
    pool.add(Task((i, name), Objective(name), architectures(9)[i : i + 1]) for i in range(9))
    threading.Timer(0.05, lambda: futures[0].set_result((1.0, ""))).start()
    assert [task.key[0] for task, _ in pool.arrivals()] == [0]
    assert len(futures) == sent + 1
    begun = [math.isfinite(flight.since) for flight in pool.flying.values()]
    assert begun == [True] * workers + [False] * (sent - workers)


def test_the_pace_is_about_a_second_of_work() -> None:
    pace = Pace(4)
    pace.took(4, 0.1)
    assert pace.size == 8
    pace.took(3, 0.1)  # a rest says nothing
    assert pace.size == 8
    pace.took(8, 1.0)
    assert pace.size == 8
    for _ in range(5):
        pace.took(8, 9.0)
    assert pace.size == 4


# The command

STUDY: dict[str, Any] = {
    "name": "own",
    "space": {
        "name": "some",
        "axes": {
            "depth": [4, 8, 12],
            "width": [768, 1024],
            "expert_ffn_ratio": [0.5, 1, 2, 4],
            "n_kv_heads": [1, 2, "n_heads"],
        },
    },
    "budgets": {"total_ms": 90},
    "applications": {},
    "baselines": [],
    "algo": "nsga2",
    "params": {"population": 10},
    "evaluations": 45,
}
UNEVEN = """\
import os
import random
import time

def fn(a):
    random.seed(os.getpid() * int(a.expert_size.sum()))
    time.sleep(random.uniform(0, 0.01))
    if "HARD" in os.environ and (a.depth[0], a.width[0], a.n_kv_heads[0], a.expert_size[0]) == (8, 768, 2, 768):
        os._exit(1)
    if ((a.depth == 12) & (a.expert_size == 512)).any():
        raise RuntimeError("no such chip")
    return a.depth * a.width / 1e4 + 1 / a.n_kv_heads
"""


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files that must not differ."""
    return {name: (folder / name).read_bytes() for name in ("evaluations.csv", "frontier.csv", "picks.csv")}


@pytest.fixture
def study(tmp_path: Path, user_module: Written) -> str:
    """A study whose objective takes its time, fails here and there, and where asked kills its process."""
    name = f"{user_module(UNEVEN)}:fn"
    (tmp_path / "study.yaml").write_text(dump({**STUDY, "objectives": ["loss", name]}))
    return name


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(study: str, inside: Inside, tmp_path: Path) -> None:
    for workers in ("none", 1, 2, 3):
        line = ("--config", "study.yaml", "--set", f"workers={workers}", "--out", f"of {workers}", "--quiet")
        assert inside("run", *line).code == 0
    files = [bytes_of(tmp_path / f"of {workers}") for workers in ("none", 1, 2, 3)]
    assert files[0] == files[1] == files[2] == files[3]
    assert b"RuntimeError: no such chip" in files[0]["evaluations.csv"]


@pytest.mark.slow
def test_a_worker_that_dies_fails_one_row_of_the_run(
    study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARD", "1")
    for workers in (1, 3):
        line = ("--config", "study.yaml", "--algo", "random", "--evaluations", 72, "--workers", workers)
        assert inside("run", *line, "--out", f"of {workers}", "--quiet").code == 0
    assert bytes_of(tmp_path / "of 1") == bytes_of(tmp_path / "of 3")
    with (tmp_path / "of 1" / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    dead = [row for row in rows if row["reason"] == f"{study}: the worker process died"]
    assert [(row["depth"], row["width"], row["n_kv_heads"]) for row in dead] == [("8", "768", "2")]
    others = {row["reason"] for row in rows} - {dead[0]["reason"]}
    assert others == {"", f"{study}: RuntimeError: no such chip"}


def test_workers_are_not_started_for_shipped_formulas(
    inside: Inside, copied: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "ProcessPoolExecutor", lambda *_: pytest.fail("a process was started"))
    config = copied / "config.yaml"
    config.write_text(config.read_text().replace("workers: none\n", "workers: 3\n"))
    assert inside("run", "--config", copied, "--out", "again", "--quiet").code == 0
    assert bytes_of(tmp_path / "again") == bytes_of(finished)


COLUMNS = """
def both(architectures):
    open(__file__ + ".calls", "a").write(f"{len(architectures)}\\n")
    return {"size": architectures.depth * architectures.width, "inverse": 1 / architectures.depth}

def pair(architectures):
    return architectures.depth, architectures.width
"""


@pytest.mark.parametrize("workers", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_a_function_of_several_columns_is_called_once_for_all(
    workers: int | None,
    tiny: dict[str, Any],
    user_module: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    name = user_module(COLUMNS)
    asked = {"space": tiny, "objectives": [f"{name}:both.size", f"{name}:both.inverse"], "workers": workers}
    nas.load_study(**asked).search("nsga2", evaluations=24, params={"population": 8}, out="run")
    rows = nas.read_run("run").evaluations
    assert list(rows[f"{name}:both.size"]) == list(rows.depth * rows.width)
    assert list(rows[f"{name}:both.inverse"]) == list(1 / rows.depth)
    assert sum(map(int, (tmp_path / f"{name}.py.calls").read_text().split())) == 24
    for function, got in (("both", "dict"), ("both.third", "dict"), ("pair.size", "shape")):
        with pytest.raises(nas.UsageError, match=got):
            nas.load_study(space=tiny, objectives=["loss", f"{name}:{function}"]).search("random", evaluations=4)


def test_a_timeout_needs_workers(study: str, inside: Inside) -> None:
    answer = inside("run", "--config", "study.yaml", "--set", "evaluation_timeout=1", "--out", "run")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith(
        "evaluation_timeout: expected a key that has an effect, got one without: there are no workers;"
    )


def alive(process: int) -> bool:
    """Whether a process still runs; one that is dead and not yet collected does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_workers_end_with_their_driver(sent: signal.Signals, commands: Any) -> None:
    commands.write(
        "busy.py",
        "import os, time\ndef fn(a):\n    open('pids', 'a').write(f'{os.getpid()}\\n')\n    time.sleep(0.05)\n    return a.depth / 2\n",
    )
    commands.write(
        "study.yaml", dump({**STUDY, "objectives": ["loss", "busy:fn"], "space": "paper", "evaluations": 5000})
    )
    process, noted = (
        commands.start("run", "--config", "study.yaml", "--workers", 2, "--out", "run"),
        commands.folder / "pids",
    )
    while process.poll() is None and not (noted.exists() and len(set(noted.read_text().splitlines())) == 2):
        time.sleep(0.01)
    process.send_signal(sent)
    process.wait(30)
    workers = {int(line) for line in noted.read_text().splitlines()}
    deadline = time.monotonic() + 20
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    assert not any(map(alive, workers))
    assert process.returncode == (-signal.SIGKILL if sent == signal.SIGKILL else 130)


@pytest.mark.slow
def test_a_pool_that_was_ended_leaves_no_thread_behind() -> None:
    """Its thread would close the pipe that the end of this process writes to: a traceback now and then on a busy machine."""
    executor = evaluating.process_pool(1)
    assert executor.submit(abs, -3).result() == 3
    minding = vars(executor)["_executor_manager_thread"]
    evaluating.end_at_once(executor)
    assert not minding.is_alive()
