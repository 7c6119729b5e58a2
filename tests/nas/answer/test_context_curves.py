"""Time and memory along the context on a run's page: where the study is about it, as a study of that prompt has them."""

from collections.abc import Callable
from typing import Any

import pytest

from nas.answer.outcome import Outcome
from nas.answer.plot_data import UNSEEN, cells, curves
from nas.pages.run_page import run_page
from nas.problem.steps import CONTEXTS

Concluded = Callable[..., Outcome]
LONG: dict[str, Any] = {
    "input_tokens": 8192, "vocabulary": 1000, "baselines": ["smollm2_360m"],
    "applications": {"a <b> $x$": {"total_ms": 1e9}, "quick": {"total_ms": 400}},
}  # fmt: skip


@pytest.fixture
def outcome(concluded: Concluded) -> Outcome:
    return concluded(60, **LONG)


def test_each_design_once_then_the_models_beside_it_as_a_study_of_that_prompt_has_them(
    outcome: Outcome, studied: Callable[..., Any]
) -> None:
    found = curves(outcome)
    assert [curve.label for curve in found] == ["your budgets, a <b> $x$", "quick", "SmolLM2-360M"]
    assert [curve.baseline for curve in found] == [False, False, True]
    own = next(pick.answer for pick in outcome.picks if pick.question.label == "your budgets")
    assert own is not None
    for row, tokens in zip(found[0].rows, CONTEXTS, strict=True):
        there = studied(**LONG | {"input_tokens": tokens, "algo": "random"}).problem.evaluate(own.genotypes)
        assert row.tokens == tokens
        assert [row.prefill_ms, row.tpot_ms, row.resident_gb] == [
            there.metrics[name][0] for name in ("prefill_ms", "tpot_ms", "resident_gb")
        ]


def test_the_page_shows_the_figures_and_what_the_law_does_not_see(outcome: Outcome) -> None:
    page = run_page(outcome, "run", {}, {})
    assert "<h2>Along the context</h2>" in page
    assert UNSEEN in page
    assert "your budgets, a &lt;b&gt; $x$" in page
    assert "<b> $x$" not in page
    for curve in curves(outcome):
        for row in curve.rows:
            assert all(f">{cell}</td>" in page for cell in cells(row))
    assert page == run_page(outcome, "run", {}, {})


@pytest.mark.parametrize(
    "study", [{"input_tokens": 8191}, {**LONG, "budgets": {"total_ms": 1e-6}}], ids=["short", "infeasible"]
)
def test_where_contexts_are_not_the_question_or_nothing_answers_it_nothing_is_shown(
    study: dict[str, Any], concluded: Concluded
) -> None:
    outcome = concluded(20, **study)
    assert curves(outcome) == []
    assert "Along the context" not in run_page(outcome, "run", {}, {})


def test_a_choice_between_kinds_of_layers_is_one_of_contexts(concluded: Concluded) -> None:
    space = {
        "axes": {
            "depth": [4, 8], "layers": ["full", {"period": 2, "local": 128}], "width": [256], "expert_size": [512, 1024], "n_kv_heads": [1]
        },
        "conditions": {"min_full_layers": 1},
    }  # fmt: skip
    found = curves(concluded(8, space=space, baselines=[]))
    assert [curve.baseline for curve in found] == [False] * len(found)
    assert found
