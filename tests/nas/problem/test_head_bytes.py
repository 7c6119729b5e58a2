"""Bytes of embedding and LM head by precision: each design is priced as in a study of its precision with its bytes, exact answers too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.study.configuration import StudyConfig
from tests.nas.exact.test_random_problems import by_parts, frontier_agrees

Made = Callable[..., Problem]
STUDY: dict[str, Any] = {"vocabulary": 32_000, "baselines": [], "applications": {}, "default_budget": "none"}


def test_each_design_is_priced_with_the_bytes_of_its_precision(problem_of: Made) -> None:
    problem = problem_of(**STUDY, precisions=["fp16", "int4"], head_bytes={"int4": 0.5})
    every = problem.space.genotypes(np.arange(problem.space.size))
    designs, found = problem.space.architectures(every), problem.evaluate(every).metrics
    for name, rows in designs.in_formats():
        alone = problem_of(**STUDY, precision=name, head_bytes={"fp16": 2.0, "int4": 0.5}[name])
        expected = alone.assess(problem.headed(designs[rows]))
        for metric in ("total_ms", "resident_gb"):
            np.testing.assert_array_equal(found[metric][rows], expected[metric])


def test_exact_answers_are_those_of_brute_force(problem_of: Made) -> None:
    problem = problem_of(
        **STUDY, precisions=["fp16", "int8", "int4"], head_bytes={"int4": 0.5, "int8": 1}, budgets={"resident_gb": 1}
    )
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


def test_bytes_of_a_precision_are_those_of_its_caches_too() -> None:
    config = StudyConfig.model_validate({"head_bytes": {"int4": 1, "int4_kv4": 0.5}})
    assert [config.head_bytes_at(name) for name in ("int4", "int4_kv8", "int4_kv4", "fp16")] == [1, 1, 0.5, None]
    assert StudyConfig(head_bytes=1.5).head_bytes_at("int4") == 1.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"int3": 1}, "head_bytes.int3: expected fp16, int8"),
        ({"int4": 9}, "head_bytes.int4: expected at most 8, got 9"),
        (0, "head_bytes: expected more than 0, got 0"),
        ("half", "head_bytes: expected a number, got 'half'"),
    ],
)
def test_other_bytes_are_refused_by_name(given: Any, message: str, problem_of: Made) -> None:
    with pytest.raises(UsageError, match=message):
        problem_of(head_bytes=given)
