"""Tables of a comparison as read: every figure has a unit, every column is said in words once."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.compare.reference import exact_reference
from nas.compare.result import StudyResult
from nas.compare.tables import distance, overhead_table, regret_column
from nas.problem.objective import Objective, built_in
from tests.nas.compare.test_ranking import study_result

FIGURE = re.compile(
    r"\d[\d.,e-]* %( \[[^\]]*%\]| to [\d.]+ %)?|-|better|worse|no difference shown|nothing (fits|found)"
)
BARE = ("strategy", "runs", "ended")  # columns of words and of a count


def of(result: StudyResult, objective: Objective) -> StudyResult:
    """A study of another objective."""
    reference = exact_reference((objective,), np.array([[1.0], [1.0]]), np.arange(2))
    return replace(result, objectives=(objective,), reference=reference)


def test_every_figure_of_the_page_has_its_unit(small_comparison: Path) -> None:
    said = (small_comparison / "report.md").read_text()
    tables = re.findall(r"^\| strategy .*\n(?:\|.*\n)+", said, flags=re.MULTILINE)
    assert len(tables) == 2 * 3
    for table in tables:
        header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
        for row in rows:
            for name, cell in zip(header, row, strict=True):
                expected = name.endswith((")", "%")) or name in BARE
                assert expected or FIGURE.fullmatch(cell.removesuffix(" *").removesuffix(" =")), (name, cell)
    assert said.count("worst regret (nats)") == 2
    for word in ("Gap: the part", "share found: ", "IGD+ and epsilon: ", "worst regret: "):
        assert said.count(word) == 1


@pytest.mark.slow
def test_columns_are_said_once_on_the_screen(compare: Callable[..., Any], comparison_file: Callable[..., str]) -> None:
    answer = compare("--config", comparison_file(), "--out", "made", "--no-plots")
    assert answer.out.count("Gap: the part of the hypervolume of the exact frontier") == 1
    assert re.search(r"IGD\+ +epsilon +worst regret \(nats\)", answer.out)
    assert "a probability that one's run is ahead (A12) of" in answer.out or "cannot show a difference" in answer.out


def test_a_regret_has_the_unit_of_what_is_picked() -> None:
    result = study_result(0, {"a": [0.1, 0.1, 0.1]}, {"a": 200})
    assert regret_column(of(result, built_in("decode_ms"))) == "worst regret (ms)"
    assert regret_column(of(result, Objective("mine"))) == "worst regret"


def test_a_distance_is_a_share_of_the_range() -> None:
    assert [distance(value) for value in (0.0049, 0.0, np.inf)] == ["0.49 %", "0 %", "nothing found"]


def test_times_have_their_unit_over_their_column() -> None:
    result = study_result(0, {"a": [0.1, 0.1, 0.1]}, {"a": 200})
    assert overhead_table(result).header[1:] == (
        "own time per distinct evaluation (ms)", "objectives' (ms)", "whole run (s)",
    )  # fmt: skip
