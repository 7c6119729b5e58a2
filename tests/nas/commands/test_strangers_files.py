"""What lies under a run's file names in a folder from elsewhere: links to devices, pipes, folders, endless files, second names.

And which command imports what a study names.
"""

import os
import re
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nas.files.import_rights import RIGHTS, Right, right_of
from nas.terminal.doors import COMMANDS
from tests.sources import BUNDLED_COMMANDS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "run-folder.md"
Inside = Callable[..., Any]
LINES: dict[str, tuple[object, ...]] = {
    "select": ("select", "run"),
    "explain": ("explain", "run", "--select", "knee"),
    "report": ("report", "run"),
    "watch": ("watch", "run", "--once"),
    "export": ("export", "run", "--to", "hf", "--out", "made"),
    "resume": ("run", "--resume", "run", "--quiet"),
    "config": ("run", "--config", "run", "--quiet", "--out", "again"),
    "theory": ("theory", "--config", "run"),
    "compare": ("compare", "--config", "run", "--algos", "random", "--interim"),
    "devices": ("devices", "--config", "run", "--devices", "jetson_nano", "--no-plots", "--out", "many"),
    "known": (
        "run",
        "--config",
        "robot_int8",
        "--algo",
        "random",
        "--set",
        "known=run",
        "--evaluations",
        5,
        "--out",
        "new",
    ),
}
NAMES = (
    *("summary.json", "config.yaml", "manifest.json", "progress.json", "evaluations.csv", "frontier.csv", "picks.csv"),
    *("evaluations.sqlite", "evaluations.sqlite-wal", ".lock", "known.csv", "report.json"),
)
KINDS = ("a pipe", "a file of 50 GB", "a link to /dev/zero", "a folder")
OFTEN = {"select": KINDS, "watch": KINDS, "resume": KINDS[:2]}
LEFT = [
    pytest.param(line, kind, marks=() if kind in OFTEN.get(line, ()) else pytest.mark.slow)
    for line in LINES
    for kind in KINDS
]


def put(kind: str, path: Path) -> None:
    """What somebody left under a name."""
    content = path.read_bytes() if path.is_file() else b"{"
    path.unlink(missing_ok=True)
    if kind == "a link to /dev/zero":
        path.symlink_to("/dev/zero")
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.write(content[:2048])
            file.truncate(50_000_000_000)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("line", "kind"), LEFT)
def test_no_file_of_a_strangers_folder_hangs_or_fills_memory(
    line: str, name: str, kind: str, copied: Path, inside: Inside
) -> None:
    put(kind, copied / name)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    answer = inside(*LINES[line])
    assert answer.code in (0, 1, 2, 3), answer
    assert answer.code in (0, 3) or answer.err.strip()
    assert time.process_time() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # KB


@pytest.mark.parametrize("name", ["evaluations.sqlite", ".lock"])
def test_a_second_name_of_somebody_elses_file_is_not_written_through(name: str, copied: Path, inside: Inside) -> None:
    place = copied / name
    place.touch()
    os.link(place, "mine")
    before = Path("mine").read_bytes()
    answer = inside("run", "--resume", "run", "--evaluations", 70, "--quiet")
    assert (answer.code, Path("mine").read_bytes()) == (2, before)
    assert f"{name}: expected a plain file, got a hard link, which has another name; put a copy" in answer.err
    assert inside("select", "run").code == 0  # reading changes nothing


METRIC = "import pathlib\npathlib.Path({marker!r}).touch()\ndef depth(a):\n    return a.depth * 1.0\n"


@pytest.fixture
def named(copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose configuration names a module of the working folder, which leaves a mark when it is imported."""
    (tmp_path / "theirs.py").write_text(METRIC.format(marker=str(tmp_path / "marker")))
    path = copied / "config.yaml"
    text = path.read_text()
    assert "objectives:\n- loss\n- total_ms\n" in text
    path.write_text(text.replace("objectives:\n- loss\n- total_ms\n", "objectives:\n- loss\n- theirs:depth\n"))
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])  # without the folders of earlier tests when this one ends
    return tmp_path / "marker"


@pytest.mark.parametrize(
    "line",
    [
        ("theory", "--config", "run"),
        ("explain", "--config", "run", "--model", "qwen3_0_6b"),
        ("export", "--config", "run", "run", "--to", "hf", "--out", "made"),
    ],
    ids=lambda line: str(line[0]),
)
def test_a_command_that_does_not_evaluate_imports_nothing_that_a_study_names(
    line: tuple[str, ...], named: Path, inside: Inside
) -> None:
    answer = inside(*line)
    assert not named.exists()
    assert answer.code == 2, answer


def test_what_one_types_is_imported(named: Path, inside: Inside) -> None:
    assert inside("theory", "--config", "run", "--set", "objectives=loss,theirs:depth").code in (0, 2, 3)
    assert named.exists()


@pytest.mark.slow
def test_a_comparison_evaluates_and_imports_what_its_study_names(
    named: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nas.compare.command.draw", lambda *_: None)
    line = ("--config", "run", "--algos", "random", "--no-baselines", "--seeds", 1, "--evaluations", 5, "--quiet")
    assert inside("compare", *line, "--out", "compared").code == 0
    assert named.exists()


def test_every_command_is_listed() -> None:
    files = [*(ROOT / "nas").glob("*.py"), *(ROOT / "nas").glob("*/__main__.py")]
    written = [path for path in files if re.search("^main = command", path.read_text(encoding="utf-8"), re.MULTILINE)]
    there = {path.parent.name if path.stem == "__main__" else path.stem for path in written}
    assert there == set(COMMANDS), (
        f"nas/terminal/doors.py: expected every command in COMMANDS, got {there ^ set(COMMANDS)} in one of them; add it"
    )


def test_the_page_says_what_each_command_imports() -> None:
    assert set(RIGHTS) <= {*COMMANDS, *BUNDLED_COMMANDS}
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    said = {
        name: what for names, what in rows for name in re.findall(r"`(\w+)`", names) if what in {r.value for r in Right}
    }
    rights = {name: right_of(name) for name in COMMANDS}
    rights |= {name: import_module(module).main.right or Right.NONE for name, module in BUNDLED_COMMANDS.items()}
    assert said == {name: right.value for name, right in rights.items()}, (
        f"{PAGE.name}: expected a row for each command and what it imports; correct the table"
    )


@pytest.mark.parametrize("name", ["x" * 2000, "x" * 2000 + "#study", "x" * 2000 + ".csv"])
def test_a_name_that_no_file_can_have_is_a_sentence(name: str, inside: Inside) -> None:
    line = (
        "run",
        "--config",
        "robot_int8",
        "--algo",
        "random",
        "--evaluations",
        3,
        "--set",
        f"known={name}",
        "--out",
        "new",
    )
    answer = inside(*line)
    assert answer.code == 2
    assert "expected a file, got File name too long" in answer.err


def test_devices_take_the_configuration_that_a_run_wrote(finished: Path, inside: Inside) -> None:
    answer = inside("devices", "--config", finished, "--devices", "jetson_agx_orin_64gb", "--no-plots", "--out", "many")
    assert answer.code == 0, answer
