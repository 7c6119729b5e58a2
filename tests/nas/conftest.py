"""Fixtures of the search tests: a tiny space, studies and evaluations made of it, the commands as subprocesses."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nas
from nas.answer.outcome import Outcome, conclude
from nas.commands import run as running
from nas.commands.list import missing_extra
from nas.commands.requests import RunRequest
from nas.files import yaml_source
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.assembly import Study, assemble
from nas.search.lifecycle import store_columns
from nas.search.loop import Limits, Search
from nas.strategies.conformance.laws import AXES
from nas.terminal.doors import COMMANDS, door, installed
from objectives.plugins import importable

ROOT = Path(nas.__file__).resolve().parents[1]  # of the code that is tested: a checkout, or an installed wheel
TINY: dict[str, Any] = {"name": "tiny", "axes": AXES}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, by name and with the reason, what is tried with a strategy whose extra is not installed."""
    missing = {name: extra for name in importable("nas.strategies") if (extra := missing_extra("nas.strategies", name))}
    for item in items:
        algo = (
            item.callspec.params.get("algo") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else 0
        )
        if algo in missing:
            item.add_marker(pytest.mark.skip(reason=f"{algo} needs the extra {missing[algo]}, which is not installed"))


@pytest.fixture(autouse=True)
def broad_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen on which nothing folds: what is said is tested apart from how it is laid out (tests/nas/terminal)."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("LINES", raising=False)


@pytest.fixture(scope="session")
def available() -> list[str]:
    """Strategies that can run here: those whose extra is installed, or that need none."""
    return [name for name in importable("nas.strategies") if not missing_extra("nas.strategies", name)]


@pytest.fixture
def tiny() -> dict[str, Any]:
    """A space of 162 architectures with every kind of condition, as YAML content of the test's own."""
    return deepcopy(TINY)


@pytest.fixture(scope="session")
def studied() -> Callable[..., Study]:
    """An assembled study from its keys; over the tiny space unless a space is given."""

    def build(**raw: Any) -> Study:
        return assemble({"space": deepcopy(TINY), **raw}, {})

    return build


@pytest.fixture(scope="session")
def problem_of(studied: Callable[..., Study]) -> Callable[..., Problem]:
    """The problem of a study from its keys."""

    def build(**raw: Any) -> Problem:
        return studied(**raw).problem

    return build


@pytest.fixture(scope="session")
def evaluated() -> Callable[[Problem], Evaluations]:
    """Every architecture of a problem's space, evaluated."""

    def evaluate(problem: Problem) -> Evaluations:
        return problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))

    return evaluate


@pytest.fixture(scope="session")
def default_problem() -> Problem:
    """The problem of the bare command."""
    return assemble({}, {}).problem


@pytest.fixture(scope="session")
def default_evaluations(default_problem: Problem) -> Evaluations:
    """All 13,120 architectures of the default study."""
    return default_problem.evaluate(default_problem.space.genotypes(np.arange(default_problem.space.size)))


@pytest.fixture(scope="session")
def rows_of() -> Callable[..., Evaluations]:
    """Made-up evaluations from columns of metrics; keys count up unless given."""

    def build(
        metrics: Mapping[str, Sequence[float]],
        objectives: Sequence[str] = ("loss", "total_ms"),
        budgets: Mapping[str, float] | None = None,
        keys: Sequence[int] | None = None,
        reasons: Sequence[str] | None = None,
    ) -> Evaluations:
        columns = {name: np.array(column, dtype=np.float64) for name, column in metrics.items()}
        n = len(next(iter(columns.values())))
        numbered = np.arange(n) if keys is None else np.array(keys, dtype=np.int64)
        limits = tuple(Budget(metric, limit) for metric, limit in (budgets or {}).items())
        genotypes = np.repeat(numbered[:, None], 6, axis=1)
        said = None if reasons is None else tuple(reasons)
        return Evaluations(genotypes, numbered, columns, said, tuple(objectives), limits)

    return build


def module_of(command: str) -> str:
    """The module of a command: ours, or of an installed package."""
    return door(command) if command in COMMANDS else installed().get(command, door(command))


def interruptible() -> None:
    """A shell's background job ignores Ctrl-C and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Commands:
    """The commands as a user runs them: subprocesses in a folder outside the checkout."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(
        self, command: str, *arguments: object, cwd: Path | None = None, **options: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Run to the end; output is captured."""
        return subprocess.run(
            self.line(command, *arguments),
            cwd=cwd or self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )

    def start(self, command: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
        """Run beside the test; what is left of it is killed when the test ends."""
        usual = {"args": self.line(command, *arguments), "env": self.environment()}
        process = subprocess.Popen(
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=interruptible,
            **{**usual, **options},
        )
        self.started.append(process)
        return process

    def line(self, command: str, *arguments: object) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", module_of(command).removesuffix(".__main__"), *map(str, arguments)]

    def environment(self) -> dict[str, str]:
        """The caller's environment with the checkout on the path and a plain terminal."""
        return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}

    def write(self, name: str, text: str) -> Path:
        """A file of the user's own."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture(scope="session")
def commands_in() -> Callable[[Path], Commands]:
    """Commands run in a given folder."""
    return Commands


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Commands run in the test's own folder."""
    made = Commands(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def refused() -> Callable[..., str]:
    """Assert that a command failed as it should: its exit code, lines instead of a traceback, nothing printed; the lines."""

    def check(result: "subprocess.CompletedProcess[str]", code: int = 2) -> str:
        assert "Traceback" not in result.stderr, result.stderr
        assert "Traceback" not in result.stdout, result.stdout
        assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
        assert result.stderr.strip(), "nothing said"
        return result.stderr

    return check


@pytest.fixture(scope="session")
def succeeded() -> Callable[..., str]:
    """Assert that a command succeeded without a traceback or a Python warning; its output."""

    def check(result: "subprocess.CompletedProcess[str]") -> str:
        assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
        assert "Traceback" not in result.stderr, result.stderr
        assert "RuntimeWarning" not in result.stderr, result.stderr
        return result.stdout

    return check


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers start a Python that looks for no installed packages, in a third of the time: for stand-ins that need none."""
    program = tmp_path / "bare-python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A user's module on the Python path, under a name that no other test uses."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str) -> str:
        name = f"user_{uuid.uuid4().hex}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return name

    return write


@pytest.fixture
def concluded(studied: Callable[..., Study], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """The outcome of a search over the tiny space: how many evaluations, then keys of the study."""

    def search(evaluations: int | None, **raw: Any) -> Outcome:
        study = studied(**{"algo": "random", **raw})
        problem = study.problem
        store = RunStore(
            tmp_path_factory.mktemp("store") / FILE,
            problem.metric_names,
            tuple(study.config.objectives),
            problem.budgets,
            genes=problem.space.genes,
        )
        store.create({}, store_columns(study.problem))
        made = Search(problem, study.strategy(), store)
        reason = made.run(Limits(evaluations))
        found = made.archive.all()
        outcome = conclude(study, made, found, store.batches(), reason)
        store.close()
        return outcome

    return search


@dataclass(frozen=True)
class Answer:
    """What a command in this process left: its exit code and its output."""

    code: int
    out: str
    err: str


@pytest.fixture
def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """A command in this process, in the test's own folder and without pictures; anything but an exit is a traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "draw", lambda *_: None)

    def run(command: str, *arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", [f"nas.{command}", *map(str, arguments)])
        capsys.readouterr()
        code: object = None
        try:
            importlib.import_module(module_of(command)).main()
        except SystemExit as stopped:
            code = stopped.code
        return Answer(code if isinstance(code, int) else 0 if code is None else 1, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of nsga2 over the tiny space, to be copied and not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.yaml").write_text(
        yaml_source.dump({"preset": "paper", "space": TINY, "name": "tiny", "budgets": {"total_ms": 60}, "seed": 5})
    )
    request = RunRequest(
        {"algo": "nsga2", "evaluations": 60, "params": ["population=12"]},
        config=str(folder / "study.yaml"),
        out=folder / "run",
        quiet=True,
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "draw", lambda *_: None)
        running.execute(request)
    return folder / "run"


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run that a test may change."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"
