"""Exact answers in formats whose tensors have several types are those of brute force, beside other formats and alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.problem.problem import Problem
from search_spaces.formats import FORMATS
from tests.nas.exact.test_random_problems import by_parts, frontier_agrees

Made = Callable[..., Problem]
WRITTEN = FORMATS[FORMATS.index("w4a16") :]
STUDY: dict[str, Any] = {"vocabulary": 32_000, "baselines": [], "applications": {}, "default_budget": "none"}


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


def test_exact_answers_among_formats(problem_of: Made) -> None:
    problem = problem_of(**STUDY, precisions=["fp16", "int4", *WRITTEN], budgets={"resident_gb": 1})
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)
