"""Watching reads what is there, changes nothing, and ends with the run; a page opens in the browser."""

import csv
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from nas.answer import progress
from nas.answer.progress import RunFollower
from nas.commands import report as opening
from nas.commands import run as running
from nas.record.store import FILE

Inside = Callable[..., Any]


def changed(folder: Path, **content: Any) -> None:
    """Change a run's manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | content))


def picked_loss(run: Path) -> str:
    """The loss of a run's first pick, of its own budgets."""
    with (run / "picks.csv").open(newline="") as lines:
        return next(csv.DictReader(lines))["loss"]


def held(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """A folder in which nothing can be created."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_a_finished_run_is_shown_as_its_summary_says_and_left_as_it_was(copied: Path, inside: Inside) -> None:
    before, summary = held(copied), json.loads((copied / "summary.json").read_text())
    with unwritable(copied):
        told = inside("watch", copied, "--once", "--json")
    assert told.code == 0
    found = json.loads(told.out)
    assert found["state"] == "finished"
    assert found["evaluations"] == found["limit"] == summary["evaluations"]["distinct"]
    assert found["frontier"] == summary["frontier"]
    assert found["best"]["loss"] == float(picked_loss(copied))
    assert held(copied) == before


@pytest.mark.slow
def test_genes_that_are_words_are_shown_as_they_are_and_ties_go_to_the_lower_time(
    inside: Inside, tmp_path: Path
) -> None:
    words = (
        "--set",
        "devices=raspberry_pi_5,l4",
        "--set",
        "serving.speculation=none,mtp:1",
        "--precisions",
        "fp16,int8",
    )
    asked = ("run", "--algo", "random", "--evaluations", 60, *words, "--budget", "total_ms=5000", "--out", "run")
    assert inside(*asked, "--quiet").code == 0
    told = inside("watch", "run", "--once", "--json")
    assert told.code == 0, told.err
    best = json.loads(told.out)["best"]
    with (tmp_path / "run" / "picks.csv").open(newline="") as lines:
        pick = next(csv.DictReader(lines))
    assert {name: best[name] for name in ("device", "speculation", "precision")} == {
        name: pick[name] for name in ("device", "speculation", "precision")
    }
    assert (best["loss"], best["total_ms"]) == (float(pick["loss"]), float(pick["total_ms"]))


def test_what_is_new_is_added_to_what_was_seen(copied: Path) -> None:
    whole = RunFollower(copied).look()
    later, rows = RunFollower(copied), copied / FILE
    with sqlite3.connect(rows) as connection:
        connection.execute('CREATE TABLE later AS SELECT * FROM evaluations WHERE "index" >= 60')
        connection.execute('DELETE FROM evaluations WHERE "index" >= 60')
    connection.close()
    assert later.look().evaluations == 60
    with sqlite3.connect(rows) as connection:
        connection.execute("INSERT INTO evaluations SELECT * FROM later")
    connection.close()
    found = later.look()
    assert (found.evaluations, found.frontier, found.best) == (whole.evaluations, whole.frontier, whole.best)


def test_a_look_holds_a_block_of_rows_however_many_there_are(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows at once took 700 MB, also of the run itself, which looks at its own store."""
    whole, taken = RunFollower(copied).look(), list[int]()
    monkeypatch.setattr(progress, "BLOCK", 7)
    add = RunFollower._take_block

    def counted(follower: RunFollower, rows: Any, *rest: Any) -> None:
        taken.append(len(rows))
        add(follower, rows, *rest)

    monkeypatch.setattr(RunFollower, "_take_block", counted)
    found = RunFollower(copied).look()
    assert max(taken) == 7
    assert sum(taken) == found.evaluations
    assert (found.frontier, found.best, found.failed) == (whole.frontier, whole.best, whole.failed)


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_an_ended_run_ends_the_watching_and_says_how_it_ended(state: str, copied: Path, inside: Inside) -> None:
    changed(copied, state=state, stop_reason=None)
    told = inside("watch", copied)
    assert told.code == 0
    assert told.out.count("\n") == 1
    assert f"seed 5, {state};" in told.out


def test_a_run_that_writes_nothing_for_long_may_be_killed(copied: Path, inside: Inside) -> None:
    changed(copied, state="running", limit=100_000)
    os.utime(copied / FILE, (time.time() - 600, time.time() - 600))
    assert "killed? python -m nas.run --resume" in inside("watch", copied, "--once").out


@pytest.mark.parametrize(
    "content", ["", "[]", '{"state": "<b>"}', "[" * 100_000, '{"state": "finished", "limit": "many"}']
)
def test_a_stranger_s_manifest_does_no_harm(content: str, copied: Path, inside: Inside) -> None:
    (copied / "manifest.json").write_text(content)
    told = inside("watch", copied, "--once", "--json")
    assert told.code == 0
    assert json.loads(told.out)["state"] in ("running", "finished")


def test_a_stranger_s_store_that_computes_is_refused(copied: Path, inside: Inside) -> None:
    with sqlite3.connect(copied / FILE) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON evaluations BEGIN DELETE FROM evaluations; END")
    connection.close()
    told = inside("watch", copied, "--once")
    assert told.code == 1
    assert "expected plain tables, got a trigger" in told.err


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_waited_for(copied: Path, inside: Inside, tmp_path: Path) -> None:
    told = inside("watch", "nowhere", "--wait", 0.5)
    assert told.code == 2
    assert "waiting up to 0.5 s" in told.err
    assert "expected the folder of a run, got no folder" in told.err
    assert inside("watch", "nowhere", "--once").code == 2
    (tmp_path / "empty").mkdir()
    assert "got nothing to watch in it" in inside("watch", "empty", "--once").err
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "notes.txt").write_text("")
    told = inside("watch", "else", "--wait", 600)
    assert told.code == 2
    assert "got nothing to watch in it" in told.err
    assert "waiting" not in told.err
    (tmp_path / "just begun").mkdir()
    (tmp_path / "just begun" / ".lock").write_text("")
    assert "waiting up to 0.3 s" in inside("watch", "just begun", "--wait", 0.3).err
    later = threading.Timer(0.5, lambda: shutil.copytree(copied, tmp_path / "late"))
    later.start()
    told = inside("watch", "late", "--wait", 20, "--every", 0.1)
    later.join()
    assert told.code == 0
    assert "finished" in told.out


@pytest.mark.slow
def test_watching_a_living_run_changes_none_of_its_bytes_and_ctrl_c_leaves_it_alone(
    commands: Any, tmp_path: Path
) -> None:
    study = ("--algo", "nsga2", "--evaluations", "2000", "--no-plots", "--quiet")
    runs = [commands.start("run", *study, "--out", "seen")]
    looking = commands.start("watch", "seen", "--every", "0.1", "--json")
    stopped = commands.start("watch", "seen", "--every", "0.1")
    assert stopped.stdout is not None
    stopped.stdout.readline()
    stopped.send_signal(signal.SIGINT)
    assert stopped.communicate(timeout=120)[1].endswith("Watch on with: python -m nas.watch seen\n")
    assert stopped.returncode == 130
    lines = [json.loads(line) for line in looking.communicate(timeout=300)[0].splitlines()]
    runs.append(commands.start("run", *study, "--out", "alone"))
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    counts = [line["evaluations"] for line in lines]
    assert counts == sorted(counts)
    assert lines[-1]["state"] == "finished"
    assert counts[-1] == 2000
    for name in ("evaluations.csv", "frontier.csv"):
        assert (tmp_path / "seen" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_report_opens_the_page_in_the_browser_or_says_where_it_is(
    copied: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def browser(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setenv("DISPLAY", ":0")
    report = copied / "report.html"
    told = inside("report", copied, "--open", "--quiet")
    assert (told.code, told.out, asked) == (0, "", [report.as_uri()])
    assert "</html>" in report.read_text()
    report.write_text("<!doctype html>")
    assert inside("report", copied, "--open").code == 0
    assert (report.read_text(), asked) == ("<!doctype html>", [report.as_uri()] * 2)
    for name in opening.DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        assert inside("report", copied, "--open").out.strip() == str(report)
        assert len(asked) == 2


@pytest.mark.parametrize("name", ["a b", "grün", "x#y", "q?r", "p%20q", "$(id)", "quo'te"])
def test_report_gives_the_browser_an_address_that_is_this_file(
    name: str, tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def browser(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setenv("DISPLAY", ":0")
    (tmp_path / name).mkdir()
    (tmp_path / name / "report.html").write_text("<!doctype html>")
    (tmp_path / "linked").symlink_to(tmp_path / name)
    for folder in (name, "linked"):
        assert inside("report", tmp_path / folder, "--open").code == 0
        address = urlsplit(asked[-1])
        assert (address.scheme, address.query, address.fragment) == ("file", "", "")
        assert unquote(address.path) == str(tmp_path / folder / "report.html")


def test_report_follows_no_link_and_opens_nothing_but_a_page(copied: Path, inside: Inside, tmp_path: Path) -> None:
    (copied / "report.html").symlink_to(tmp_path / "elsewhere.html")
    assert "got a link" in inside("report", copied, "--open").err
    assert inside("report", tmp_path / "nowhere", "--open").code == 2
    (tmp_path / "empty").mkdir()
    assert inside("report", tmp_path / "empty", "--open").code == 2


def test_a_run_on_another_machine_is_watched_by_its_file_and_its_store_is_left_alone(
    copied: Path, inside: Inside
) -> None:
    changed(copied, state="running", host="a-machine-far-away")
    written = RunFollower(copied).look().json()
    answer = inside("watch", copied, "--once")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1), answer
    (copied / "progress.json").write_text(json.dumps({**written, "evaluations": 41, "run": "theirs"}))
    (copied / FILE).unlink()
    found = json.loads(inside("watch", copied, "--once", "--json").out)
    assert (found["evaluations"], found["run"], found["state"]) == (41, str(copied), "running")
    for nonsense in ("", "[]", "{}", "null", json.dumps({**written, "evaluations": "many"})):
        (copied / "progress.json").write_text(nonsense)
        assert inside("watch", copied, "--once").code == 2
    (copied / "progress.json").unlink()
    (copied / "progress.json").symlink_to("/dev/zero")
    assert inside("watch", copied, "--once").code == 2


def test_a_run_notes_where_it_stands_while_it_goes_on(
    finished: Path, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Eager(progress.ProgressFile):
        def __call__(self) -> None:
            self.due = 0.0
            super().__call__()
            seen.append(progress.read(tmp_path / "run"))

    monkeypatch.setattr(running, "ProgressFile", Eager)
    assert inside("run", "--config", finished, "--out", "run", "--quiet").code == 0
    assert [found.evaluations for found in seen] == sorted(found.evaluations for found in seen)
    assert seen[-1].evaluations == 60
    assert seen[-1].state == "running"
    assert not (tmp_path / "run" / "progress.json").exists()
    assert "dashboard of its cluster" not in inside("watch", "run", "--once").out
    changed(tmp_path / "run", state="running", dashboard="http://10.0.0.1:8787/status\x1b[2J")
    assert "dashboard of its cluster: http://10.0.0.1:8787/status" in inside("watch", "run", "--once").out
    assert "\x1b" not in inside("watch", "run", "--once").out
