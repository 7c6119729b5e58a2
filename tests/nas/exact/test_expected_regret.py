"""The design of least expected regret, against tables of every design under every draw."""

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact.expected_regret import ExpectedRegret, least_expected_regret
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from tests.nas.exact.test_joined_laws import joined_problem

RULES = (
    PickRule(None),
    PickRule(Budget("total_ms", 100.0)),
    PickRule(Budget("memory_gb", 0.5), (Budget("decode_ms", 20.0),)),
    PickRule(Budget("total_ms", 200.0), dense=True),
)


@pytest.fixture(scope="module")
def paper() -> Problem:
    """The default study under the law `evidence`, all 13,120 designs."""
    raw = {"default_budget": "none", "applications": {}, "baselines": [], "law": "evidence"}
    return assemble(raw, {}).problem


def table_agrees(problem: Problem, law: Law, rule: PickRule, found: ExpectedRegret | None) -> None:
    """The least of the mean regret over a table of regrets, designs by draws."""
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    allowed = whole[rule.allowed(whole)]
    if len(allowed) == 0:
        assert found is None
        return
    losses = law.drawn_losses(problem.architectures(allowed.genotypes))
    regret = (losses - losses.min(axis=1, keepdims=True)).mean(axis=0)
    own = allowed.keys == whole.keys[rule.row(whole)]
    assert found is not None
    assert found.expected_regret == pytest.approx(regret.min(), abs=1e-12)
    assert found.of_own_pick == pytest.approx(regret[own][0], abs=1e-12)
    assert regret[(allowed.genotypes == found.genotype).all(axis=1)][0] == pytest.approx(regret.min(), abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_the_design_of_an_enumerated_space_is_that_of_a_table(paper: Problem, rule: PickRule) -> None:
    law = paper.scenario.law
    found = least_expected_regret(paper, law, rule)
    table_agrees(paper, law, rule, found)
    assert found is not None
    assert found.proven
    assert 0.0 <= found.expected_regret <= found.of_own_pick


def test_no_design_is_none(paper: Problem) -> None:
    assert least_expected_regret(paper, paper.scenario.law, PickRule(Budget("total_ms", 1e-6))) is None


def test_a_law_without_draws_is_refused_by_name(paper: Problem) -> None:
    with pytest.raises(UsageError, match="law: expected one with draws, got chinchilla without"):
        least_expected_regret(paper, load_law("chinchilla"), PickRule(None))


def test_a_space_too_large_to_cover_is_answered_among_the_designs_that_are_given(
    paper: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The regrets are then among them too, and nothing is proven; of none given there is no answer."""
    monkeypatch.setattr("nas.exact.expected_regret.COVERED", 0)
    law, rule = paper.scenario.law, PickRule(Budget("total_ms", 100.0))
    assert least_expected_regret(paper, law, rule) is None
    some = paper.space.sample(500, np.random.default_rng(1))
    found = least_expected_regret(paper, law, rule, some)
    rows = paper.evaluate(np.unique(some, axis=0))
    rows = rows[rule.allowed(rows)]
    losses = law.drawn_losses(paper.architectures(rows.genotypes))
    regret = (losses - losses.min(axis=1, keepdims=True)).mean(axis=0)
    assert found is not None
    assert not found.proven
    assert found.expected_regret == pytest.approx(regret.min(), abs=1e-12)
    assert found.genotype.tolist() == rows.genotypes[regret.argmin()].tolist()


@pytest.mark.parametrize("seed", [9100, 9101, *(pytest.param(i, marks=pytest.mark.slow) for i in range(9102, 9124))])
def test_the_design_of_a_random_problem_is_that_of_a_table(seed: int) -> None:
    """Free heads, layers, formats, tokens, few experts, dense designs; budgets of the problem and of the rule."""
    kind, problem, whole = joined_problem(seed)
    if kind == "quantile" or not whole.ok.any():
        return
    limit = Budget("total_ms", float(np.median(whole.metrics["total_ms"][whole.ok])))
    law = problem.scenario.law
    for rule in (PickRule(None), PickRule(limit)):
        table_agrees(problem, law, rule, least_expected_regret(problem, law, rule))
