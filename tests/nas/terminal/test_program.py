"""Commands that are proposed: by the name that was typed, wherever they are written; those of packages that are not installed."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas.__main__ import main
from nas.api.study import load_study
from nas.errors import UsageError
from nas.study.metrics import parse_budget
from nas.terminal import doors
from plas_paper import prediction, theory_problem
from plas_paper.theory_problem import TheoryProblem

LONG = "x" * 5_000

ROOT = Path(__file__).resolve().parents[3]
NOT_PROPOSED = (  # both names are meant
    "nas/__main__.py",
    "nas/terminal/import_path.py",
    "nas/terminal/doors.py",
    "nas/terminal/doors.py",
    "nas/terminal/parser.py",
)


def test_no_proposal_is_written_with_a_name_of_its_own() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "nas").rglob("*.py")}
    # a command's own docstring shows both ways to type it; that is no proposal
    written = {
        name
        for name in files
        for line in (ROOT / name).read_text().splitlines()
        if re.search(r'python -m nas\.|"python", "-m"', line) and not line.lstrip().startswith('"""')
    }
    assert written <= set(NOT_PROPOSED)


@pytest.mark.parametrize(("started", "proposed"), [("plas theory", "plas run"), ("theory", "python -m nas.run")])
def test_what_theory_and_a_limit_of_a_space_propose_is_what_was_typed(
    started: str, proposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [started])
    study = load_study().assembled
    assert f"use {proposed} --algo exact" in str(theory_problem._refused(study.problem.scenario.law, "it is not"))
    assert f"; {proposed} --algo exact says" in str(prediction.nothing_fits(TheoryProblem(study.problem)))
    with pytest.raises(UsageError, match=f"give it to {proposed}"):
        parse_budget("full_layers=2", study.problem.metric_names, study.problem.scenario)


def test_nothing_proposes_the_other_name_next() -> None:
    """A proposal that begins a line or follows `next:` carries the name that was typed: it is made by `command`."""
    written = [
        (str(path.relative_to(ROOT)), line.strip())
        for path in (ROOT / "nas").rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r'f?"(?:[Nn]ext: )?plas \w+ \{', line)
    ]
    assert written == []


def test_commands_of_the_packages_around_the_core_are_those_of_their_entry_points() -> None:
    points = {
        name: path.parent.name
        for path in (ROOT / "plugins").glob("*/pyproject.toml")
        for name in tomllib.loads(path.read_text())["project"].get("entry-points", {}).get("plas.commands", {})
    }
    assert points == doors.PACKAGES


@pytest.mark.parametrize(("name", "package"), doors.PACKAGES.items())
def test_a_command_of_a_package_that_is_not_installed_says_which(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["plas", name, "--json"])
    monkeypatch.setattr("nas.__main__.installed", dict)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err
        == f"plas: expected an installed command, got {name!r}; pip install ./plugins/{package}\n"
    )


@pytest.mark.parametrize(
    "typed",
    [
        ("explain", "--model", LONG), ("watch", LONG), ("init", LONG), ("select", LONG), ("run", "--device", LONG), ("fit", LONG), ("fit", ""),
        ("measure", LONG), ("calibrate", LONG, "--device", "l4"), ("calibrate", "log", "--device", "l4", "--model", LONG),
    ],
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_refused(
    typed: tuple[str, ...], inside: Callable[..., Any], tmp_path: Path
) -> None:
    """5,000 characters, or none, where a name or a path may stand: a line, as of any other that is not there."""
    (tmp_path / "log").write_text("| model | pp512 (t/s) |\n|---|---|\n| a | 9 |\n")
    answer = inside(*typed)
    assert answer.code == 2, answer
    assert "expected" in answer.err
    assert "Traceback" not in answer.err
