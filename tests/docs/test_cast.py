"""The animated terminal: a recording of the tour as it is typed now, and the picture that it is drawn as."""

import re
from xml.etree import ElementTree

import pytest

from nas.commands.tour import STEPS
from tests.docs import cast

MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def events() -> list[cast.Event]:
    """The recording."""
    return cast.events_of(cast.CAST.read_text(encoding="utf-8"))


def test_the_recording_is_of_the_tour_as_it_is(events: list[cast.Event]) -> None:
    written = re.sub(r"\x1b\[[0-9;]*m", "", "".join(text for _, text in events))
    words = " ".join(written.replace("\\\r\n", " ").split())
    for number, step in enumerate(STEPS, 1):
        command = step.command.replace("plas open", "plas open --print")
        assert f"{number} of {len(STEPS)}. {step.says} $ {command}" in words, (
            f"step {number} is typed otherwise now; record again: python -m tests.docs.cast"
        )


def test_the_recording_lasts_forty_seconds_and_names_no_machine(events: list[cast.Event]) -> None:
    times = [at for at, _ in events]
    assert times == sorted(times)
    assert times[-1] + cast.LAST_S == pytest.approx(cast.LENGTH_S)
    assert set(re.findall(r"(?<![\w.])/\w+(?=/)", "".join(text for _, text in events))) == {"/home"}


def test_the_picture_is_drawn_from_the_recording() -> None:
    assert cast.PICTURE.read_text(encoding="utf-8") == cast.drawn(cast.CAST.read_text(encoding="utf-8")), (
        "draw it again: python -m tests.docs.cast --draw"
    )


def test_the_picture_is_small_and_needs_nothing() -> None:
    text = cast.PICTURE.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"<script|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text)
    assert set(re.findall(r'href="#(r\d+)"', text)) == set(re.findall(r'id="(r\d+)"', text))


def test_a_screen_wraps_scrolls_and_rewrites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast, "ROWS", 3)
    monkeypatch.setattr(cast, "COLUMNS", 4)
    made = cast.film(
        [(0.0, "one\r\n"), (1.0, "\r\x1b[2K1 %"), (2.0, "\r\x1b[2K2 %\r\n"), (3.0, "\x1b[1mlonger\x1b[0m\r\n")]
    )
    lines = {number: re.sub(r"<.*?>", "", drawn) for drawn, number in made.rows.items()}
    shown = [[lines[row] for row in rows] for _, rows in made.frames]
    assert shown == [["one"], ["one", "1 %"], ["one", "2 %"], ["2 %", "long", "er"]]
    assert made.length_s == 3.0 + cast.LAST_S


def test_a_burst_is_one_frame() -> None:
    made = cast.film([(0.0, "a"), (0.01, "b"), (0.02, "c")])
    assert [len(made.frames), made.frames[0][0]] == [1, 0.02]
