"""What a folder from elsewhere cannot do: run code, write outside itself, connect anywhere, stand in for our modules.

Every attack is harmless here: it would write or change a marker file inside the test's own folder.
"""

import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.record.database import meta_digest
from nas.record.store import FILE

ROOT = Path(__file__).resolve().parents[3]
Inside = Callable[..., Any]
Checked = Callable[..., str]


@pytest.mark.parametrize("how", ["--resume", "--config"])
def test_a_run_of_an_earlier_version_says_that_it_has_no_mirror(how: str, copied: Path, inside: Inside) -> None:
    path = copied / "config.yaml"
    path.write_text(f"{path.read_text()}optuna_storage: none\n")
    more = ("--evaluations", 70) if how == "--resume" else ("--out", "again")
    assert inside("run", how, "run", *more, "--quiet").code == 0


def test_a_mirrored_run_of_an_earlier_version_goes_on_without(copied: Path, inside: Inside) -> None:
    path = copied / "config.yaml"
    path.write_text(f"{path.read_text()}optuna_storage: marker\n")
    with sqlite3.connect(copied / FILE) as store:
        meta = dict(store.execute("SELECT name, value FROM meta WHERE name != 'digest'"))
        meta["resolved"] = json.dumps(json.loads(meta["resolved"]) | {"optuna_storage": "marker"})
        meta["digest"] = json.dumps(meta_digest(meta))
        store.executemany(
            "UPDATE meta SET value = ? WHERE name = ?", [(meta[name], name) for name in ("resolved", "digest")]
        )
    assert inside("report", "run").code == 0
    assert inside("run", "--resume", "run", "--evaluations", 70, "--quiet").code == 0
    assert not Path("marker").exists()


LINKED = (".frontier.csv.part", ".manifest.json.part", ".lock", "evaluations.sqlite-wal", "evaluations.sqlite-journal")
WRITTEN = ("frontier.csv", "manifest.json", "config.yaml", "summary.json", "evaluations.csv", "picks.csv")


@pytest.mark.parametrize("name", [*LINKED, *WRITTEN, "evaluations.sqlite-shm"])
def test_resuming_follows_no_link(name: str, copied: Path, inside: Inside, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.write_text("mine\n")
    (copied / name).unlink(missing_ok=True)
    (copied / name).symlink_to(marker)
    answer = inside("run", "--resume", "run", "--evaluations", 70, "--quiet")
    assert answer.code in (0, 2), answer
    assert marker.read_text() == "mine\n"
    assert answer.code == 2 or not (copied / name).is_symlink() or name.endswith(".part")


def test_resuming_follows_no_link_to_a_store_or_to_another_folder(copied: Path, inside: Inside, tmp_path: Path) -> None:
    store = tmp_path / "elsewhere.sqlite"
    (copied / "evaluations.sqlite").rename(store)
    (copied / "evaluations.sqlite").symlink_to(store)
    before = store.read_bytes()
    for line in (("run", "--resume", "run", "--evaluations", 70), ("select", "run")):
        answer = inside(*line)
        assert answer.code == 2
        assert "expected a plain file, got a link" in answer.err
    assert store.read_bytes() == before
    (copied / "evaluations.sqlite").unlink()
    store.rename(copied / "evaluations.sqlite")
    shutil.rmtree(copied / "plots", ignore_errors=True)
    (tmp_path / "elsewhere").mkdir()
    (copied / "plots").symlink_to(tmp_path / "elsewhere")
    answer = inside("run", "--resume", "run", "--evaluations", 70)
    assert answer.code == 2
    assert "plots: expected a folder, got a link" in answer.err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_lock_that_is_a_pipe_is_refused_and_does_not_hang(copied: Path, inside: Inside) -> None:
    (copied / ".lock").unlink(missing_ok=True)
    os.mkfifo(copied / ".lock")
    answer = inside("run", "--resume", "run")
    assert answer.code == 2
    assert "expected a plain file, got a device or pipe" in answer.err


def test_a_new_run_touches_nothing_through_a_link(inside: Inside, tmp_path: Path, finished: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".write-test").symlink_to(tmp_path / "marker")
    assert inside("run", "--config", finished, "--out", "new", "--quiet").code == 2
    assert not (tmp_path / "marker").exists()
    assert (tmp_path / "new" / ".write-test").is_symlink()


def test_what_a_killed_process_was_writing_is_removed_when_the_run_is_resumed(copied: Path, inside: Inside) -> None:
    left = copied / ".frontier.csv.0123456789abcdef.part"
    left.write_text("half of")
    assert inside("run", "--resume", "run", "--quiet").code == 0
    assert not left.exists()


TRAP = "import pathlib\npathlib.Path({marker!r}).write_text(__name__)\nraise SystemExit(99)\n"
SHADOWS = (
    *("typer", "click", "yaml", "numpy", "pydantic", "scipy", "pandas", "matplotlib", "rich"),
    *("objectives", "search_spaces", "configs", "select", "json", "typing", "enum", "signal", "dataclasses", "sqlite3"),
)


@pytest.mark.slow
def test_modules_beside_a_strangers_run_are_not_imported(
    copied: Path, commands: Any, succeeded: Checked, tmp_path: Path
) -> None:
    for name in SHADOWS:
        (copied / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    for line in (
        ("select", "."),
        ("explain", ".", "--select", "knee"),
        ("list", "devices"),
        ("list", "--schema", "nsga2"),
    ):
        assert succeeded(commands(*line, cwd=copied))
    whole = subprocess.run(
        [sys.executable, "-m", "nas", "select", "."],
        cwd=copied,
        env=commands.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "chosen" in succeeded(whole)
    assert not (tmp_path / "marker").exists()


@pytest.mark.slow
def test_worker_processes_import_nothing_from_a_strangers_folder(
    copied: Path, commands: Any, succeeded: Checked, tmp_path: Path
) -> None:
    for name in (*SHADOWS, "multiprocessing", "pickle", "concurrent"):
        (copied / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    line = ("--algos", "random,lhs", "--seeds", 1, "--evaluations", 20, "--workers", 2, "--quiet", "--config", ".")
    succeeded(commands("compare", *line, "--out", tmp_path / "compared", cwd=copied))
    assert not (tmp_path / "marker").exists()


@pytest.mark.slow
def test_a_users_own_files_with_our_names_break_nothing_and_own_functions_are_found(
    commands: Any, succeeded: Checked
) -> None:
    for name in ("select.py", "yaml.py", "objectives.py", "configs/__init__.py"):
        commands.write(name, "raise SystemExit('imported')\n")
    commands.write("mine.py", "def depth(a):\n    return a.depth * 1.0\n")
    line = ("--algo", "random", "--evaluations", 8, "--objectives", "loss,mine:depth", "--quiet", "--out", "run")
    succeeded(commands("run", *line))
    assert "paper" in succeeded(commands("list", "studies"))


NAMESAKES = ("objectives.py", "search_spaces.py", "configs/__init__.py", "select.py")
PROGRAM = "import sys; sys.argv[0] = 'plas'; from nas.__main__ import main; main()"


def as_plas(commands: Any, *typed: object, path: str = str(ROOT)) -> "subprocess.CompletedProcess[str]":
    """The installed program, which the checkout has none of: the same first lines, and no working folder on its path."""
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *map(str, typed)],
        cwd=commands.folder,
        env={**commands.environment(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("plas", marks=pytest.mark.slow),
        pytest.param("python -m", marks=pytest.mark.extended),
        pytest.param("plas with the folder on PYTHONPATH", marks=pytest.mark.extended),
    ],
)
def test_a_users_functions_are_found_in_files_called_as_ours(how: str, commands: Any, succeeded: Checked) -> None:
    for name in NAMESAKES if "PYTHONPATH" not in how else NAMESAKES[:-1]:  # there, select.py breaks Python itself
        commands.write(name, f"def depth(a):\n    return a.depth * {len(name)}.0\n")
    commands.write("configs/inner.py", "def depth(a):\n    return a.depth * 5.0\n")
    path = f".{os.pathsep}{ROOT}" if "PYTHONPATH" in how else str(ROOT)
    for module, factor in (
        ("objectives", 13),
        ("search_spaces", 16),
        ("configs", 19),
        ("configs.inner", 5),
        ("select", 9),
    ):
        if module == "select" and "PYTHONPATH" in how:
            continue
        metric, out = f"{module}:depth", f"run-{module}"
        line = ("--config", "robot_int8", "--algo", "random", "--evaluations", 6, "--objectives", f"loss,{metric}")
        line = (*line, "--out", out, "--quiet", *(("--workers", 1) if module == "objectives" else ()))
        succeeded(commands("run", *line) if how == "python -m" else as_plas(commands, "run", *line, path=path))
        with (commands.folder / out / "evaluations.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 6
        assert all(float(row[metric]) == factor * float(row["depth"]) for row in rows)


@pytest.mark.slow
def test_workers_of_the_program_import_nothing_from_the_working_folder(
    commands: Any, succeeded: Checked, tmp_path: Path
) -> None:
    for name in ("select", "yaml", "objectives", "multiprocessing", "pickle"):
        commands.write(f"{name}.py", TRAP.format(marker=str(tmp_path / "marker")))
    line = ("--algos", "random", "--no-baselines", "--seeds", 2, "--evaluations", 10, "--workers", 2, "--quiet")
    succeeded(as_plas(commands, "compare", *line, "--out", "compared"))
    assert not (tmp_path / "marker").exists()


@pytest.mark.slow
def test_shipped_files_are_ours_whatever_a_users_packages_are_called(commands: Any, succeeded: Checked) -> None:
    for name in ("configs/__init__.py", "objectives/__init__.py", "search_spaces/__init__.py"):
        commands.write(name, "raise SystemExit('imported')\n")
    commands.write("configs/mine.yaml", "algo: random\n")
    for kind, known in (
        ("studies", "robot_int8"),
        ("devices", "jetson"),
        ("laws", "hw_codesign"),
        ("presets", "device"),
    ):
        said = succeeded(as_plas(commands, "list", kind, path=f".{os.pathsep}{ROOT}"))
        assert known in said
        assert "mine" not in said
    code = "import nas.run, objectives, search_spaces; print(objectives.PLAS, search_spaces.PLAS)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=commands.folder, env=commands.environment(), capture_output=True, text=True
    )
    assert succeeded(done) == "plas-codesign plas-codesign\n"


def test_nothing_is_imported_from_a_run_folder_that_one_stands_in(
    copied: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (copied / "theirs.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    monkeypatch.chdir(copied)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(copied))])
    answer = inside("run", "--algo", "random", "--objectives", "loss,theirs:fn", "--out", str(tmp_path / "new"))
    assert answer.code == 2
    assert "expected code outside run folders" in answer.err
    assert str(copied) not in sys.path
    assert not (tmp_path / "marker").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "after"),
    [
        (line, after)
        for line in (("fit", "--next", 30), ("run", "--quiet"))
        for after in ("typer", "numpy.linalg", "pydantic", "scipy", "nas.problem.problem")
        if (line[0], after) != ("run", "scipy")  # which it does without
    ],
)
def test_ctrl_c_while_modules_are_imported_is_exit_130_without_a_traceback(
    line: tuple[Any, ...], after: str, commands: Any
) -> None:
    _, *rest = commands.line(*line)
    process = commands.start(*line, args=[sys.executable, "-X", "importtime", *rest])
    for said in process.stderr:
        if said.split("|")[-1].strip() == after:
            process.send_signal(signal.SIGINT)
            break
    else:
        pytest.fail(f"{after} was never imported")
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 130


@pytest.mark.slow
def test_a_long_command_says_that_it_was_interrupted(commands: Any) -> None:
    code = (
        "import sys, signal, os; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import plas_fit.command as fitting, plas_fit.__main__ as door\n"
        "fitting.designs = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['fit', '--next', '30']\n"
        "door.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=commands.folder,
        env=commands.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted before the end; give the command again\n")


@pytest.mark.parametrize("number", ["ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks_is_named_and_leaves_nothing(
    number: str, inside: Inside, monkeypatch: pytest.MonkeyPatch, finished: Path
) -> None:
    import errno

    from nas.record import folder as run_folder

    code = getattr(errno, number)

    def none(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(run_folder.fcntl, "flock", none)
    for line in (("run", "--config", finished), ("compare", "--config", finished, "--algos", "random", "--seeds", 1)):
        answer = inside(*line, "--out", "new")
        assert answer.code == 2
        assert answer.err.startswith("new: expected a file system with locks, got one without (")
        assert not Path("new").exists()
