"""What is proposed in place of a name that nothing has."""

import inspect
from pathlib import Path

import pytest

from nas.export.families import EVERY
from nas.files.faults import LISTED, near_file, nearest, other_words, unknown
from nas.run import main as run
from nas.study.configuration import StudyConfig
from nas.terminal.doors import COMMANDS
from objectives.plugins import importable, packaged
from search_spaces.columns import FILE_COLUMNS, PRECISIONS

METRICS = sorted(importable("objectives.metrics"))


def options() -> set[str]:
    """The flags of `plas run`."""
    parameters = inspect.signature(run.function).parameters.values()  # type: ignore[attr-defined]
    return {f"--{parameter.name.replace('_', '-')}" for parameter in parameters}


def test_what_other_tools_call_it_is_a_name_that_exists() -> None:
    meant = {name for names in other_words("names").values() for name in names.split()}
    strategies, stacks = importable("nas.strategies"), {stack.replace("_", "-") for stack in EVERY}
    names = {
        *METRICS,
        *options(),
        *FILE_COLUMNS,
        *StudyConfig.model_fields,
        *COMMANDS,
        *PRECISIONS,
        *strategies,
        *stacks,
        *LISTED.values(),
    }
    assert meant - names <= {"optuna_gp", "--algos"}  # of an extra, and of compare
    assert not other_words("flags").keys() & options()


def test_a_word_stands_once() -> None:
    for kind in ("names", "flags"):
        theirs = [word for words in packaged("nas.files", "other_words")[kind].values() for word in str(words).split()]
        assert len(theirs) == len(set(theirs)), kind


@pytest.mark.parametrize(
    ("name", "choices", "proposed"),
    [
        ("time", METRICS, "did you mean total_ms, prefill_ms, decode_ms or tpot_ms?"),
        ("latency", METRICS, "did you mean total_ms?"),
        ("RAM", METRICS, "did you mean resident_gb?"),
        ("totl_ms", METRICS, "did you mean total_ms?"),
        ("--context", ["--input-text", "--input-tokens"], "did you mean --input-tokens?"),
        ("--context", ["--input-text"], "choose one"),
        ("--phases", ["--scores", "--seeds"], "choose one"),
        ("price", ["profiles", "precision"], "choose one"),
        ("depht", ["depth", "width"], "did you mean depth?"),
        ("qqqq", METRICS, "choose one"),
    ],
)
def test_a_wrong_name_is_met_with_the_right_one(name: str, choices: list[str], proposed: str) -> None:
    assert nearest(name, choices) == proposed


def test_of_many_names_the_list_that_holds_them_is_named() -> None:
    many = [f"metric_{i}" for i in range(25)]
    assert "(the 25 names of 'plas list metrics'), got 'qqqq'" in unknown("a metric", "qqqq", many)
    assert "metric_18, metric_19 and 13 more), got 'qqqq'" in unknown("a block", "qqqq", many)
    assert unknown("a block", "x", ["a", "b"]) == "expected a block (a, b), got 'x'; choose one"


def test_a_file_is_proposed_for_its_own_name_and_not_for_its_folder(tmp_path: Path) -> None:
    (tmp_path / "board.yaml").touch()
    assert near_file(tmp_path / "bord.yaml", "choose one") == f"did you mean {tmp_path / 'board.yaml'}?"
    assert near_file(tmp_path / "runs.csv", "choose one") == "choose one"
