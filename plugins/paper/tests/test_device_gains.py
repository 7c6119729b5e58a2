"""What more of a device buys in the continuous problem, against its prices."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import nas
from nas.exact.gains import gains
from plas_paper.relaxation import relaxed, relaxed_gains
from plas_paper.theory_problem import TheoryProblem

RESOURCES = ("compute", "bandwidth", "memory")


@pytest.mark.parametrize(
    ("budgets", "metric", "resource"),
    [({"memory_gb": 0.4}, "memory_gb", "memory"), ({"decode_ms": 20}, "decode_ms", "bandwidth")],
)
@pytest.mark.parametrize("latency", ["closed_form", "operator"])
def test_a_tenth_more_buys_about_its_price(latency: str, budgets: dict[str, float], metric: str, resource: str) -> None:
    problem = nas.load_study(preset="paper", latency=latency, budgets=budgets).problem
    found = gains(problem)
    assert found is not None
    design = problem.architectures(found.pick.genotypes)
    bought = relaxed_gains(problem, design, RESOURCES)
    theory, pair = TheoryProblem(problem), (int(design.n_experts[0]), int(design.top_k[0]))
    at = relaxed(theory, theory.box(pair=pair), pair)
    assert at is not None
    price = at.prices[metric]
    assert bought[resource] == pytest.approx(price * math.log(1.1), rel=0.1)  # a tenth is no small step
    others = sum(nats for name, nats in bought.items() if name != resource)
    assert others < 0.05 * bought[resource]


def test_a_study_that_theory_does_not_cover_has_none() -> None:
    problem = nas.load_study(preset="paper", law="evidence", tokens=[10e9, 20e9], budgets={"total_ms": 100}).problem
    found = gains(problem)
    assert found is not None
    assert relaxed_gains(problem, problem.architectures(found.pick.genotypes), RESOURCES) == {}


def test_explain_says_it_where_the_package_is_installed(
    inside: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("explain", "--model", "qwen2.5_0.5b", "--preset", "paper", "--budget", "decode_ms=20")
    words = "In the continuous problem of plas theory, with its experts: compute 0 nats, bandwidth"
    assert words in " ".join(inside(*line).out.split())
    monkeypatch.setattr("nas.commands.explain.bundled", lambda kind: {})
    answer = inside(*line)
    assert (answer.code, "plas theory" in answer.out) == (0, False)
