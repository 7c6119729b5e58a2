"""`explain` and `select` fit two screens of 50 lines, 80 columns wide; `--verbose` prints everything."""

from collections.abc import Callable
from typing import Any

import pytest

from nas.document.document import Document, Section
from nas.terminal.tables import SCREENS, show

Inside = Callable[..., Any]
BOARD = ("--preset", "device", "--device", "raspberry_pi_5", "--law", "evidence")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("LINES", raising=False)


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_explain_fits_two_screens_and_verbose_has_every_operator(inside: Inside) -> None:
    inside("run", "--algo", "random", "--evaluations", "400", *BOARD, "--out", "r", "--no-plots")
    brief, whole = (inside("explain", "r", "--select", "best", *more).out for more in ((), ("--verbose",)))
    assert len(brief.splitlines()) <= SCREENS < len(whole.splitlines())
    assert " others" in brief
    assert " others" not in whole
    assert "What another LM head buys" in whole
    assert (
        inside("explain", "r", "--json", "--verbose").err
        == "--json: expected no --verbose with it, got both; drop one\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_select_fits_two_screens(inside: Inside) -> None:
    inside("run", "--algo", "random", "--evaluations", "2000", *BOARD, "--out", "r", "--no-plots")
    brief, whole = (inside("select", "r", *more).out for more in ((), ("--verbose",)))
    assert len(brief.splitlines()) <= SCREENS
    assert "nats from" in brief
    assert "Cheapest of each group" in whole


def test_what_has_no_room_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = tuple(f"line {number}" for number in range(60))
    sections = (
        Section("First", lines),
        Section("Second", lines, folded=True),
        Section("Third", ("last",), folded=True),
    )
    show(Document("", sections), verbose=False)
    said = capsys.readouterr().out
    assert "Second\n" not in said
    assert said.endswith("With --verbose: Second; Third\n")
    show(Document("", sections))
    assert "Second\n" in capsys.readouterr().out
