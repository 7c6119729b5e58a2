"""Runs killed, interrupted, locked out or out of disk: what was evaluated is kept, and resuming ends in the same bytes."""

import json
import math
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nas.files.yaml_source import dump
from nas.record.folder import open_run
from nas.search.discovery import strategy_module
from objectives.plugins import importable

Checked = Callable[..., str]
STRATEGIES = importable("nas.strategies")
KEPT = ("evaluations.csv", "frontier.csv", "picks.csv")
EVALUATIONS = 150
STUDY: dict[str, Any] = {
    "name": "slow",
    "space": {
        "name": "some",
        "axes": {
            "depth": [4, 8, 12, 16],
            "width": [768, 1024, 1280],
            "n_experts": [1, 8],
            "top_k": [1, 2],
            "expert_ffn_ratio": [0.5, 1, 2],
            "n_kv_heads": [1, 2, "n_heads"],
        },
    },
    "objectives": ["loss", "slow:cost"],
    "budgets": {"total_ms": 90},
    "applications": {"robot": {"decode_ms": 8}},
    "baselines": [],
}
SLOW = """\
import os
import time

def cost(a):
    time.sleep(0.002 * len(a))
    with open(os.environ["PROGRESS"], "a") as file:
        file.write("x" * len(a))
    if os.path.getsize(os.environ["PROGRESS"]) >= float(os.environ["HELD_AT"]):
        time.sleep(600)
    return a.depth * a.width / 1e4 + 1 / (1 + a.n_kv_heads)
"""
PARAMETERS = {"population": 12, "batch": 12}
OWN = {"optuna_gp": ["--param=startup=144"], "optuna_tpe": ["--param=startup=100"]}  # a model a second, and twelve


def settings(algo: str) -> list[str]:
    """Flags of a run of a strategy, without pictures: small batches, so that there are many moments between them."""
    module = strategy_module(algo)
    small = [f"--param={name}={value}" for name, value in PARAMETERS.items() if name in module.Parameters.model_fields]
    return [
        "--config",
        "study.yaml",
        "--algo",
        algo,
        *small,
        *OWN.get(algo, []),
        *([f"--evaluations={EVALUATIONS}"] if module.TRAITS.takes_evaluations else []),
        "--no-plots",
    ]


class Slow:
    """A folder with a study whose objective takes its time and says how far it is."""

    def __init__(self, commands: Any) -> None:
        self.commands, self.folder = commands, commands.folder
        commands.write("slow.py", SLOW)
        commands.write("study.yaml", dump(STUDY))

    def start(self, name: str, *arguments: object, held_at: float = math.inf) -> "subprocess.Popen[str]":
        """A command with a file of progress of its own; its objective stops for good where it has seen so many."""
        own = {"PROGRESS": str(self.folder / f"{name}.progress"), "HELD_AT": str(held_at)}
        return self.commands.start("run", *arguments, env={**self.commands.environment(), **own})

    def finish(self, name: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """The same, to its end."""
        process = self.start(name, *arguments)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def progress(self, name: str) -> int:
        """Architectures that the objective has seen."""
        path = self.folder / f"{name}.progress"
        return path.stat().st_size if path.exists() else 0

    def wait(self, name: str, process: "subprocess.Popen[str]", count: int) -> None:
        """Until the objective has seen so many, or the process ends."""
        while process.poll() is None and self.progress(name) < count:
            time.sleep(0.002)

    def bytes_of(self, name: str) -> dict[str, bytes]:
        """The files that must not differ."""
        return {file: (self.folder / name / file).read_bytes() for file in KEPT}

    def recorded(self, name: str) -> int:
        """Rows in a run's log."""
        run = open_run(self.folder / name)
        try:
            return len(run.store.read().evaluations)
        finally:
            run.store.close()


@pytest.fixture
def slow(commands: Any) -> Slow:
    """A slow study in the test's own folder."""
    return Slow(commands)


@pytest.fixture(scope="module")
def reference(
    tmp_path_factory: pytest.TempPathFactory, commands_in: Callable[[Path], Any]
) -> Callable[[str], dict[str, bytes]]:
    """The files of a strategy's uninterrupted run, made once; its folder is left for its config."""
    folder, known = tmp_path_factory.mktemp("reference"), dict[str, dict[str, bytes]]()

    def files(algo: str) -> dict[str, bytes]:
        if algo not in known:
            made = Slow(commands_in(folder))
            result = made.finish(algo, *settings(algo), "--out", algo, "--quiet")
            assert result.returncode == 0, result.stderr
            known[algo] = made.bytes_of(algo) | {"config.yaml": (folder / algo / "config.yaml").read_bytes()}
        return known[algo]

    return files


def state(folder: Path) -> str:
    """What a run says it is."""
    return str(json.loads((folder / "manifest.json").read_text())["state"])


def killed(slow: Slow, algo: str, name: str, generator: random.Random, *, held: bool) -> bool:
    """Kill a run at a random moment while it searches, if it is held in the middle; whether the kill landed there."""
    count = generator.randrange(30, EVALUATIONS - 20)
    process = slow.start(name, *settings(algo), "--out", name, "--quiet", held_at=count if held else math.inf)
    slow.wait(name, process, count)
    time.sleep(generator.uniform(0, 0.03))
    process.send_signal(signal.SIGKILL)
    process.wait()
    return process.returncode == -signal.SIGKILL and state(slow.folder / name) == "running"


def resumed(slow: Slow, name: str, expected: dict[str, bytes], succeeded: Checked) -> None:
    """Resume, and compare with the uninterrupted run."""
    before, seen = slow.recorded(name), slow.progress(name)
    succeeded(slow.finish(name, "--resume", name, "--quiet", "--no-plots"))
    assert slow.bytes_of(name) == {file: expected[file] for file in KEPT}
    assert slow.progress(name) - seen == slow.recorded(name) - before, "what was recorded was evaluated again"
    assert state(slow.folder / name) == "finished"


@pytest.mark.parametrize(
    ("kills", "algo"),
    [
        (1, "nsga2"),
        *(pytest.param(2, name, marks=pytest.mark.slow) for name in STRATEGIES),
        *(pytest.param(50, name, marks=pytest.mark.extended) for name in STRATEGIES),
    ],
)
def test_its_own_config_and_kills_at_random_moments_end_in_the_same_bytes(
    algo: str, kills: int, slow: Slow, reference: Callable[[str], dict[str, bytes]], succeeded: Checked
) -> None:
    expected = reference(algo)

    def once(number: int) -> bool:
        name, generator = f"run{number}", random.Random(f"{algo}-{number}")
        held = number % 2 == 0  # every other one, whatever the strategy and however busy the machine
        landed = killed(slow, algo, name, generator, held=held)
        assert landed or not held, "the kill did not land in the middle"
        assert slow.recorded(name) > 0 or not held
        resumed(slow, name, expected, succeeded)
        return landed

    slow.commands.write("recorded/config.yaml", expected["config.yaml"].decode())
    with ThreadPoolExecutor(2) as pool:
        config = pool.submit(slow.finish, "config", "--config", "recorded/config.yaml", "--out", "config", "--quiet")
        assert sum(pool.map(once, range(kills))) >= (kills + 1) // 2
    succeeded(config.result())
    assert slow.bytes_of("config") == {file: expected[file] for file in KEPT}
    assert (slow.folder / "config" / "config.yaml").read_bytes() == expected["config.yaml"]


@pytest.mark.extended
@pytest.mark.parametrize("algo", STRATEGIES)
@pytest.mark.parametrize("number", range(20))
def test_killed_at_any_moment_of_its_life_again_and_again(
    algo: str, number: int, slow: Slow, reference: Callable[[str], dict[str, bytes]], succeeded: Checked
) -> None:
    expected, generator = reference(algo), random.Random(f"any-{algo}-{number}")
    line: list[object] = [*settings(algo), "--out", "run", "--quiet"]
    for _ in range(4):
        process = slow.start("run", *line)
        time.sleep(generator.uniform(0.05, 2.5))
        process.kill()
        process.wait()
        if (slow.folder / "run" / "config.yaml").exists():
            line = ["--resume", "run", "--quiet"]
    succeeded(slow.finish("run", *line))
    assert slow.bytes_of("run") == {file: expected[file] for file in KEPT}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "pause"),
    [
        (signal.SIGINT, None),
        (signal.SIGINT, 0.0),
        (signal.SIGINT, 0.05),
        (signal.SIGTERM, None),
        (signal.SIGTERM, 0.0),
        (signal.SIGHUP, None),
        pytest.param(signal.SIGTERM, 0.05, marks=pytest.mark.extended),
        pytest.param(signal.SIGHUP, 0.0, marks=pytest.mark.extended),
        pytest.param(signal.SIGHUP, 0.05, marks=pytest.mark.extended),
    ],
)
def test_an_interrupted_run_exits_130_and_says_how_to_go_on(
    sent: signal.Signals,
    pause: float | None,
    slow: Slow,
    reference: Callable[[str], dict[str, bytes]],
    succeeded: Checked,
) -> None:
    expected = reference("nsga2")
    process = slow.start("run", *settings("nsga2"), "--out", "run")
    slow.wait("run", process, 60)
    process.send_signal(sent)
    if pause is not None:
        time.sleep(pause)
        process.send_signal(sent)
    out, err = process.communicate()
    ends = {130} if pause is None else {130, -sent}  # Python's own end hands a signal back to the system
    assert process.returncode in ends, err
    assert "Traceback" not in out + err
    assert state(slow.folder / "run") == "interrupted"
    (hint,) = [line for line in err.splitlines() if "Continue with: " in line]
    count = slow.recorded("run")
    assert 0 < count < EVALUATIONS
    assert hint.startswith(f"Interrupted after {count} evaluations, all kept.")
    module, *arguments = shlex.split(hint.partition("Continue with: ")[2].removeprefix("python -m "))
    assert module == "nas.run"
    succeeded(slow.finish("run", *arguments, "--quiet"))
    assert slow.bytes_of("run") == {file: expected[file] for file in KEPT}


@pytest.mark.parametrize("module", ["nas", pytest.param("nas.search.lifecycle", marks=pytest.mark.slow)])
def test_sigterm_to_a_resume_that_has_just_begun_is_an_interruption(
    module: str, finished: Path, commands: Any, inside: Callable[..., Any]
) -> None:
    shutil.copytree(finished, commands.folder / "run")
    before = {name: (commands.folder / "run" / name).read_bytes() for name in KEPT}
    line = [sys.executable, "-X", "importtime", "-m", "nas.run", "--resume", "run", "--evaluations", "70", "--quiet"]
    process = commands.start("run", args=line)
    for said in process.stderr:
        if said.startswith("import time:") and said.split("|")[-1].strip() == module:
            process.send_signal(signal.SIGTERM)
            break
    rest = [line for line in process.stderr.read().splitlines() if not line.startswith("import time:")]
    assert (process.wait(), "Traceback" in "".join(rest)) == (130, False), rest
    assert {name: (commands.folder / "run" / name).read_bytes() for name in KEPT} == before
    assert inside("run", "--resume", "run", "--evaluations", 70, "--quiet").code == 0


@pytest.mark.slow
def test_a_run_in_use_is_read_and_not_continued(
    slow: Slow, commands: Any, refused: Checked, succeeded: Checked
) -> None:
    process = slow.start(
        "run",
        *settings("random"),
        "--space",
        "paper",
        "--evaluations",
        10_000,
        "--param",
        "batch=3",
        "--out",
        "run",
        "--quiet",
    )
    slow.wait("run", process, 30)
    assert "another process works on" in refused(slow.finish("other", "--resume", "run"))
    assert "with files in it" in refused(slow.finish("other", *settings("random"), "--out", "run"))
    assert "chosen of" in succeeded(commands("select", "run"))
    succeeded(commands("explain", "run"))
    assert slow.progress("other") == 0
    process.kill()
    process.wait()
    assert slow.recorded("run") >= 27


# Disks


def limited(size: int) -> Callable[[], None]:
    """No file may grow beyond this many bytes: a disk that fills up."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


PLAIN = ("--algo", "random", "--seed", "3", "--quiet")


Undisturbed = Callable[[Any, int], dict[str, bytes]]


def small(evaluations: int) -> list[object]:
    """A run in batches small enough that a disk fills up between two of them."""
    return ["run", *PLAIN, "--param", f"batch={max(evaluations // 15, 10)}", "--evaluations", evaluations]


@pytest.fixture(scope="module")
def undisturbed() -> Undisturbed:
    """The files of a run that nothing disturbs, made where they are first needed."""
    known: dict[int, dict[str, bytes]] = {}

    def files(commands: Any, evaluations: int) -> dict[str, bytes]:
        if evaluations not in known:
            result = commands(*small(evaluations), "--out", "undisturbed")
            assert result.returncode == 0, result.stderr
            known[evaluations] = {name: (commands.folder / "undisturbed" / name).read_bytes() for name in KEPT}
        return known[evaluations]

    return files


@pytest.mark.parametrize(
    ("size", "evaluations", "where"),
    [
        (1_000, 150, "its config"),
        pytest.param(9_000, 150, "an empty store", marks=pytest.mark.slow),
        pytest.param(60_000, 150, "the log", marks=pytest.mark.slow),
        pytest.param(90_000, 10, "a picture", marks=pytest.mark.slow),
        pytest.param(250_000, 1500, "later in the log", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_disk_that_fills_up_is_one_line_and_loses_nothing(
    size: int,
    evaluations: int,
    where: str,
    commands: Any,
    refused: Checked,
    succeeded: Checked,
    undisturbed: Undisturbed,
) -> None:
    said = refused(commands(*small(evaluations), "--out", "run", preexec_fn=limited(size)), 1)
    assert len(said.splitlines()) == 1, said
    if where in ("its config", "an empty store"):
        return
    assert (commands.folder / "run" / "evaluations.sqlite").exists()
    succeeded(commands("run", "--resume", "run", "--quiet"))
    assert {name: (commands.folder / "run" / name).read_bytes() for name in KEPT} == undisturbed(commands, evaluations)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB, where one can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here: a full disk is only imitated by a limit on file sizes")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_with_room_the_run_goes_on(
    tiny_disk: Path, commands: Any, refused: Checked, succeeded: Checked, undisturbed: Undisturbed
) -> None:
    said = refused(commands(*small(1500), "--out", tiny_disk / "run"), 1)
    assert len(said.splitlines()) == 1, said
    assert "full" in said
    refused(commands("run", "--resume", tiny_disk / "run", "--quiet"), 1)
    subprocess.run(["mount", "-o", "remount,size=20m", tiny_disk], check=True)
    succeeded(commands("run", "--resume", tiny_disk / "run", "--quiet"))
    assert {name: (tiny_disk / "run" / name).read_bytes() for name in KEPT} == undisturbed(commands, 1500)


def test_a_device_that_is_no_folder_is_refused(inside: Callable[..., Any]) -> None:
    answer = inside("run", *PLAIN, "--out", os.devnull)
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
