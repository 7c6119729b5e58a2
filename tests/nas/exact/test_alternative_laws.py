"""Published laws and wilder ones: exact answers, regrets and least worst regrets, against brute force."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact.alternative_laws import Verdict, verdicts
from nas.problem.evaluations import Evaluations, frontier_rows, rounded
from nas.problem.objective import Budget, Objective
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.composition import composition_of
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from tests.nas.exact.test_random_problems import Chance, by_parts, frontier_agrees, problem_of, problems

SHIPPED = tuple(documents("objectives.laws"))
RIVALS = ("hw_codesign", "joint_moe", "routed", "sparsity_iso")
BUDGETS = (None, Budget("total_ms", 100.0), Budget("decode_ms", 20.0), Budget("memory_gb", 0.5))


def with_law(problem: Problem, whole: Evaluations, law: Law) -> tuple[Problem, Evaluations]:
    """The problem under another law, and its whole space evaluated; budgets on the loss go."""
    kept = tuple(b for b in problem.budgets if b.metric not in ("loss", "perplexity"))
    changed = replace(problem, scenario=replace(problem.scenario, law=law), budgets=kept)
    every = changed.space.genotypes(np.arange(changed.space.size))
    return changed, changed.evaluate(every)


def shipped(chance: Chance) -> Law:
    """A shipped law for some tokens."""
    law = load_law(chance.one(*SHIPPED))
    return law.model_copy(update={"tokens": float(np.exp(chance.share(np.log(1e9), np.log(1e12))))})


def wild(chance: Chance, every: Architectures) -> Law:
    """Crossed exponents, bent quantities, terms of one kind, domains: every mechanism, of either sign, above half a nat."""
    n, e = "parameters_with_embeddings", "experts"
    terms: dict[str, Any] = {
        "size": {"scale": "a", "powers": {n: "p", e: "q"}, "crossed": {f"{e} {n}": "x"}, "sign": chance.one(-1, 1)},
        "few": {"scale": "b", "powers": {"granularity": "r"}, "only": "sparse", "sign": chance.one(-1, 1)},
        "one": {"scale": "d", "powers": {"enough": "s"}, "only": chance.one("dense", "sparse", None)},
        "spread": {"scale": "f", "powers": {"expansion_rate": "t"}, "logs": {"depth": 7.0}},
        "constant": {"scale": "c", "any_sign": True},
    }
    bent = {
        e: {"of": "n_experts", "by": "saturation", "coefficients": ["e_start", "e_max"]},
        "enough": {"of": "active_parameters", "by": "repetition", "coefficients": ["unique", "decay"]},
    }
    known = {"p": chance.share(-0.3, 0.1), "q": chance.share(-0.5, 0.5), "x": chance.share(-0.02, 0.02)}
    known |= {"r": chance.share(-1, 1), "s": chance.share(-0.3, 0.3), "t": chance.share(-0.5, 0.5)}
    known |= {"e_start": chance.share(1.2, 3), "e_max": chance.share(20, 400), "decay": chance.share(0.5, 9)}
    active = np.sort(np.asarray(load_law("routed").feature(every, "active_parameters")))
    known |= {"unique": float(active[len(active) // 2]), "a": 1.0, "b": 1.0, "d": 1.0, "f": 1.0, "c": 0.0}
    content: dict[str, Any] = {"form": {"terms": terms, "bent": bent}, "coefficients": known, "vocabulary": 1000}
    content["tied"] = chance.one(True, False)
    content["prices"] = chance.one({}, {}, {"top_k": (1, 1)}, {"parameters": (active[0], active[-1])})
    content["prices_sparse"] = chance.one({}, {"expansion_rate": (0.5, 8.0)}, {"n_experts": (2, 40)})
    scaled = dict(known)
    for name, values in Law.model_validate(content).terms(every).items():
        if name != "constant":
            scaled[terms[name]["scale"]] = chance.share(0.1, 2.0) / max(float(np.abs(values).max()), 1e-9)
    least = Law.model_validate({**content, "coefficients": scaled}).terms(every)
    scaled["c"] = 0.5 - float(sum(least.values(), np.zeros(len(every))).min())
    return Law.model_validate({**content, "coefficients": scaled})


def brute(problem: Problem, laws: tuple[Law, ...], rule: PickRule, whole: Evaluations) -> tuple[FloatArray, int | None]:
    """Regret of every feasible architecture under every law, and the row of the least worst; by tables."""
    feasible = replace(whole, budgets=problem.budgets).feasible
    for budget in (*(() if rule.budget is None else (rule.budget,)), *rule.within):
        feasible &= whole.metrics[budget.metric] <= budget.limit
    rows = np.flatnonzero(feasible)
    losses = np.stack([law.loss(problem.architectures(whole.genotypes[rows])) for law in laws], axis=1)
    losses[~np.isfinite(losses)] = np.nan
    with pytest.MonkeyPatch.context(), np.errstate(all="ignore"):
        regret = losses - np.array([np.nanmin(c) if np.isfinite(c).any() else np.nan for c in losses.T])
    found = np.full((len(whole), len(laws)), np.nan)
    found[rows] = regret
    able = np.isfinite(losses).any(axis=0)
    worst = regret[:, able].max(axis=1) if able.any() and len(rows) else np.zeros(0)
    if not np.isfinite(worst).any():
        return found, None
    ratio = rounded(np.exp(np.where(np.isfinite(worst), worst, 600.0)))
    ties = rows[ratio == ratio.min()]
    order = [whole.keys[ties], rounded(whole.metrics["total_ms"][ties])]
    order += [] if rule.budget is None else [rounded(whole.metrics[rule.budget.metric][ties])]
    return found, int(ties[np.lexsort(tuple(order))[0]])


def agree(problem: Problem, laws: tuple[Law, ...], verdict: Verdict, whole: Evaluations) -> None:
    """Regrets to 1e-12 and the same least worst design."""
    expected, row = brute(problem, laws, verdict.rule, whole)
    within = np.isfinite(expected).any(axis=1)
    found = verdict.regrets(problem.architectures(whole.genotypes[within]))
    np.testing.assert_allclose(found, expected[within], rtol=0, atol=1e-12)
    assert (None if verdict.robust is None else verdict.robust.keys.tolist()) == (
        None if row is None else [whole.keys[row]]
    )


@pytest.fixture(scope="module")
def paper() -> tuple[Problem, Evaluations]:
    """The default study over all 13,120 designs."""
    problem = assemble({}, {}).problem
    return problem, problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))


def test_regrets_over_the_papers_space_are_a_tables(paper: tuple[Problem, Evaluations]) -> None:
    problem, whole = paper
    laws, rules = tuple(map(load_law, RIVALS)), tuple(map(PickRule, BUDGETS))
    for verdict in verdicts(problem, laws, rules):
        agree(problem, laws, verdict, whole)


def test_dense_laws_confine_the_least_worst_design_to_what_all_of_them_price(
    paper: tuple[Problem, Evaluations],
) -> None:
    problem, whole = paper
    laws = tuple(map(load_law, ("hw_codesign", "chinchilla_epoch", "fine_grained")))
    (verdict,) = verdicts(problem, laws, (PickRule(Budget("total_ms", 100.0)),))
    agree(problem, laws, verdict, whole)
    assert verdict.robust is not None
    robust = problem.architectures(verdict.robust.genotypes)
    assert robust.n_experts.tolist() == [1]
    assert verdict.best[0] is not None
    sparse = verdict.regrets(problem.architectures(verdict.best[0].genotypes))[0]
    assert sparse[0] == 0.0
    assert np.isnan(sparse[1:]).all()


def test_a_law_that_prices_nothing_within_the_budgets_takes_no_part(paper: tuple[Problem, Evaluations]) -> None:
    problem, whole = paper
    nothing = load_law("joint_moe").model_copy(update={"prices": {"n_experts": (2, 4)}})
    laws = (load_law("hw_codesign"), nothing)
    (verdict,) = verdicts(problem, laws, (PickRule(None),))
    agree(problem, laws, verdict, whole)
    assert verdict.best[1] is None
    assert verdict.robust is not None
    assert verdict.best[0] is not None
    assert verdict.robust.keys.tolist() == verdict.best[0].keys.tolist()


def test_budgets_on_ones_own_metric_are_refused(paper: tuple[Problem, Evaluations]) -> None:
    own = Objective("mine", function=lambda architectures: np.ones(len(architectures)))
    problem = replace(paper[0], functions=(own,), budgets=(Budget("mine", 2.0),))
    with pytest.raises(UsageError, match="laws: expected budgets on shipped metrics, got one on mine"):
        verdicts(problem, (load_law("hw_codesign"),), (PickRule(None),))


@pytest.mark.parametrize("seed", problems(5000, 5030))
def test_frontiers_under_any_law_are_those_of_brute_force(seed: int) -> None:
    chance = Chance(seed)
    problem, whole = problem_of(chance)
    every = problem.architectures(whole.genotypes)
    law = shipped(chance) if seed % 2 else wild(chance, every)
    problem, whole = with_law(problem, whole, law)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", problems(6000, 6020))
def test_regrets_are_those_of_brute_force_where_spaces_are_covered_by_parts(seed: int) -> None:
    chance = Chance(seed)
    problem, whole = problem_of(chance)
    every = problem.architectures(whole.genotypes)
    laws = (shipped(chance), wild(chance, every), shipped(chance).model_copy(update={"name": "another"}))
    problem, whole = with_law(problem, whole, load_law("hw_codesign"))
    rules = (PickRule(None), *(PickRule(budget) for budget in problem.budgets))
    with by_parts(small_steps=True):
        for verdict in verdicts(problem, laws, rules):
            agree(problem, laws, verdict, whole)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(5030, 5330))
def test_hundreds_of_frontiers_under_any_law_are_those_of_brute_force(seed: int) -> None:
    test_frontiers_under_any_law_are_those_of_brute_force(seed)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_law_is_a_function_of_sums(name: str) -> None:
    assert composition_of(load_law(name)).quantities


def test_frontier_rows_of_a_partial_law_hold_only_what_it_prices(paper: tuple[Problem, Evaluations]) -> None:
    problem = replace(paper[0], scenario=replace(paper[0].scenario, law=load_law("chinchilla")))
    whole = problem.evaluate(paper[1].genotypes)
    front = whole[frontier_rows(whole)]
    assert set(problem.architectures(front.genotypes).n_experts.tolist()) == {1}
    assert whole.reasons is not None
    assert "loss: inf, chinchilla prices designs of n_experts 1 alone" in whole.reasons
