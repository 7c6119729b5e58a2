"""Files from anywhere: names that a terminal or a spreadsheet would obey, content without end, stores that compute."""

import csv
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from nas.answer.past_run import recorded_run
from nas.errors import PlasError, UsageError
from nas.files import yaml_source
from nas.files.figures import save, styled
from nas.files.tables import csv_text
from nas.record.candidates import read_candidates, write_candidates
from nas.record.database import meta_digest
from nas.record.store import FILE
from nas.terminal.console import harmless, shortened
from objectives.display_text import cell, escaped, read_cell
from search_spaces.architectures import Architectures, architectures_of, one

Inside = Callable[..., Any]
DEVICE = "name: {name}\nfp16: 10 TFLOP/s\nint8: 20 TOP/s\nbandwidth: 100 GB/s\nmemory: 64 GB\n"
ROW = {"depth": "8", "width": "768", "n_kv_heads": "2", "expert_size": "1536"}


@pytest.mark.parametrize("name", [r'"\e[31mred"', r'"\x9b31m"', r'"two\nlines"', r'"\u202Eback"', "x" * 900])
def test_a_name_that_is_no_plain_text_is_refused_with_its_line(name: str, inside: Inside) -> None:
    Path("device.yaml").write_text(DEVICE.format(name=name))
    Path("study.yaml").write_text(f"applications:\n  {name}: {{total_ms: 50}}\nbaselines:\n- {{name: {name}}}\n")
    for line, place in (
        (("--device", "device.yaml"), "device.yaml:1: name: "),
        (("--config", "study.yaml"), "study.yaml:"),
    ):
        began = time.process_time()
        answer = inside("run", "--algo", "random", "--evaluations", 5, *line, "--out", "run")
        assert answer.code == 2
        assert answer.err.startswith(place)
        assert "expected a name of" in answer.err
        assert not any(character in answer.out + answer.err for character in "\x1b\x9b\u202e")
        assert max(map(len, answer.err.splitlines())) < 1_100
        assert time.process_time() - began < 10


def test_a_name_of_300_000_characters_is_refused_at_once(inside: Inside) -> None:
    Path("device.yaml").write_text(DEVICE.format(name="x" * 300_000))
    began = time.process_time()
    answer = inside("run", "--algo", "random", "--device", "device.yaml", "--out", "run")
    assert answer.code == 2
    assert "expected a name of at most 200 characters, got 300,000" in answer.err
    assert time.process_time() - began < 10


def test_whatever_is_printed_is_harmless_and_json_stays_json() -> None:
    text = "".join(map(chr, range(0x300))) + "\u2028\u202e\ud800"
    shown = harmless(text)
    assert "\n" in shown
    assert all(character == "\n" or character == escaped(character) for character in shown)
    content = {"name": "\x9b31m \x7f \u202e"}
    assert json.loads(harmless(json.dumps(content, ensure_ascii=False))) == content


def test_a_message_is_cut_inside_and_keeps_its_end() -> None:
    said = shortened("study.yaml:1: name: expected x, got " + "y" * 100_000 + "; correct it")
    assert len(said) < 1_000
    assert said.startswith("study.yaml:1: name: ")
    assert said.endswith("; correct it")
    assert shortened("\n".join("abc" for _ in range(5_000))).count("\n") == 100


def test_values_of_any_length_are_not_echoed_whole(inside: Inside) -> None:
    long = "a" * 50_000
    for line in (
        ("run", "--set", f"{long}=1"),
        ("run", "--objectives", long),
        ("run", "--budget", f"{long}=3"),
        ("explain", "--architecture", long),
        ("select", long),
        ("list", "--schema", long),
    ):
        answer = inside(*line)
        assert answer.code == 2, line[:2]
        assert len(answer.err) < 10_000, line[:2]


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x", "＝1"]


def test_no_cell_is_a_formula_and_ids_come_back(tmp_path: Path) -> None:
    names = [*FORMULAS[:4], *FORMULAS[6:], "plain", "a=b", "'quoted'", "-5", "-1e-3"]
    columns = {"id": names, **{key: [value] * len(names) for key, value in ROW.items()}}
    write_candidates(tmp_path / "x.csv", columns)
    with (tmp_path / "x.csv").open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert not [text for text in cells if text[0] in "=+@＝\t\r"]
    assert [text for text in cells if text[0] == "-"] == ["-5", "-1e-3"]
    assert read_candidates(tmp_path / "x.csv")[1] == names


@given(st.one_of(st.text(max_size=5), st.sampled_from(FORMULAS)))
def test_a_cell_comes_back_and_begins_no_formula(text: str) -> None:
    written = cell(text)
    assert read_cell(written) == text
    assert written[:1] not in tuple("=+@\t\r")
    assert csv_text({"a": [text]}) == csv_text({"a": [text]})


def test_a_run_folder_and_labels_named_like_formulas_give_no_formula(inside: Inside, finished: Path) -> None:
    more = ("--set", "applications={'=1+1': {total_ms: 80}, '@x': {total_ms: 70}}")
    assert inside("run", "--config", finished, *more, "--out", "=1+1", "--quiet").code == 0
    assert inside("select", "=1+1", "--out", "candidates.csv").code == 0
    for name in ("candidates.csv", "=1+1/picks.csv"):
        with Path(name).open(newline="") as file:
            assert not [text for row in csv.reader(file) for text in row if text[:1] in tuple("=+@")]
    assert read_candidates(Path("candidates.csv"))[1][0].startswith("=1+1-")


@pytest.mark.parametrize("name", ["a\x1b[31mb", "x" * 250])
def test_a_run_folder_of_any_name_gives_ids_that_are_read_back(name: str, inside: Inside, copied: Path) -> None:
    copied.rename(name)
    assert inside("select", name, "--out", "x.csv").code == 0
    assert "\x1b" not in Path("x.csv").read_text()
    ids = read_candidates(Path("x.csv"))[1]
    assert len(set(ids)) == len(ids) > 1


@pytest.mark.parametrize("rows", [2, 5_000])
def test_a_quote_that_is_never_closed_is_named(rows: int, inside: Inside, tmp_path: Path) -> None:
    text = (
        'id,depth,width,n_kv_heads,expert_size,run,loss,model\n"a,8,768,2,1536,1,3,x\n'
        + "b,8,768,2,1536,1,3,x\n" * rows
    )
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "measured.csv").write_text(text.replace("id,", "metric,"))
    for line in (
        ("export", "x.csv", "--out", "new"),
        ("run", "--set", "seed_from=x.csv", "--out", "new"),
        ("fit", "x.csv"),
        ("calibrate", "measured.csv", "--device", "h200", "--out", "new"),
    ):
        answer = inside(*line)
        assert answer.code == 2
        assert "a quote that is never closed" in answer.err
        assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_many_candidates_are_read_together_and_the_first_fault_is_named(tmp_path: Path) -> None:
    mixed = [ROW | {"depth": str(2 + i % 30)} | ({"tied": "no"} if i % 3 else {}) for i in range(3_000)]
    expected = Architectures.concatenate([one(row) for row in mixed])
    assert {name: column.tolist() for name, column in architectures_of(mixed).columns().items()} == {
        name: column.tolist() for name, column in expected.columns().items()
    }
    for wrong in (2_999, 1_234):
        mixed[wrong] = ROW | {"depth": "x2"}
        with pytest.raises(ValueError, match=f"^row {wrong + 1}: depth: expected a positive integer, got x2"):
            architectures_of(mixed)


@pytest.mark.slow
def test_a_table_of_45_megabytes_is_answered_in_seconds(tmp_path: Path) -> None:
    line = ",".join(["a" * 150, *ROW.values()])
    text = "\n".join([",".join(["id", *ROW]), *[line] * (45_000_000 // len(line)), "z,x2,768,2,1536"])
    (tmp_path / "x.csv").write_text(text)
    began = time.process_time()
    with pytest.raises(UsageError, match="depth: expected a positive integer, got x2"):
        read_candidates(tmp_path / "x.csv")
    assert time.process_time() - began < 15


def test_numbers_beyond_every_float_are_named(tmp_path: Path, inside: Inside) -> None:
    huge = "9" * 400
    (tmp_path / "x.jsonl").write_text(json.dumps(ROW).replace('"8"', huge) + "\n")
    (tmp_path / "x.yaml").write_text(f"batch: {huge}\n")
    (tmp_path / "y.yaml").write_text(f"budgets: {{total_ms: {'9' * 300}}}\nbatch: {'9' * 30}\n")
    for line in (("export", "x.jsonl", "--out", "e"), ("run", "--config", "x.yaml"), ("run", "--set", f"seed={huge}")):
        answer = inside(*line)
        assert answer.code == 2
        assert "an integer of 400 digits" in answer.err
    assert "y.yaml:2: batch: expected" in inside("run", "--config", "y.yaml").err


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(BOMB, "at most 1,000,000 values, aliases counted", marks=pytest.mark.slow),
        ("a: &a [1, *a]\n", "an anchor inside itself"),
        ("[" * 3_000, "at most 50 levels"),
        ("[" * 300_000, "at most 50 levels"),
        ("- " * 300_000, "at most 50 levels"),
        ("a: [" + "1," * 5_000_000, "more than 8 MB"),
        ("? [a, b]\n: 1\n", "a word as key, got a list or mapping"),
        ("? {a: b}\n: 1\n", "a word as key, got a list or mapping"),
    ],
)
def test_yaml_without_end_is_refused_in_seconds(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(text)
    began = time.process_time()
    with pytest.raises(UsageError, match=said):
        yaml_source.read(tmp_path / "study.yaml")
    assert time.process_time() - began < 15


@pytest.mark.parametrize("key", ["float", "int", "str", "space.float", "space.axes[0]", "device.modes[0].x"])
def test_a_key_spelled_like_a_type_is_an_unknown_key(key: str, inside: Inside) -> None:
    answer = inside("run", "--set", f"{key}=1")
    assert answer.code == 2
    assert f"{key}: unknown key; " in answer.err


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n"
CODE = {
    "a view as meta": ["DROP TABLE meta", f"CREATE VIEW meta AS {ENDLESS.format(columns='i AS name, i AS value')}"],
    "a view as rows": ["DROP TABLE evaluations", f"CREATE VIEW evaluations AS {ENDLESS.format(columns='i AS key')}"],
    "a computed column": ["ALTER TABLE meta ADD COLUMN more AS (hex(zeroblob(400000000)))"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON evaluations BEGIN DELETE FROM evaluations; END"],
}


@pytest.mark.parametrize("which", CODE)
def test_a_store_that_computes_is_refused_at_once(which: str, copied: Path, inside: Inside) -> None:
    with closing(sqlite3.connect(copied / FILE)) as store:
        for statement in CODE[which]:
            store.execute(statement)
        store.commit()
    before = (copied / FILE).read_bytes()
    began = time.process_time()
    for line in (("select", "run"), ("explain", "run", "--index", 0), ("run", "--resume", "run", "--evaluations", 70)):
        answer = inside(*line)
        assert answer.code == 1
        assert "expected plain tables, got " in answer.err
    assert time.process_time() - began < 10
    assert (copied / FILE).read_bytes() == before


def changed(folder: Path, name: str, value: Any) -> None:
    """A store that says something else of itself, under a digest that fits."""
    with closing(sqlite3.connect(folder / FILE)) as store:
        written = dict(store.execute("SELECT name, value FROM meta"))
        written.pop("digest")
        if name in written:
            written[name] = json.dumps(value)
        else:
            written["resolved"] = json.dumps(json.loads(written["resolved"]) | {name: value})
        for key, text in (*written.items(), ("digest", json.dumps(meta_digest(written)))):
            store.execute("UPDATE meta SET value = ? WHERE name = ?", (text, key))
        store.commit()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resolved", {}),
        ("resolved", None),
        ("metrics", {}),
        ("metrics", ["loss"]),
        ("metrics", ["loss", "loss"]),
        ("log_scale", {"loss": "no"}),
        ("log_scale", {}),
        ("objectives", ["nothing"]),
        ("objectives", []),
        ("budgets", {"nothing": 3}),
        ("budgets", {"total_ms": "fast"}),
        ("budgets", {"total_ms": float("nan")}),
        ("budgets", []),
        ("space", {}),
        ("space", "paper"),
        ("law", {"name": "x"}),
        ("device", None),
        ("vocabulary", "many"),
        ("algo", 5),
    ],
)
def test_a_store_that_describes_no_study_is_refused(name: str, value: Any, copied: Path, inside: Inside) -> None:
    changed(copied, name, value)
    for line in (("select", "run"), ("explain", "run", "--index", 0), ("run", "--resume", "run")):
        answer = inside(*line)
        assert answer.code == 1, answer
        assert "describes no study" in answer.err
        assert len(answer.err.splitlines()) == 1


def test_a_store_of_another_space_is_refused(copied: Path, inside: Inside) -> None:
    run = recorded_run(copied)
    axes = run.run.resolved["space"]["axes"]
    changed(copied, "space", run.run.resolved["space"] | {"axes": axes | {"depth": [4]}})
    answer = inside("select", "run")
    assert answer.code == 1
    assert "expected architectures of its space, got others" in answer.err


def test_pictures_are_drawn_over_the_defaults(tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "savefig.dpi": 5000.0, "font.size": 3.0}):
        with styled({"font.size": 9}):
            figure = Figure(figsize=(2, 2))
            figure.add_subplot().set_title("x_y")
            save(figure, tmp_path / "a.b", dpi=50)
        assert matplotlib.rcParams["text.usetex"] is True
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b.png", "a.b.svg"]


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PlasError, match="cannot be written"), styled({}):
        save(Figure(), tmp_path / "none" / "x")


def test_names_with_dollars_are_no_formulas_in_pictures(inside: Inside, finished: Path, tmp_path: Path) -> None:
    from nas.files.figures import plain

    with styled({}):
        figure = Figure()
        figure.add_subplot().set_title(plain("a $x^ b$ $"))
        save(figure, tmp_path / "x")
    assert "a $x^ b$ $" in (tmp_path / "x.svg").read_text() or (tmp_path / "x.svg").stat().st_size > 0


def test_a_budget_beyond_everything_is_refused_by_the_theory(inside: Inside) -> None:
    for budget in ("decode_ms=1e300", "total_ms=1e16"):
        answer = inside("theory", "--budget", budget)
        assert answer.code == 2
        assert "expected a limit of at most 1e+15, got 1e+" in answer.err
