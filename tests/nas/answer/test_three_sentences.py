"""The short form of the answer, a line of 80 columns: the last of a run's screen."""

import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from nas.answer import three_sentences as answering
from nas.answer.design_words import model_size, size_of
from nas.answer.first_screen import show
from nas.answer.outcome import Outcome
from nas.answer.three_sentences import answer_in_numbers, answer_of
from nas.problem.problem import Problem


def short_of(problem: Problem, place: int) -> tuple[str, str, str]:
    """The short form of one design of a space, its size with all that is before and within it, and without."""
    found = problem.evaluate(problem.space.genotypes([place]))
    chosen = problem.architectures(found.genotypes)
    return answer_of(problem, found, None).short, size_of(chosen), model_size(chosen)


@pytest.mark.parametrize("space", ["drafts", "edge2026", "fine", "heads", "huge", "paper"])
@pytest.mark.parametrize("precision", ["fp16", "int4_kv8"])
def test_the_largest_design_of_every_space_fits_80_columns_with_the_word_loss(
    space: str, precision: str, problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(space=space, precision=precision)
    for place in (0, problem.space.size // 2, problem.space.size - 1):
        short, _, alone = short_of(problem, place)
        assert len(f"Answer: {short}") <= 80
        assert f"{alone}: loss " in short
        assert " nats" in short


@pytest.mark.parametrize(
    ("metric", "form"),
    [("total_ms", r"[\d,.]+ ms"), ("decode_ms", r"decode [\d,.]+ ms")],
)
def test_the_total_is_a_time_without_a_name_and_another_one_has_its_own(
    metric: str, form: str, problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(space="drafts", objectives=["loss"], budgets={metric: 1e9})
    short, *_ = short_of(problem, problem.space.size - 1)
    assert re.fullmatch(rf"\d+ layers, width [\d,]+, dense: loss \d\.\d{{4}} nats, {form}", short), short


def test_what_does_not_fit_is_left_to_the_sentences(problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(space="edge2026")
    found = [short_of(problem, place) for place in range(0, problem.space.size, problem.space.size // 60)]
    assert any(size not in short for short, size, _ in found)
    for short, size, alone in found:
        assert short.startswith((f"{size}: loss ", f"{alone}: loss "))
        assert (size in short) == (len(short.replace(alone, size, 1)) + len("Answer: ") <= 80)


def test_a_time_of_many_digits_gives_way_and_the_loss_does_not(problem_of: Callable[..., Problem]) -> None:
    board = {"name": "slow", "fp16": "10 MFLOP/s", "int8": "10 MOP/s", "bandwidth": "10 MB/s", "memory": "64 GB"}
    problem = problem_of(space="huge", device=board)
    short, _, alone = short_of(problem, problem.space.size - 1)
    assert len(f"Answer: {short}") <= 80
    assert re.fullmatch(rf"{alone}: loss \d\.\d{{4}} nats", short), short


def test_screen_and_files_of_a_run_have_one_answer_that_is_made_once(
    concluded: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Mock(wraps=answer_of)
    monkeypatch.setattr(answering, "answer_of", made)
    for outcome in (concluded(40), concluded(60)):
        made.reset_mock()
        show(outcome, Path("run"))
        answer_in_numbers(outcome)
        assert made.call_count == 1
