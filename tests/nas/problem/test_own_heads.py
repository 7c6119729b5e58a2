"""Designs whose vocabulary is a gene keep it: in prices, exact answers, exports, explanations; what no formula covers is refused.

No space has this gene yet: the test makes one, as whoever adds it would.
"""

import dataclasses
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.model_remarks import head
from nas.errors import UsageError
from nas.exact.solution import solve
from nas.export import command as exporting
from nas.export.candidates import Chosen
from nas.problem.breakdown import explained
from nas.problem.dominance import frontier_rows
from nas.problem.objective import Budget
from nas.problem.pick_queries import Baseline
from nas.problem.picks import answers
from nas.problem.problem import Problem
from nas.search.assembly import Study
from nas.study.baselines import baseline, baseline_questions
from nas.study.catalogue import load_space
from nas.theory.theory_problem import TheoryProblem
from objectives.assessment import Assessment
from search_spaces.arrays import IntArray
from search_spaces.space import SearchSpace

VOCABULARIES = (8192, 32_000, 151_936)


class WithVocabularies(SearchSpace):
    """A space with one gene more than its file says."""

    @property
    def genes(self) -> tuple[str, ...]:
        return (*super().genes, "vocabulary")

    @cached_property
    def settings(self) -> dict[str, IntArray]:
        return {**super().settings, "vocabulary": np.array(VOCABULARIES)}


@pytest.fixture
def study(studied: Callable[..., Study]) -> Study:
    found = studied(vocabulary=151_936, tied=True, default_budget="none", baselines=[], applications={})
    space = WithVocabularies(found.problem.space.specification)
    nothing = space.genotypes(np.zeros(0, dtype=np.int64))
    return dataclasses.replace(found, problem=dataclasses.replace(found.problem, space=space), start=nothing)


@pytest.fixture
def problem(study: Study) -> Problem:
    return study.problem


def genotypes(problem: Problem) -> IntArray:
    return problem.space.genotypes(np.arange(problem.space.size))


def test_every_design_is_priced_with_its_own(problem: Problem) -> None:
    bare = problem.space.architectures(genotypes(problem))
    assert set(bare.vocabulary.tolist()) == set(VOCABULARIES)
    found = problem.evaluate(genotypes(problem)).metrics
    for vocabulary in VOCABULARIES:
        rows = bare.vocabulary == vocabulary
        alone = Assessment(bare[np.flatnonzero(rows)].with_vocabulary(vocabulary, tied=True), problem.scenario)
        for name in ("total_ms", "memory_gb", "loss"):
            np.testing.assert_array_equal(found[name][rows], alone[name])


def test_no_exact_answer_passes_over_it(problem: Problem) -> None:
    """AdditiveBounds of parts need each setting's scenario; without it designs are enumerated, or too many are refused by its name."""
    found = solve(problem)
    assert found.way == "enumeration"
    assert "vocabulary as a gene" in found.explanation
    every = problem.evaluate(genotypes(problem))
    np.testing.assert_array_equal(np.sort(found.frontier.keys), np.sort(every[frontier_rows(every)].keys))
    fine = WithVocabularies(load_space("fine").specification)
    large = dataclasses.replace(problem, space=fine)
    with pytest.raises(UsageError, match="at most 100,000,000 architectures where vocabulary as a gene"):
        solve(large)


def test_a_design_keeps_its_vocabulary_in_an_export(
    study: Study, monkeypatch: pytest.MonkeyPatch, inside: Callable[..., Any]
) -> None:
    problem = study.problem
    rows = genotypes(problem)[: len(VOCABULARIES)]
    designs = problem.space.architectures(rows)
    ids = [f"of_{size}" for size in designs.vocabulary.tolist()]
    monkeypatch.setattr(exporting, "chosen", lambda *_: Chosen(study, ids, problem.headed(designs)))
    answer = inside("export", "runs", "--to", "vllm", "--out", "out", "--json")
    assert answer.code == 0, answer
    priced = problem.evaluate(rows).metrics["total_ms"]
    for row, size, total in zip(json.loads(answer.out)["candidates"], designs.vocabulary.tolist(), priced, strict=True):
        config = json.loads((Path("out") / row["folder"] / "hf" / "config.json").read_text())
        assert config["vocab_size"] == row["vocabulary"] == size
        assert row["total_ms"] == pytest.approx(total, rel=1e-12)
    assert json.loads(Path("out/export.json").read_text())["predictions"]["vocabulary"] == "each design's own"
    assert inside("export", "--verify", "out").code == 0


def test_an_explanation_is_of_the_designs_own(problem: Problem) -> None:
    design = problem.space.architectures(genotypes(problem)[1:2])
    assert design.vocabulary.tolist() == [32_000]
    total = problem.evaluate(genotypes(problem)[1:2]).metrics["total_ms"][0]
    assert explained(problem, problem.headed(design)).metrics["total_ms"] == pytest.approx(total, rel=1e-12)
    assert head(Baseline("row 1", design), problem) == ["Vocabulary 32,000 (tied): its own"]


def test_a_comparison_prices_designs_and_model_with_their_own(problem: Problem) -> None:
    """One question of each kind, no "layers alone", since another vocabulary of the study changes no design."""
    known = baseline("qwen2.5_0.5b")
    asked = baseline_questions(problem, known)
    total = problem.assess(known.architecture)["total_ms"][0]
    assert [(q.vocabulary, q.budget) for q in asked] == [(None, Budget("total_ms", float(total)))] * 4
    assert asked[0].label == "Qwen2.5-0.5B, own LM heads"
    rows = genotypes(problem)[: len(VOCABULARIES)]
    np.testing.assert_array_equal(
        problem.with_vocabulary(0).evaluate(rows).metrics["memory_gb"], problem.evaluate(rows).metrics["memory_gb"]
    )
    assert len(answers(dataclasses.replace(problem, queries=tuple(asked)), problem.evaluate(rows))) == 4


def test_the_theory_refuses_it_by_name(problem: Problem) -> None:
    with pytest.raises(UsageError, match="vocabulary"):
        _ = TheoryProblem(problem)
