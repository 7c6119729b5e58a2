"""Exact answers in formats whose tensors have several types are those of brute force, beside other formats and alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.exact.expected_regret import least_expected_regret
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from search_spaces.formats import FORMATS
from tests.nas.exact.test_expected_regret import BY_PARTS, solved_by_parts, table_agrees
from tests.nas.exact.test_random_problems import by_parts, frontier_agrees

Made = Callable[..., Problem]
WRITTEN = FORMATS[FORMATS.index("w4a16") :]
STUDY: dict[str, Any] = {"vocabulary": 32_000, "baselines": [], "applications": {}, "default_budget": "none"}


@pytest.mark.slow
@pytest.mark.parametrize("precision", WRITTEN)
def test_exact_answers_in_a_format(precision: str, problem_of: Made) -> None:
    problem = problem_of(
        **STUDY,
        tied=False,
        precision=precision,
        objectives=["loss", "total_ms", "resident_gb"],
        budgets={"memory_gb": 1},
    )
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.slow
def test_exact_answers_among_formats(problem_of: Made) -> None:
    problem = problem_of(**STUDY, precisions=["fp16", "int4", *WRITTEN], budgets={"resident_gb": 1})
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


ROUNDED = ["fp16", "int8", "w4a16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0"]


@pytest.mark.parametrize("law", ["hw_codesign", "conditional", "evidence"])
def test_exact_answers_among_formats_that_cost_what_rounding_does(law: str, problem_of: Made) -> None:
    study = {**STUDY, "precisions": ROUNDED, "precision_law": "post_training", "law": law}
    problem = problem_of(**study, budgets={"memory_gb": 1})
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    assert {name for name, _ in problem.architectures(whole.genotypes[whole.feasible]).in_formats()} == set(ROUNDED)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [PickRule(None), PickRule(Budget("memory_gb", 0.4))])
def test_the_least_expected_regret_holds_the_draws_of_formats(rule: PickRule, problem_of: Made) -> None:
    study = {**STUDY, "precisions": ["fp16", "q8_0", "q4_k_m"], "precision_law": "post_training", "law": "evidence"}
    problem = problem_of(**study)
    with solved_by_parts(small_steps=True):
        found = least_expected_regret(problem, problem.scenario.law, rule)
    assert found is not None
    assert found.proven
    table_agrees(problem, problem.scenario.law, rule, found, BY_PARTS)
