"""An axis of tokens, and what training costs, against brute force: every law that sees tokens."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nas.exact.alternative_laws import verdicts
from nas.exact.checkpoint import SolverCheckpoint
from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations, distinct, frontier_rows
from nas.problem.objective import Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import METRIC_ORDER, Problem
from nas.problem.settings import each_setting, in_all_settings
from nas.search.assembly import assemble
from nas.study.catalogue import load_device, load_law
from objectives.loss_law.law import Law
from objectives.plugins import documents
from objectives.training import Training
from search_spaces.space import SearchSpace
from tests.nas.exact.test_alternative_laws import agree, wild
from tests.nas.exact.test_decomposition import Killed, Mortal
from tests.nas.exact.test_random_problems import (
    Chance,
    by_parts,
    diagnosis_agrees,
    frontier_agrees,
    gains_agree,
    problem_of,
    sweep_agrees,
)

LARGEST_DEATHS = 200
TINY = {
    "axes": {
        "depth": [2, 4, 8, 16],
        "width": [512, 768, 1024],
        "n_experts": [1, 4, 8, 16],
        "top_k": [1, 2],
        "expert_size": [256, 512, 1024, 2048],
        "n_kv_heads": [1, 2, "n_heads"],
    }
}
TRAINING = ("train_flops", "train_hours", "lifetime_flops")
SEEING = tuple(name for name in documents("objectives.laws") if load_law(name).sees_tokens)


def seeing(chance: Chance, number: int) -> Law:
    """A shipped law that sees tokens, in turn; of repeated text for some distinct tokens."""
    law = load_law(SEEING[number % len(SEEING)])
    if "unique_tokens" in law.coefficients:
        unique = {"unique_tokens": float(np.exp(chance.share(np.log(1e9), np.log(1e11))))}
        law = law.model_copy(update={"coefficients": {**law.coefficients, **unique}})
    return law


def over_tokens(chance: Chance, problem: Problem, law: Law) -> Problem:
    """The problem under a law, with an axis of tokens and trained somewhere; nothing is asked of it."""
    content = problem.space.mapping()
    counts = np.exp([chance.share(np.log(1e8), np.log(1e12)) for _ in range(chance.one(1, 2, 3))])
    content["axes"]["tokens"] = sorted({int(count) for count in counts})
    training = Training(
        load_device(chance.one("h100_sxm", "rtx_4090")),
        chance.share(0.2, 0.6),
        chance.one(128, 2048),
        chance.one(0.0, 1e12),
    )
    scenario = replace(problem.scenario, law=law, training=training)
    columns = tuple(dict.fromkeys([*problem.columns, *TRAINING]))
    space = SearchSpace.from_mapping(content)
    return replace(problem, space=space, scenario=scenario, columns=columns, objectives=(), budgets=())


def asked(chance: Chance, problem: Problem) -> tuple[Problem, Evaluations]:
    """The problem with objectives and budgets, on training too; and all of it evaluated."""
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    usable, pool = np.flatnonzero(whole.ok).tolist(), [*problem.metric_names, *TRAINING]
    objectives = tuple(dict.fromkeys(chance.few(chance.generator.permutation(pool).tolist(), 1, 4)))
    limited = dict.fromkeys(chance.few(pool, 0, 4)) if usable else ()
    budgets = tuple(Budget(name, float(whole.metrics[name][chance.one(*usable)])) for name in limited)
    problem = replace(problem, objectives=tuple(map(built_in, objectives)), budgets=budgets)
    return problem, replace(whole, objectives=objectives, budgets=budgets)


def with_tokens(chance: Chance, problem: Problem, law: Law) -> tuple[Problem, Evaluations]:
    """The problem with an axis of tokens under a law, objectives and budgets, and all of it evaluated."""
    return asked(chance, over_tokens(chance, problem, law))


def drawn(seed: int) -> tuple[Chance, Problem, Evaluations]:
    """A problem over tokens of one seed."""
    chance = Chance(seed)
    problem, _ = problem_of(chance)
    return chance, *with_tokens(chance, problem, seeing(chance, seed))


@pytest.mark.parametrize("seed", [7000, 7001, *(pytest.param(i, marks=pytest.mark.slow) for i in range(7002, 7030))])
def test_frontiers_over_tokens_are_those_of_brute_force(seed: int) -> None:
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7500, 7515))
def test_every_answer_over_tokens_is_that_of_brute_force(seed: int) -> None:
    chance, problem, whole = drawn(seed)
    with by_parts(small_steps=False):
        gains_agree(problem, whole)
        if whole.ok.any():
            sweep_agrees(problem, whole, chance.one(*METRIC_ORDER, *TRAINING))
            diagnosis_agrees(problem, whole, [chance.share(0.3, 1.0) for _ in range(5)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7600, 7612))
def test_regrets_over_tokens_are_those_of_brute_force(seed: int) -> None:
    chance = Chance(seed)
    problem, whole = with_tokens(chance, problem_of(chance)[0], load_law("sparsity_iso"))  # which prices every design
    kept = tuple(b for b in problem.budgets if b.metric not in ("loss", "perplexity"))
    problem = replace(problem, budgets=kept)
    every = problem.architectures(whole.genotypes)
    laws = (
        problem.scenario.law,
        *(law for law in (seeing(chance, seed),) if law.name != "sparsity_iso"),
        wild(chance, every),
    )
    with by_parts(small_steps=True):
        for verdict in verdicts(problem, laws, (PickRule(None), *map(PickRule, kept))):
            agree(problem, laws, verdict, replace(whole, budgets=kept))


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(7030, 7330))
def test_hundreds_of_frontiers_over_tokens_are_those_of_brute_force(seed: int) -> None:
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.parametrize("law", ["chinchilla_epoch", "joint_moe", "data_limited"])
def test_an_axis_is_the_union_of_its_numbers_asked_one_by_one(law: str) -> None:
    raw = {"law": law, "objectives": ["loss", "train_flops"], "baselines": [], "default_budget": "none"}
    tokens = [2 * 10**9, 2 * 10**10]
    axis = assemble({**raw, "tokens": tokens}, {}).problem
    together = axis.evaluate(axis.space.genotypes(np.arange(axis.space.size)))
    alone = []
    for number, each in enumerate(tokens):
        problem = assemble({**raw, "tokens": each}, {}).problem
        found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
        alone.append(in_all_settings(found[frontier_rows(found)], number, axis))
    union = distinct(alone)
    union, front = union[frontier_rows(union)], together[frontier_rows(together)]
    assert union.keys.tolist() == front.keys.tolist()
    for name in (*METRIC_ORDER, "train_flops"):
        np.testing.assert_array_equal(union.metrics[name], front.metrics[name])


def test_settings_are_problems_that_price_as_the_whole_does() -> None:
    whole = assemble({"law": "joint_moe", "tokens": [10**9, 10**10, 10**11], "baselines": []}, {}).problem
    for number, one in enumerate(each_setting(whole)):
        some = one.space.sample(50, np.random.default_rng(number))
        found = one.evaluate(some, ("loss",))
        same = whole.evaluate(in_all_settings(found, number, whole).genotypes, ("loss",))
        np.testing.assert_array_equal(found.metrics["loss"], same.metrics["loss"])


@pytest.mark.slow
def test_a_killed_solution_goes_on_in_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.exact.checkpoint.SAVE_EVERY_S", 0.0)
    raw = {"law": "sparsity_iso", "tokens": [10**9, 10**11], "baselines": [], "default_budget": "none", "space": TINY}
    problem, kept = assemble(raw, {}).problem, ["{}"]
    rules = (PickRule(Budget("memory_gb", 0.2)),)  # which no member of the frontier need be
    with by_parts(small_steps=True):
        expected = solve(problem, rules)
        deaths = 0
        while deaths < LARGEST_DEATHS:
            try:
                found = solve(problem, rules, checkpoint=SolverCheckpoint(json.loads(kept[0]), Mortal(kept, 2)))
                break
            except Killed:
                deaths += 1
    assert deaths > 2, "killed in both settings and in the pick"
    assert len(json.loads(kept[0])) == 4, "a page for each setting's frontier and pick"
    assert found.frontier.keys.tolist() == expected.frontier.keys.tolist()
    assert [pick and pick.keys.tolist() for pick in found.picks] == [
        pick and pick.keys.tolist() for pick in expected.picks
    ]
