"""Sentences and tables on screens of any width: nothing wider than the screen, nothing lost, nothing obeyed."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nas.terminal.console import say, sentence, shortened
from nas.terminal.screen_text import Styled, cells, columns, cut, is_coloured, wrapped, write_line
from nas.terminal.tables import fitted, laid_out

WORDS = st.lists(st.text("abcß中é·", min_size=1, max_size=12), min_size=1, max_size=30)


@given(WORDS, st.integers(0, 6), st.integers(30, 90))
def test_a_sentence_keeps_its_words_and_its_width(words: list[str], indent: int, width: int) -> None:
    text = " " * indent + " ".join(words)
    lines = ["".join(line) for line in wrapped([text], width)]
    assert " ".join(lines).split() == words
    assert max(map(cells, lines)) <= width
    assert all(line.startswith(" " * (indent + 2)) for line in lines[1:])


def test_a_long_word_is_never_broken() -> None:
    path = "runs/" + "x" * 100
    assert ["".join(line).strip() for line in wrapped([f"Files: {path} here"], 40)] == ["Files:", path, "here"]


def test_styles_stay_with_their_words_over_lines() -> None:
    lines = list(wrapped(["plain ", Styled("bold words that wrap", "bold"), " plain"], 14))
    styled = [part for line in lines for part in line if isinstance(part, Styled)]
    assert " ".join(styled).split() == ["bold", "words", "that", "wrap"]
    assert {part.style for part in styled} == {"bold"}


@given(
    st.lists(st.lists(st.text("ab1. ", max_size=25), min_size=4, max_size=4), min_size=1, max_size=5),
    st.integers(40, 120),
)
def test_a_table_is_no_wider_than_the_screen_and_keeps_its_words(rows: list[list[str]], width: int) -> None:
    header = ["name", "first column", "second", "architecture"]
    lines = ["".join(line) for line in laid_out([header, *rows], width, 1, ("architecture",))]
    assert max(map(cells, lines)) <= width
    shown = sorted(" ".join(lines).split())
    for row in (header[1:3], *(row[1:3] for row in rows)):
        for word in " ".join(row).split():
            assert word in shown


def test_what_has_no_room_stands_below_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    header, row = ["name", "loss", "params", "architecture"], ["one", "2.9", "1 G", "l 4, " * 10]
    for width, expected in ((120, 2), (60, 3)):
        monkeypatch.setenv("COLUMNS", str(width))
        assert len(fitted(header, [row])[0]) == expected


def test_spare_columns_are_left_out_in_order_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    header, rows = ["name", "a" * 16, "b" * 16, "c" * 16], [["one", "1", "2", "3"]]
    for width, expected in ((60, []), (59, ["b" * 16]), (41, ["b" * 16, "a" * 16])):
        monkeypatch.setenv("COLUMNS", str(width))
        assert fitted(header, rows, spare=("b" * 16, "a" * 16))[1] == expected


def test_numbers_stand_to_the_right_and_text_to_the_left() -> None:
    numbers = ["".join(line) for line in laid_out([["name", "ms"], ["a", "5"], ["b", "100"]], 80, 1, ())]
    assert numbers == ["  name   ms", "  a       5", "  b     100"]
    texts = ["".join(line) for line in laid_out([["name", "why"], ["a", "it"], ["b", "because"]], 80, 1, ())]
    assert texts == ["  name  why", "  a     it", "  b     because"]


def test_neither_codes_nor_markup_of_a_stranger_are_obeyed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    say(Styled("[red]name[/red] \x1b]0;title\x07\x9b31m :smile:", "bold"), " [link=http://x]y[/link]")
    said = capsys.readouterr().out
    assert "[red]name[/red]" in said
    assert "[link=http://x]y[/link]" in said
    assert ":smile:" in said
    assert "\x1b]" not in said
    assert "\\u001b]0;title\\u0007\\u009b31m" in said


def test_a_stranger_cannot_write_over_other_lines() -> None:
    header, row = ["name\rx", "b\nc"], ["\x1b[2K", "\u202eabc"]
    said = "".join(part for line in fitted(header, [row])[0] for part in line)
    assert not any(character in said for character in "\r\n\x1b\u202e")
    assert "\n" not in "".join(part for line in sentence("one", "two\nthree") for part in line)


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_where_colours_are(
    environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    assert is_coloured(stream) == expected


def test_without_colours_the_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    write_line(stream, ["a ", Styled("b", "bold red", "file:///x"), " c"])
    assert stream.getvalue() == "a b c\n"


@pytest.mark.parametrize(("given_width", "expected"), [("80", 80), ("5", 40), ("0", 120), ("x", 120), ("", 120)])
def test_the_width_is_what_was_set_else_120_in_a_pipe(
    given_width: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", given_width)
    assert columns(io.StringIO()) == expected


def test_a_cut_line_says_so() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cells(cut("中文字符", 5)) <= 5


def test_a_stream_without_characters_gets_plain_ones_before_lines_are_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setenv("COLUMNS", "40")
    lines = ["".join(line) for line in sentence(" ".join(["a…b"] * 20))]
    assert max(map(len, lines)) <= 40
    assert " ".join(lines).split() == ["a...b"] * 20
    assert shortened("x" * 2000).count("…") == 1


def test_columns_below_a_row_stand_on_lines_of_their_own_where_they_are_several_words() -> None:
    header = ["within", "loss", "memory", "active", "architecture", "architecture in convention"]
    row = ["your budgets", "2.9", "52.8 GB", "4.7 G", "28 layers, width 3,072", "32 layers, width 3,072"]
    below = ("architecture", "architecture in convention", "memory", "active")
    lines = ["".join(line) for line in laid_out([header, row], 26, 1, below)]
    assert lines[2:] == [
        "    28 layers, width 3,072",
        "    architecture in",
        "      convention 32",
        "      layers, width 3,072",
        "    memory 52.8 GB, active",
        "      4.7 G",
    ]
