"""Bytes of embedding and LM head by precision: each design is priced as in a study of its precision with its bytes, exact answers too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas.answer.sentences import formats_in_words
from nas.errors import UsageError
from nas.problem.problem import Problem
from nas.study.configuration import StudyConfig
from nas.study.scenarios import larger_rows
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
        ({"int3": 1}, "head_bytes.int3: expected a format .the 61 names"),
        ({"int4": 9}, "head_bytes.int4: expected at most 8, got 9"),
        (0, "head_bytes: expected more than 0, got 0"),
        ("half", "head_bytes: expected a number, got 'half'"),
    ],
)
def test_other_bytes_are_refused_by_name(given: Any, message: str, problem_of: Made) -> None:
    with pytest.raises(UsageError, match=message):
        problem_of(head_bytes=given)


def test_a_head_unlike_the_weights_is_named(problem_of: Made) -> None:
    """Where there is a head; given bytes are named as those of the format are."""
    formats = {"precisions": ["fp16", "int4", "q4_k_m", "q8_0"]}
    said = "fp16, int4 (LM head 16 bits), q4_k_m (LM head 6.56 bits), q8_0"
    assert formats_in_words(problem_of(**STUDY, **formats)) == said
    assert formats_in_words(problem_of(**{**STUDY, "vocabulary": 0}, **formats)) == "fp16, int4, q4_k_m, q8_0"
    assert formats_in_words(problem_of(**STUDY, precision="q8_0", head_bytes=2)) == "q8_0 (LM head 16 bits)"


def test_ffns_that_blocks_do_not_fill_are_named(problem_of: Made) -> None:
    """Q6_K alone of 6.5625 bits falls back to Q8_0's 8.5: 30 % more; formats of blocks that all sizes fill say nothing."""
    space = {"name": "s", "axes": {"depth": [2], "width": [256], "expert_size": [96, 256, 800], "n_kv_heads": [1]}}
    (said,) = larger_rows(problem_of(space=space, precision="q6_k", baselines=[]))
    assert said.startswith("q6_k counts FFNs as whole blocks of 256 weights; of 2 of the space's sizes (96 to 800)")
    assert said.endswith("up to 30 % more bytes of these")
    assert not larger_rows(problem_of(space=space, precisions=["int4", "q8_0"], baselines=[]))
