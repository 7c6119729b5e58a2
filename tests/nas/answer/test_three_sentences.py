"""The answer of a run is made once for its screen and its files."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from nas.answer import three_sentences as answering
from nas.answer.first_screen import show
from nas.answer.outcome import Outcome
from nas.answer.three_sentences import answer_in_numbers, answer_of


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
