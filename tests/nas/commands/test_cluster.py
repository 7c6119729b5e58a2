"""Runs on a dask cluster: the bytes of a serial run, whatever dies; what cannot be used is refused in a line."""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.search import cluster as connecting
from objectives.plugins import version_of
from tests.nas.search.test_worker_pool import STUDY as OF_PROCESSES

HERE = find_spec("distributed") is not None
needs_dask = pytest.mark.skipif(not HERE, reason="needs the extra dask, which is not installed")
Inside = Callable[..., Any]
Checked = Callable[..., str]
KEPT = ("evaluations.csv", "frontier.csv", "picks.csv")
STUDY: dict[str, Any] = {**OF_PROCESSES, "evaluations": 40, "outside": "allow"}
BOARD = """\
import os
import time

def cost(a):
    time.sleep(float(os.environ.get("BOARD_S", "0")) * (1 + a.depth[0] % 8))
    if "BOARD_LOG" in os.environ:
        with open(os.environ["BOARD_LOG"], "a") as file:
            file.write(f"{os.getpid()} {a.depth[0]} {a.width[0]} {a.expert_size[0]} {a.n_kv_heads[0]}\\n")
    if os.environ.get("BOARD_POISON") and (a.depth[0], a.width[0], a.n_kv_heads[0], a.expert_size[0]) == (8, 768, 2, 768):
        os._exit(1)
    if (a.expert_size == 512).any():
        raise RuntimeError("no such board")
    return a.depth * a.width / 1e4 + 1 / a.n_kv_heads
"""


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files that must not differ."""
    return {name: (folder / name).read_bytes() for name in KEPT}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def study(tmp_path: Path, user_module: Callable[[str], str]) -> str:
    """A study with an objective of one's own, and that objective's name."""
    name = f"{user_module(BOARD)}:cost"
    (tmp_path / "study.yaml").write_text(dump({**STUDY, "objectives": ["loss", name]}))
    return name


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    """The address of a cluster inside this process: two workers, one of which declares a GPU."""
    from distributed import Scheduler, SpecCluster, Worker

    one = {"cls": Worker, "options": {"nthreads": 1, "host": "127.0.0.1"}}
    other = {"cls": Worker, "options": {"nthreads": 1, "host": "127.0.0.1", "resources": {"GPU": 1}}}
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    with SpecCluster(workers={0: one, 1: other}, scheduler=scheduler, silence_logs=50) as made:
        yield made.scheduler_address


@needs_dask
def test_a_cluster_gives_the_bytes_of_a_serial_run_and_says_where_it_is_watched(
    study: str, threads: str, inside: Inside, tmp_path: Path
) -> None:
    assert inside("run", "--config", "study.yaml", "--out", "serial", "--quiet").code == 0
    answer = inside("run", "--config", "study.yaml", "--set", f"executor=dask:{threads}", "--out", "run")
    assert answer.code == 0, answer
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "serial")
    assert f"Cluster {threads}: 2 workers, 2 evaluations at once; dashboard http://127.0.0.1:" in answer.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["executor"] == f"dask:{threads}"
    assert manifest["dashboard"].startswith("http://127.0.0.1:")
    assert "executor: none\n" in (tmp_path / "run" / "config.yaml").read_text()
    assert "executor" not in json.loads((tmp_path / "serial" / "manifest.json").read_text())
    store = sqlite3.connect(tmp_path / "run" / "evaluations.sqlite")
    assert store.execute("SELECT COUNT(*) FROM arrived").fetchone() == (0,)
    store.close()


@needs_dask
def test_a_run_goes_on_where_the_command_line_says_and_nowhere_else(
    study: str, threads: str, inside: Inside, tmp_path: Path
) -> None:
    first = ("run", "--config", "study.yaml", "--algo", "random", "--evaluations")
    assert inside(*first, 20, "--set", f"executor=dask:{threads}", "--out", "run", "--quiet").code == 0
    assert inside(*first, 40, "--out", "serial", "--quiet").code == 0
    answer = inside("run", "--resume", "run", "--evaluations", 30)
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith(
        f"executor: expected where to go on, got nothing; add --set executor=dask:{threads}, where"
    )
    assert (
        inside("run", "--resume", "run", "--evaluations", 30, "--set", f"executor=dask:{threads}", "--quiet").code == 0
    )
    assert inside("run", "--resume", "run", "--evaluations", 40, "--set", "executor=none", "--quiet").code == 0
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "serial")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["executor"] is None
    assert inside("run", "--resume", "run", "--quiet").code == 0


@needs_dask
def test_evaluations_take_what_a_worker_declares(study: str, threads: str, inside: Inside) -> None:
    line = ("run", "--config", "study.yaml", "--evaluations", 12, "--set", f"executor=dask:{threads}")
    answer = inside(*line, "--set", "resources.GPU=1", "--out", "one")
    assert answer.code == 0, answer
    assert "2 workers, 1 evaluations at once; dashboard" in answer.err
    answer = inside(*line, "--set", "resources.TPU=1", "--set", "time_limit=1e-9", "--out", "none")
    assert "2 workers, 0 evaluations at once; evaluations wait for a worker with TPU 1; dashboard" in answer.err


@needs_dask
def test_an_evaluation_that_takes_too_long_fails_on_a_cluster_as_well(
    threads: str, inside: Inside, tmp_path: Path, user_module: Callable[[str], str]
) -> None:
    text = "import time\ndef cost(a):\n    while a.depth[0] == 8:\n        time.sleep(0.001)\n    return a.depth / 2\n"
    name = f"{user_module(text)}:cost"
    (tmp_path / "study.yaml").write_text(dump({**STUDY, "objectives": ["loss", name]}))
    line = (
        "run",
        "--config",
        "study.yaml",
        "--algo",
        "random",
        "--evaluations",
        9,
        "--set",
        f"executor=dask:{threads}",
        "--out",
        "run",
    )
    assert inside(*line, "--set", "evaluation_timeout=0.2", "--quiet").code == 0
    text = (tmp_path / "run" / "evaluations.csv").read_text()
    late = [row for row in text.splitlines()[1:] if f"{name}: timeout after 0.2 s" in row]
    assert late == [row for row in text.splitlines()[1:] if ",failed," in row] != []


@needs_dask
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "executor: expected a dask scheduler at tcp://127.0.0.1:9, got Timed out"),
        ("missing.json", "executor: expected a dask scheduler at missing.json, got [Errno 2] No such file"),
    ],
)
def test_a_scheduler_that_is_not_there_is_refused_and_nothing_is_left(
    address: str, said: str, study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "CONNECT_S", 0.2)
    answer = inside("run", "--config", "study.yaml", "--set", f"executor=dask:{address}", "--out", "run")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith(said)
    assert answer.err.endswith("; start one with 'dask scheduler'\n")
    assert not (tmp_path / "run").exists()


@needs_dask
def test_workers_of_another_version_are_refused(
    study: str, threads: str, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "version_here", lambda: "9.9")
    monkeypatch.setattr(connecting.Cluster, "versions", lambda _: {"tcp://far:1": version_of("plas-codesign")})
    answer = inside("run", "--config", "study.yaml", "--set", f"executor=dask:{threads}", "--out", "run")
    assert answer.code == 2
    assert answer.err.startswith("executor: expected plas-codesign 9.9 on every worker, got ")
    assert answer.err.endswith(" on tcp://far:1; install it in their environment\n")


def test_without_the_extra_it_is_named(
    study: str, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    answer = inside("run", "--config", "study.yaml", "--set", "executor=dask:tcp://127.0.0.1:9", "--out", "run")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith("executor: expected the package distributed, got none installed")
    assert "pip install 'plas-codesign[dask]'" in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "written", ["tcp://h:1", "ray://h:1", "dask:h:1", "dask:tcp://h", "dask:tcp://me:secret@h:1", "dask:", "5"]
)
def test_an_address_of_another_form_is_refused(written: str, study: str, inside: Inside) -> None:
    answer = inside("run", "--config", "study.yaml", "--set", f"executor={written}", "--out", "run")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert "--set executor: expected dask:tcp://host:port or dask:scheduler.json, got " in answer.err


def test_a_file_connects_to_nothing(study: str, inside: Inside, copied: Path, tmp_path: Path) -> None:
    content = {**STUDY, "objectives": ["loss", study], "executor": "dask:tcp://127.0.0.1:9"}
    (tmp_path / "far.yaml").write_text(dump(content))
    answer = inside("run", "--config", "far.yaml", "--out", "out")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert (
        "executor: expected a cluster to be named on the command line, got dask:tcp://127.0.0.1:9 in a file"
        in answer.err
    )
    answer = inside("compare", "--config", "far.yaml", "--algos", "random", "--seeds", 1, "--out", "comparison")
    assert answer.err.startswith("executor: expected none in a comparison")
    path = copied / "config.yaml"
    path.write_text(path.read_text().replace("executor: none\n", "executor: dask:tcp://127.0.0.1:9\n"))
    assert inside("run", "--resume", "run", "--evaluations", 70, "--quiet").code == 0  # the run is what its store says


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ("--set", "executor=dask:tcp://127.0.0.1:9"),
            "executor: expected a key that has an effect, got one without: no metric is your own; drop it",
        ),
        (
            ("--set", "resources.GPU=1"),
            "resources: expected a key that has an effect, got one without: there is no executor; drop it",
        ),
    ],
)
def test_what_only_own_metrics_on_a_cluster_need_is_refused_elsewhere(
    line: tuple[str, ...], said: str, inside: Inside
) -> None:
    answer = inside("run", *line, "--evaluations", 10, "--out", "run")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    assert answer.err.startswith(said)


# A cluster of processes, as a user starts it


class Started:
    """A scheduler and worker processes on this machine, each of which a test may kill."""

    def __init__(self, commands: Any) -> None:
        self.commands, self.port = commands, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[str]] = []
        self.environment = {**commands.environment(), "BOARD_S": "0.02", "BOARD_LOG": str(commands.folder / "log")}

    def launch(self, *line: object, **more: str) -> "subprocess.Popen[str]":
        """A program of dask's beside the test."""
        written = (self.commands.folder / "dask.out").open("a")
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, line)],
            cwd=self.commands.folder,
            env={**self.environment, **more},
            stdout=written,
            stderr=written,
            text=True,
            start_new_session=True,
        )
        self.commands.started.append(process)
        return process

    def scheduler(self) -> None:
        """A scheduler at the cluster's address."""
        line = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", self.port, "--no-dashboard")
        self.head = self.launch(*line)

    def work(self, count: int, **more: str) -> None:
        """Workers, a process each with a nanny of its own."""
        for _ in range(count):
            line = ("distributed.cli.dask_worker", self.address, "--nthreads", 1, "--no-dashboard")
            self.workers.append(self.launch(*line, **more))

    def stop(self) -> None:
        """End everything that was started, with what it started."""
        for process in [*self.workers, self.head]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.workers.clear()

    def wait(self, count: int) -> None:
        """Until so many workers are there."""
        from distributed import Client

        with Client(self.address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=240)

    def evaluated(self) -> list[list[str]]:
        """Process and design of everything that the objective was asked for."""
        path = self.commands.folder / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def until(self, count: int, process: "subprocess.Popen[str]") -> None:
        """Until the objective was asked so often, or the run ends."""
        while process.poll() is None and len(self.evaluated()) < count:
            time.sleep(0.01)


@pytest.fixture
def started(commands: Any) -> Iterator[Started]:
    """A study beside a cluster that is not started yet; the serial run's files lie in `serial`."""
    commands.write("board.py", BOARD)
    commands.write("study.yaml", dump({**STUDY, "objectives": ["loss", "board:cost"]}))
    made = Started(commands)
    yield made
    made.stop()


@pytest.fixture
def cluster(started: Started) -> Started:
    """Four workers."""
    started.scheduler()
    started.work(4)
    started.wait(4)
    return started


def serial(commands: Any, succeeded: Checked, **more: str) -> dict[str, bytes]:
    """The files of the run without a cluster."""
    line = commands.line("run", "--config", "study.yaml", "--out", "serial", "--quiet", "--no-plots")
    done = subprocess.run(
        line, cwd=commands.folder, env={**commands.environment(), **more}, capture_output=True, text=True, check=False
    )
    succeeded(done)
    return bytes_of(commands.folder / "serial")


def finish(process: "subprocess.Popen[str]", succeeded: Checked) -> None:
    """Wait for a run's end."""
    out, err = process.communicate(timeout=500)
    succeeded(subprocess.CompletedProcess(process.args, process.returncode, out, err))


def on(cluster: Started, *arguments: object) -> "subprocess.Popen[str]":
    """The study's run on the cluster."""
    where = ("--set", f"executor=dask:{cluster.address}", "--quiet", "--no-plots")
    started: subprocess.Popen[str] = cluster.commands.start(
        "run", *(arguments or ("--config", "study.yaml", "--out", "run")), *where
    )
    return started


@needs_dask
@pytest.mark.slow
def test_processes_give_the_bytes_of_a_serial_run_with_one_in_flight_and_with_four(
    cluster: Started, succeeded: Checked
) -> None:
    expected = serial(cluster.commands, succeeded)
    for workers in (1, 4):
        finish(on(cluster, "--config", "study.yaml", "--workers", workers, "--out", f"of {workers}"), succeeded)
        assert bytes_of(cluster.commands.folder / f"of {workers}") == expected
    assert b"RuntimeError: no such board" in expected["evaluations.csv"]
    assert len({process for process, *_ in cluster.evaluated()}) == 4


@needs_dask
@pytest.mark.slow
def test_workers_killed_in_the_middle_cost_nothing_but_their_time(cluster: Started, succeeded: Checked) -> None:
    expected = serial(cluster.commands, succeeded)
    run = on(cluster)
    for count in (8, 20):
        cluster.until(count, run)
        os.kill(int(cluster.evaluated()[-1][0]), signal.SIGKILL)
    finish(run, succeeded)
    assert bytes_of(cluster.commands.folder / "run") == expected


@needs_dask
@pytest.mark.slow
def test_an_evaluation_that_kills_every_worker_it_meets_fails_alone(started: Started, succeeded: Checked) -> None:
    started.scheduler()
    started.work(2, BOARD_POISON="1")
    started.wait(2)
    line = ("--config", "study.yaml", "--algo", "random", "--evaluations", 72, "--out", "run")
    finish(on(started, *line), succeeded)
    rows = (started.commands.folder / "run" / "evaluations.csv").read_text().splitlines()
    dead = [row for row in rows if "board:cost: the worker process died" in row]
    assert len(dead) == 1
    assert len(rows) == 73


@needs_dask
@pytest.mark.slow
def test_a_killed_driver_goes_on_and_asks_again_only_for_what_was_in_flight(
    cluster: Started, succeeded: Checked
) -> None:
    expected = serial(cluster.commands, succeeded)
    run = on(cluster)
    for count in (7, 19):
        cluster.until(count, run)
        run.send_signal(signal.SIGKILL)
        run.wait()
        time.sleep(1.0)  # what was in flight ends on its worker
        before = len(cluster.evaluated())
        run = on(cluster, "--resume", "run")
    finish(run, succeeded)
    assert bytes_of(cluster.commands.folder / "run") == expected
    designs = [tuple(design) for _, *design in cluster.evaluated()]
    assert len(set(designs)) == 40
    assert len(designs) <= 40 + 2 * 5
    assert before < len(designs)


@needs_dask
@pytest.mark.slow
def test_a_scheduler_that_is_started_again_finds_the_run_waiting(cluster: Started, succeeded: Checked) -> None:
    expected = serial(cluster.commands, succeeded)
    run = on(cluster)
    cluster.until(15, run)
    cluster.stop()
    time.sleep(1.0)
    assert run.poll() is None
    cluster.scheduler()
    cluster.work(2)
    finish(run, succeeded)
    assert bytes_of(cluster.commands.folder / "run") == expected


@needs_dask
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(5))
def test_whatever_dies_whenever_the_bytes_are_those_of_a_serial_run(
    seed: int, cluster: Started, succeeded: Checked
) -> None:
    generator, expected = random.Random(seed), serial(cluster.commands, succeeded)
    run = on(cluster)
    for _ in range(6):
        cluster.until(len(cluster.evaluated()) + generator.randrange(1, 8), run)
        if run.poll() is not None:
            break
        what = generator.choice(["worker", "worker", "driver", "scheduler"])
        if what == "worker":
            os.kill(int(cluster.evaluated()[-1][0]), signal.SIGKILL)
        elif what == "driver":
            run.send_signal(signal.SIGKILL)
            run.wait()
            run = on(cluster, "--resume", "run")
        else:
            cluster.stop()
            cluster.scheduler()
            cluster.work(3)
    finish(run, succeeded)
    assert bytes_of(cluster.commands.folder / "run") == expected
