"""YAML with 1.2 numbers and words, lines of values, and files that read back as they were written."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nas.errors import UsageError
from nas.files.yaml_source import dump, keys_of, parse, read


def value(text: str) -> Any:
    """A scalar as it is read."""
    return parse(text, "here")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        ("+12e03", 12000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-2.5", -2.5),
        ("6.02e23", 6.02e23),
        ("85", 85),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("007", 7),
        ("010", 10),
        ("08", 8),
        ("-09", -9),
        ("190:20:30", "190:20:30"),
        ("1:30", "1:30"),
        ("0x1F", 31),
        ("0o14", 12),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("1_000", "1_000"),
        ("12,5", "12,5"),
    ],
)
def test_numbers_are_those_of_yaml_1_2(text: str, expected: Any) -> None:
    got = value(text)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    "word", ["no", "No", "NO", "yes", "on", "off", "y", "n", "2024-01-31", "<<", "=", "none", "nulls", "1e", "e5", "."]
)
def test_words_of_yaml_1_1_are_text(word: str) -> None:
    assert value(word) == word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("a:", {"a": None}),
        ("'true'", "true"),
        ("'1'", "1"),
    ],
)
def test_true_false_and_null(text: str, expected: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 2\na: 3\n", "{a: 1, b: 2, a: 3}", "x:\n  a: 1\n  b: 2\n  a: 3\n", "- {a: 1, a: 2}"]
)
def test_a_key_given_twice_is_refused_with_its_line(text: str) -> None:
    line = max(i for i, part in enumerate(text.splitlines(), 1) if "a:" in part)
    with pytest.raises(UsageError, match=f"^here:{line}: a: expected each key once, got it twice"):
        parse(text, "here")


def test_every_value_knows_its_line() -> None:
    text = "# a comment\nname: x\n\nspace:\n  axes:\n    depth: [4,\n      8]\n    width:\n    - 768\n    - from: 2\n      to: 3\n"
    _, origins = parse(text, "s.yaml")
    lines = {".".join(map(str, path)): origin for path, origin in origins.items()}
    assert {key: lines[key] for key in lines if key} == {
        "name": "s.yaml:2",
        "space": "s.yaml:4",
        "space.axes": "s.yaml:5",
        "space.axes.depth": "s.yaml:6",
        "space.axes.depth.0": "s.yaml:6",
        "space.axes.depth.1": "s.yaml:7",
        "space.axes.width": "s.yaml:8",
        "space.axes.width.0": "s.yaml:9",
        "space.axes.width.1": "s.yaml:10",
        "space.axes.width.1.from": "s.yaml:10",
        "space.axes.width.1.to": "s.yaml:11",
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1,\nb: 2", 2),
        ("a: 'open\nb", 2),
        ("a: 1\n\tb: 2", 2),
        ("a: &x [*x]", 1),
        ("a: *nothing", 1),
        ("--- 1\n--- 2", 2),
        ("a: b: c", 1),
        ("!!python/object:os.system x", 1),
    ],
)
def test_what_is_not_yaml_is_one_line_with_its_place(text: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "here")
    assert str(caught.value).startswith(("here:", f"here:{line}:"))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "text", ["!!int abc", "a: !!float inf.0", "!!bool maybe", "!!timestamp x", "a: !!binary x", "\x00", "a: \x07"]
)
def test_impossible_tags_and_characters_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text, "here")


def test_deep_nesting_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        parse("[" * 2000 + "]" * 2000, "here")


def test_unreadable_files_are_usage_errors(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    for path, said in (
        (tmp_path / "none.yaml", "No such file"),
        (tmp_path, "a folder"),
        (tmp_path / "latin.yaml", "not UTF-8"),
    ):
        with pytest.raises(UsageError, match=said):
            read(path)


def test_json_is_yaml() -> None:
    assert value('{"a": [1, 2.5, "x", null, true], "b": {"c": 1e5}}') == {
        "a": [1, 2.5, "x", None, True],
        "b": {"c": 1e5},
    }


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(1 - 2**63, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
WORDS = st.sampled_from(
    [
        "no",
        "1e5",
        "null",
        "~",
        "",
        "true",
        "0x1F",
        "010",
        "1:30",
        "=",
        "<<",
        "- a",
        "a: b",
        "#x",
        " x ",
        "1.",
        ".inf",
        "2024-01-01",
        "inf.0",
    ]
)
CONTENT = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | WORDS, inner, max_size=4),
    max_leaves=20,
)


@given(CONTENT)
@example({"a": 1e22, "b": -0.0, "c": 5e-324, "d": 2.5, "e": 1e16, "f": 3.0})
@example("x" * 300 + " " + "y" * 300)
@example({"\x85": "a\u2028b", "line\u2029": ["\x85", "two\nlines\x85"]})
def test_what_is_written_reads_back_the_same(content: Any) -> None:
    assert repr(value(dump(content))) == repr(content)


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_infinities_read_back(number: float) -> None:
    assert value(dump({"a": number})) == {"a": number}


def test_keys_keep_their_order() -> None:
    assert list(value(dump({"z": 1, "a": 2, "m": 3}))) == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "an empty file"),
        ("# nothing\n", "an empty file"),
        ("- 1\n", "a list"),
        ("word\n", "a text"),
        ("3\n", "a number"),
    ],
)
def test_a_file_without_keys_says_what_it_holds(text: str, got: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    content, _ = read(tmp_path / "x.yaml")
    with pytest.raises(UsageError) as caught:
        keys_of(content, tmp_path / "x.yaml", "see docs")
    assert str(caught.value) == f"{tmp_path / 'x.yaml'}:1: expected keys and values, got {got}; see docs"
