"""Laws whose capacity and data are joined, L = level + (C^κ + D^κ)^(1/κ), against brute force: frontiers, picks, budgets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import FORM
from search_spaces.architectures import Architectures
from search_spaces.space import SearchSpace
from tests.nas.exact.test_random_problems import Chance, by_parts, frontier_agrees, gains_agree, problem_of
from tests.nas.exact.test_tokens import over_tokens

KINDS = ("plain", "heads", "layers", "formats", "tokens", "experts", "dense", "quantile")
FAST = (9000, 9001, 9002, 9011, 9012, 9013)  # of each kind but the last two one, the cheap ones
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(9000, 9032)]
DRAWS = 12


def coefficients_of(chance: Chance, every: Architectures, tokens: float) -> dict[str, float]:
    """Coefficients of the form: κ on both sides of 1, exponents of either sign and of nought; C and D from 0.05 to 3 nats."""
    c = {
        "level": chance.share(0.5, 2.0),
        "A": 1.0,
        "alpha_active": chance.one(0.0, chance.share(0.005, 0.4), chance.share(0.005, 0.4)),
        "alpha_stored": chance.one(0.0, chance.share(0.005, 0.4), chance.share(0.005, 0.4), -0.03),
        "aspect": chance.one(0.0, chance.share(-0.4, 0.4)),
        "h_query": chance.one(0.0, chance.share(-0.2, 0.2)),
        "h_split": chance.one(0.0, chance.share(-0.2, 0.2), chance.share(-0.02, 0.02)),
        "aspect_squared": chance.one(0.0, chance.share(-0.01, 0.05)),
        "B": 1.0,
        "beta": chance.share(0.1, 0.5),
        "kappa": float(np.exp(chance.share(np.log(0.4), np.log(6.0)))),
    }
    terms = Law.model_validate(
        {"form": {"terms": FORM.terms}, "coefficients": {k: v for k, v in c.items() if k != "kappa"}, "tokens": tokens}
    )
    values = terms.terms(every)
    for scale, name in (("A", "capacity"), ("B", "data")):
        c[scale] = float(np.exp(chance.share(np.log(0.05), np.log(3.0))) / np.median(values[name]))
    return c


def law_of(chance: Chance, every: Architectures) -> Law:
    """A law of the form with draws around it."""
    tokens = float(np.exp(chance.share(np.log(1e9), np.log(1e12))))
    c = coefficients_of(chance, every, tokens)
    drawn = np.array([list(c.values())] * DRAWS) * np.exp(0.05 * chance.generator.normal(size=(DRAWS, len(c))))
    rows = tuple(" ".join(f"{number:.9g}" for number in row) for row in drawn)
    return Law.model_validate({"form": FORM, "coefficients": c, "tokens": tokens, "draws": rows})


def space_of_experts(chance: Chance, kind: str) -> SearchSpace:
    """Dense designs alone, or few experts with every K up to E - 1."""
    experts = list(range(2, chance.one(5, 8, 10)))
    axes: dict[str, Any] = {
        "depth": chance.few(range(1, 61), 1, 4),
        "width": [64 * heads for heads in chance.few(range(2, 33), 1, 3)],
        "n_experts": [1] if kind == "dense" else experts,
        "top_k": [1, *([] if kind == "dense" else experts[:-1])],
        "expert_size": list(range(32, 32 * chance.one(*range(4, 40)), 32)),
        "n_kv_heads": "divisors",
    }
    return SearchSpace.from_mapping({"head_dim": 64, "axes": axes})


def joined_problem(seed: int) -> tuple[str, Problem, Evaluations]:
    """A problem of one to three objectives and none to three budgets, of a kind in turn, and its whole space evaluated."""
    chance, kind = Chance(seed), KINDS[seed % len(KINDS)]
    problem, _ = problem_of(chance, heads=kind == "heads", layers=kind == "layers", formats=kind == "formats")
    if kind in ("experts", "dense"):
        problem = replace(problem, space=space_of_experts(chance, kind))
    law = law_of(chance, problem.architectures(problem.space.genotypes(np.arange(problem.space.size))))
    few_bits = {"precision_law": problem.scenario.law.precision_law, "precision": problem.scenario.law.precision}
    law = law.model_copy(update=few_bits if kind == "formats" else {})
    problem = replace(problem, scenario=replace(problem.scenario, law=law), objectives=(), budgets=())
    if kind == "tokens":
        problem = over_tokens(chance, problem, law)
    pool = ("loss@q90", *problem.metric_names) if kind == "quantile" else problem.metric_names
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), tuple(pool))
    usable = np.flatnonzero(whole.ok).tolist()
    objectives = tuple(chance.few(["loss", *chance.generator.permutation(pool[1:]).tolist()], 1, 3))
    objectives = ("loss@q90", *objectives[:2]) if kind == "quantile" and chance.one(True, False) else objectives
    limited = chance.few(pool, 0, 3) if usable else []
    budgets = tuple(Budget(name, float(whole.metrics[name][chance.one(*usable)])) for name in limited)
    objectives = tuple(dict.fromkeys(objectives))
    problem = replace(problem, objectives=tuple(map(built_in, objectives)), budgets=budgets)
    return kind, problem, replace(whole, objectives=objectives, budgets=budgets)


def quantiles_agree(problem: Problem, whole: Evaluations) -> None:
    """A loss at a quantile declares no parts: every design is evaluated, and the answer is that of the table."""
    rules = (PickRule(None), *map(PickRule, problem.budgets))
    found = solve(problem, rules)
    assert found.frontier.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()
    for rule, pick in zip(rules, found.picks, strict=True):
        row = PickRule(rule.budget).row(whole)
        assert (None if pick is None else pick.keys.tolist()) == (None if row is None else [whole.keys[row]])


def joined_agrees(seed: int) -> None:
    kind, problem, whole = joined_problem(seed)
    asked = {*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets)}
    if "loss@q90" in asked:
        quantiles_agree(problem, whole)
        return
    with by_parts(small_steps=seed % 3 > 0):
        frontier_agrees(problem, whole)
        if kind not in ("formats", "quantile"):
            gains_agree(problem, whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_frontiers_picks_and_budgets_under_joined_laws_are_those_of_brute_force(seed: int) -> None:
    joined_agrees(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9032, 9200))
def test_hundreds_of_frontiers_under_joined_laws_are_those_of_brute_force(seed: int) -> None:
    joined_agrees(seed)
