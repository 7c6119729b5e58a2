"""Designs whose vocabulary is a gene keep it: in prices, exact answers, exports, explanations; what no formula covers is refused."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.answer.design_words import head
from nas.errors import UsageError
from nas.export import command as exporting
from nas.export.candidates import Chosen
from nas.problem.breakdown import explained
from nas.problem.objective import Baseline, Budget
from nas.problem.picks import answers
from nas.problem.problem import Problem
from nas.search.assembly import Study
from nas.study.baselines import baseline, baseline_questions
from objectives.assessment import Assessment
from plas_paper.theory_problem import TheoryProblem
from search_spaces.arrays import IntArray

VOCABULARIES = (8192, 32_000, 151_936)


@pytest.fixture
def study(studied: Callable[..., Study]) -> Study:
    return studied(vocabulary=list(VOCABULARIES), default_budget="none", baselines=[], applications={})


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
        alone = Assessment(bare[np.flatnonzero(rows)], problem.scenario.of_vocabulary(vocabulary))
        for name in ("total_ms", "memory_gb", "loss"):
            np.testing.assert_array_equal(found[name][rows], alone[name])


def test_every_design_reads_and_writes_as_much_text(problem: Problem) -> None:
    """The study's tokens are those of the law's tokenizer; a smaller vocabulary needs more of its own."""
    text = problem.scenario.text_here
    lengths = {size: problem.scenario.of_vocabulary(size) for size in VOCABULARIES}
    for size, scenario in lengths.items():
        held = float(text.curve.bytes_per_token(size))
        assert scenario.input_tokens - 1 < text.prompt / held <= scenario.input_tokens
        assert scenario.output_tokens - 1 < text.answer / held <= scenario.output_tokens
    assert lengths[8192].input_tokens > lengths[151_936].input_tokens
    assert problem.scenario.of_vocabulary(50_257).input_tokens == problem.scenario.input_tokens


def test_a_smaller_vocabulary_costs_what_published_runs_say(problem: Problem) -> None:
    """Of one body the loss is the law's times the factor, nothing else of it changes."""
    every = genotypes(problem)
    designs, losses = problem.space.architectures(every), problem.evaluate(every).metrics["loss"]
    law = problem.scenario.law
    cost = law.vocabulary_cost
    assert cost is not None
    bare = law.model_copy(update={"vocabulary_cost": None}).loss(designs)
    for size in VOCABULARIES:
        rows = designs.vocabulary == size
        factor = (1 + cost.scale * (size / 16_384) ** -cost.exponent) / (
            1 + cost.scale * (50_257 / 16_384) ** -cost.exponent
        )
        np.testing.assert_allclose(losses[rows], bare[rows] * factor, rtol=1e-12)
    assert law.terms(designs)["vocabulary"][designs.vocabulary == 8192].min() > 0


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
    """One question of each kind, no "no LM head", since another vocabulary of the study changes no design."""
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


def test_a_limit_of_an_application_on_tokens_is_refused_by_name(studied: Callable[..., Study]) -> None:
    with pytest.raises(UsageError, match="tpot_ms: expected a metric of text beside several vocabularies"):
        studied(vocabulary=list(VOCABULARIES), applications={"spoken": {"tpot_ms": 5}})
