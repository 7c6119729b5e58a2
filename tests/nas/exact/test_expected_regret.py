"""The design of least expected regret, against tables of every design under every draw."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact.decomposition.drawn_search import MEAN
from nas.exact.expected_regret import ExpectedRegret, least_expected_regret
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from tests.nas.exact.test_joined_laws import joined_problem
from tests.nas.exact.test_random_problems import Chance, by_parts, problem_of

BY_PARTS = 1e-8  # nats: least losses are settled to 1e-9 of their value
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


def table_agrees(
    problem: Problem, law: Law, rule: PickRule, found: ExpectedRegret | None, within: float = 1e-12
) -> None:
    """The regret, without the draws at both ends, of the design of the least mean loss over a table of regrets, designs by draws."""
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    allowed = whole[rule.allowed(whole)]
    if len(allowed) == 0:
        assert found is None
        return
    losses = law.drawn_losses(problem.architectures(allowed.genotypes))
    rated = replace(allowed, metrics={**allowed.metrics, MEAN: losses.mean(axis=0)})
    row = replace(rule, least=MEAN).row(rated)
    regret, cut = np.sort(losses[:, row] - losses.min(axis=1)), len(losses) // 20
    assert found is not None
    assert found.lowest == pytest.approx(losses.min(axis=1), abs=within)
    assert found.expected_regret == pytest.approx(regret[cut : len(regret) - cut].mean(), abs=within)
    assert found.genotype.tolist() == allowed.genotypes[row].tolist()


@pytest.mark.parametrize("rule", RULES)
def test_the_design_of_an_enumerated_space_is_that_of_a_table(paper: Problem, rule: PickRule) -> None:
    law = paper.scenario.law
    found = least_expected_regret(paper, law, rule)
    table_agrees(paper, law, rule, found)
    assert found is not None
    assert found.proven
    assert found.expected_regret >= 0.0


def test_no_design_is_none(paper: Problem) -> None:
    assert least_expected_regret(paper, paper.scenario.law, PickRule(Budget("total_ms", 1e-6))) is None


def test_a_law_without_draws_is_refused_by_name(paper: Problem) -> None:
    with pytest.raises(UsageError, match="law: expected one with draws, got chinchilla without"):
        least_expected_regret(paper, load_law("chinchilla"), PickRule(None))


def test_a_space_too_large_to_cover_is_answered_among_the_designs_that_are_given(
    paper: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The regrets are then among them too, and nothing is proven."""
    monkeypatch.setattr("nas.exact.expected_regret.COVERED", 0)
    law, rule = paper.scenario.law, PickRule(Budget("total_ms", 100.0))
    some = paper.space.sample(500, np.random.default_rng(1))
    found = least_expected_regret(paper, law, rule, some)
    rows = paper.evaluate(np.unique(some, axis=0))
    rows = rows[rule.allowed(rows)]
    losses = law.drawn_losses(paper.architectures(rows.genotypes))
    least = int(losses.mean(axis=0).argmin())
    regret, cut = np.sort(losses[:, least] - losses.min(axis=1)), len(losses) // 20
    assert found is not None
    assert not found.proven
    assert found.expected_regret == pytest.approx(regret[cut : len(regret) - cut].mean(), abs=1e-12)
    assert found.genotype.tolist() == rows.genotypes[least].tolist()


@contextmanager
def solved_by_parts(*, small_steps: bool) -> Iterator[None]:
    """However small the space."""
    with by_parts(small_steps=small_steps), pytest.MonkeyPatch.context() as patch:
        patch.setattr("nas.exact.expected_regret.COVERED", 0)
        yield


@pytest.mark.parametrize("rule", RULES)
def test_the_design_of_a_space_by_parts_is_that_of_a_table(paper: Problem, rule: PickRule) -> None:
    with solved_by_parts(small_steps=True):
        found = least_expected_regret(paper, paper.scenario.law, rule)
    assert found is not None
    assert found.proven
    table_agrees(paper, paper.scenario.law, rule, found, BY_PARTS)


def test_no_design_by_parts_is_none(paper: Problem) -> None:
    with solved_by_parts(small_steps=False):
        assert least_expected_regret(paper, paper.scenario.law, PickRule(Budget("total_ms", 1e-6))) is None


def test_a_metric_without_parts_in_a_large_space_is_refused_by_name(paper: Problem) -> None:
    with (
        solved_by_parts(small_steps=False),
        pytest.raises(UsageError, match="architectures where loss@q90 does not say how it adds up"),
    ):
        least_expected_regret(paper, paper.scenario.law, PickRule(Budget("loss@q90", 4.0)))


def rules_of(whole: Evaluations) -> tuple[PickRule, ...]:
    """Without a limit, with one and with two that half of the designs are within, and among dense ones."""
    total, memory = (
        Budget(name, float(np.median(whole.metrics[name][whole.ok]))) for name in ("total_ms", "memory_gb")
    )
    return PickRule(None), PickRule(total), PickRule(memory, (total,)), PickRule(total, dense=True)


def random_agrees(problem: Problem, law: Law, whole: Evaluations, *, small_steps: bool) -> None:
    """Both ways: every design evaluated, and by parts."""
    for rule in rules_of(whole):
        table_agrees(problem, law, rule, least_expected_regret(problem, law, rule))
        with solved_by_parts(small_steps=small_steps):
            table_agrees(problem, law, rule, least_expected_regret(problem, law, rule), BY_PARTS)


def joined_agrees(seed: int) -> None:
    """Free heads, layers, formats, tokens, few experts, dense designs; budgets of the problem and of the rule."""
    kind, problem, whole = joined_problem(seed)
    if kind != "quantile" and whole.ok.any():
        random_agrees(problem, problem.scenario.law, whole, small_steps=seed % 3 > 0)


@pytest.mark.parametrize("seed", [9100, 9101, *(pytest.param(i, marks=pytest.mark.slow) for i in range(9102, 9124))])
def test_the_design_of_a_random_problem_is_that_of_a_table(seed: int) -> None:
    joined_agrees(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9124, 9324))
def test_hundreds_of_designs_under_joined_laws_are_those_of_tables(seed: int) -> None:
    joined_agrees(seed)


def with_draws(law: Law, generator: np.random.Generator) -> Law:
    """A law with a dozen draws around its coefficients, as `plas fit` writes them."""
    numbers = np.array([law.coefficients[name] for name in law.law_form.coefficients])
    drawn = numbers * np.exp(0.05 * generator.normal(size=(12, len(numbers))))
    rows = tuple(" ".join(f"{number:.9g}" for number in row) for row in drawn)
    return law.model_copy(update={"draws": rows, "layer_delta_draws": {}})


def plain_agrees(seed: int) -> None:
    """Shipped and random forms of one term and of many: powers, logarithms, factors, exponentials."""
    chance = Chance(seed)
    problem, whole = problem_of(chance, heads=seed % 4 == 1, layers=seed % 4 == 2)
    law = with_draws(problem.scenario.law, chance.generator)
    if seed % 4 == 3:
        coefficients = {"kappa": 20.0, "alpha": chance.share(0.1, 0.4), "l_inf": 1.5}
        law = with_draws(Law(form="parameters_power", coefficients=coefficients), chance.generator)
    problem = replace(problem, objectives=(), scenario=replace(problem.scenario, law=law))
    if not (whole.ok.any() and np.isfinite(law.drawn_losses(problem.architectures(whole.genotypes))).all()):
        return
    random_agrees(problem, law, whole, small_steps=seed % 3 > 0)


@pytest.mark.parametrize("seed", [9400, 9403, *(pytest.param(i, marks=pytest.mark.slow) for i in range(9404, 9424))])
def test_the_design_under_a_law_of_a_plain_form_is_that_of_a_table(seed: int) -> None:
    plain_agrees(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9424, 9624))
def test_hundreds_of_designs_under_plain_forms_are_those_of_tables(seed: int) -> None:
    plain_agrees(seed)
