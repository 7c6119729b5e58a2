"""What the core's tests ask of every strategy: in loops of one's own, without waiting, told numbers by any handling of budgets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core_tests import loaded

import nas

ALGO = "prior_guided"
loops, waiting, budgets = (
    loaded(f"nas/{name}.py") for name in ("api/test_optimizer", "search/test_asynchronous", "search/test_constraints")
)
small, study = loops.small, waiting.study


def test_it_proposes_what_a_run_does_and_goes_on_after_a_kill(small: nas.Study, tmp_path: Path) -> None:
    loops.test_it_proposes_what_a_run_does_and_goes_on_after_a_kill(ALGO, small, tmp_path)


def test_it_is_told_anything_in_any_order_and_resumed(small: nas.Study, tmp_path: Path) -> None:
    loops.test_one_that_need_not_wait_is_told_anything_in_any_order_and_resumed(ALGO, small, tmp_path)


@pytest.mark.slow
def test_killed_again_and_again_it_replays(study: Callable[..., Any], tmp_path: Path) -> None:
    waiting.test_killed_again_and_again_it_replays_and_pays_only_for_what_was_in_flight(ALGO, study, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("handling", budgets.HANDLINGS)
def test_it_is_told_the_same_numbers(handling: Any, studied: Callable[..., Any], tmp_path: Path) -> None:
    budgets.test_every_strategy_is_told_the_same_numbers(ALGO, handling, studied, tmp_path)
