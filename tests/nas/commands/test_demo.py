"""The tour that types itself: what it shows and runs, where it stops, and that a whole one ends well."""

import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.commands import demo
from nas.commands.requests import DemoRequest
from nas.commands.tour import BOARD, STEPS

Inside = Callable[..., Any]
MADE = ("board.yaml", "runs/mine/frontier.csv", "runs/mine/report.html", "candidates.csv", "trained/README.md")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Commands and folders that the tour ran, none of them really."""
    found: list[tuple[str, Path]] = []

    def run(command: str, folder: Path) -> int:
        found.append((command, folder))
        return 0

    monkeypatch.setattr(demo, "ran", run)
    return found


def test_every_step_is_said_typed_and_run_in_a_folder_of_its_own(
    ran: list[tuple[str, Path]], inside: Inside, tmp_path: Path
) -> None:
    told = inside("demo", "--out", "tour")
    assert told.code == 0
    folder = tmp_path / "tour"
    commands = [step.command.replace("plas open", "plas open --print") for step in STEPS]
    assert ran == [(command, folder) for command in commands[1:]]
    at = [told.out.index(f"{step.says}\n$ {command}\n") for step, command in zip(STEPS, commands, strict=True)]
    assert at == sorted(at)
    assert (folder / "board.yaml").read_text() == BOARD
    assert told.out.endswith(
        f"The files are in {folder}. For your own device edit its board.yaml and search again, with another --out.\n"
    )


def test_without_a_folder_one_is_made_that_stays(
    ran: list[tuple[str, Path]], inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert inside("demo").code == 0
    (made,) = {folder for _, folder in ran}
    assert made.parent == tmp_path
    assert [path.name for path in made.iterdir()] == ["board.yaml"]


def test_quiet_leaves_commands_and_results(ran: list[tuple[str, Path]], inside: Inside) -> None:
    told = inside("demo", "--out", "tour", "--quiet")
    assert told.code == 0
    assert told.out == "".join([f"$ {STEPS[0].command}\n", BOARD, *(f"$ {command}\n" for command, _ in ran)])


@pytest.mark.parametrize(("looking", "last"), [(True, "plas open runs/mine"), (False, "plas open --print runs/mine")])
def test_a_browser_is_opened_on_a_screen_alone_and_unless_forbidden(
    looking: bool, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert list(demo.steps(DemoRequest(browser=looking)))[-1].command == last


@pytest.mark.parametrize(
    ("flags", "screen", "keyboard", "manner"),
    [
        ({}, True, True, demo.Manner(typed=True, waiting=True)),
        ({"wait": False}, True, True, demo.Manner(typed=True, waiting=False)),
        ({}, True, False, demo.Manner(typed=True, waiting=False)),
        ({}, False, True, demo.Manner(typed=False, waiting=False)),
        ({"quiet": True}, True, True, demo.Manner(typed=False, waiting=False)),
    ],
)
def test_it_types_and_waits_where_somebody_looks_on(
    flags: dict[str, bool], screen: bool, keyboard: bool, manner: demo.Manner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: screen)
    monkeypatch.setattr("sys.stdin.isatty", lambda: keyboard)
    assert demo.manner_of(DemoRequest(**flags)) == manner


def test_a_long_command_goes_on_in_the_next_line(
    ran: list[tuple[str, Path]], inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = inside("demo", "--out", "tour").out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("$ plas run"))
    shown = lines[first : first + 3]
    assert max(map(len, shown)) <= 80
    assert shown[0].endswith(" \\")
    assert "".join(line.removesuffix("\\").removeprefix("  ") for line in shown).startswith(f"$ {STEPS[1].command}")


def test_a_used_folder_is_refused(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "tour").mkdir()
    (tmp_path / "tour" / "mine.txt").touch()
    told = inside("demo", "--out", "tour")
    assert told.code == 2
    assert told.err == "--out: expected a new or empty folder, got tour with files in it; name another\n"
    assert told.out == ""


def test_a_step_that_fails_ends_the_tour(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "ran", lambda command, _: 3 if "explain" in command else 0)
    told = inside("demo", "--out", "tour")
    assert told.code == 1
    assert told.err == (
        "demo: expected 'plas explain runs/mine --select best' to end well, got exit code 3; "
        f"see what it said above, in {tmp_path / 'tour'}\n"
    )
    assert "4 of 6" not in told.out


def test_a_step_that_is_stopped_stops_the_tour(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "ran", lambda command, _: 130 if "plas run" in command else 0)
    told = inside("demo", "--out", "tour")
    assert told.code == 130
    assert told.err == f"Stopped at step 2 of 6; the files so far are in {tmp_path / 'tour'}\n"


def test_a_command_runs_in_the_folder_and_its_exit_code_comes_back(tmp_path: Path) -> None:
    (tmp_path / "nas.py").write_text("raise SystemExit('somebody else’s module')")
    assert demo.ran("plas nonsense", tmp_path) == 2
    assert demo.ran("plas init", tmp_path) == 0
    assert (tmp_path / "study.yaml").exists()


@pytest.mark.slow
def test_the_whole_tour_leaves_files_to_look_at(commands: Any, succeeded: Callable[..., str]) -> None:
    said = succeeded(commands("demo", "--out", "tour"))
    assert all((commands.folder / "tour" / name).stat().st_size for name in MADE)
    assert "\nAnswer: " in said
    assert f"\n{commands.folder / 'tour' / 'runs/mine/report.html'}\n" in said


@pytest.mark.slow
def test_ctrl_c_in_the_search_says_how_to_go_on_and_where(commands: Any) -> None:
    process = commands.start("demo", "--out", "tour")
    end = time.monotonic() + 120
    while not (commands.folder / "tour/runs/mine/evaluations.sqlite").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "plas run --resume runs/mine" in said
    assert f"Stopped at step 2 of 6; the files so far are in {commands.folder / 'tour'}\n" in said


@pytest.mark.slow
def test_on_a_terminal_each_command_waits_for_enter(commands: Any) -> None:
    ours, theirs = pty.openpty()
    environment = {**commands.environment(), "TERM": "xterm", "COLUMNS": "80"}
    line = commands.line("demo", "--out", "tour", "--no-open")
    process = subprocess.Popen(
        line, cwd=commands.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, text=True
    )
    commands.started.append(process)
    os.close(theirs)
    shown = Reader(ours)
    shown.until("$ cat board.yaml")
    assert "name: Our board" not in shown.text
    os.write(ours, b"\n")
    shown.until("--out runs/mine")
    assert "name: Our board" in shown.text
    assert not (commands.folder / "tour" / "runs").exists()
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    shown.until("Stopped at step 2 of 6")


class Reader:
    """What a pseudo-terminal shows, as it comes."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.text = terminal, ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self.text += os.read(self.terminal, 65_536).decode()
            except OSError:  # how Linux says that the other side closed
                return

    def until(self, words: str) -> None:
        """Wait for words."""
        end = time.monotonic() + 120
        while words not in self.text:
            assert time.monotonic() < end, self.text
            time.sleep(0.02)
