"""Formats, tokens and free heads in one space: every exact answer against brute force, under every shipped law and wilder ones."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from nas.exact import setting_by_setting
from nas.exact.alternative_laws import verdicts
from nas.exact.decomposition.branch_and_bound import Exceeded
from nas.exact.setting_by_setting import SettingBySetting
from nas.exact.solution import SECONDS, metrics_of, solve
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import each_setting, trained_on
from nas.search.assembly import assemble
from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from tests.nas.exact.test_alternative_laws import SHIPPED, agree, wild
from tests.nas.exact.test_random_problems import (
    Chance,
    by_parts,
    every_answer_is_brute_forces,
    frontier_agrees,
    in_formats,
)
from tests.nas.exact.test_random_problems import problem_of as random_problem
from tests.nas.exact.test_tokens import TRAINING, asked, over_tokens


def law_of(chance: Chance, every: Architectures, number: int) -> Law:
    """Every shipped law in turn, then a wild one; what few bits cost may be of tokens of its own."""
    place = number % (len(SHIPPED) + 1)
    law = wild(chance, every) if place == len(SHIPPED) else load_law(SHIPPED[place])
    return law.model_copy(update={"precision_tokens": chance.one(None, 3e10)})


def drawn(seed: int) -> tuple[Chance, Problem, Evaluations]:
    """A problem over heads, formats and tokens of one seed."""
    chance = Chance(seed)
    problem, whole = random_problem(chance, heads=True)
    law = law_of(chance, problem.architectures(whole.genotypes), seed)
    problem, whole = asked(chance, in_formats(chance, over_tokens(chance, problem, law)))
    assert {"n_heads", "precision", "tokens"} <= set(problem.space.genes)
    return chance, problem, whole


def every_answer_agrees(seed: int) -> None:
    """Frontier, picks, gains, a sweep and a diagnosis of one problem."""
    every_answer_is_brute_forces(*drawn(seed), TRAINING)


def frontiers_agree(seed: int) -> None:
    """Frontier and picks of one problem, every mechanism at work."""
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.parametrize("seed", [8000, *(pytest.param(i, marks=pytest.mark.slow) for i in range(8001, 8025))])
def test_frontiers_and_picks_over_heads_formats_and_tokens_are_those_of_brute_force(seed: int) -> None:
    frontiers_agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8500, 8513))
def test_every_answer_over_heads_formats_and_tokens_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9000, 9300))
def test_hundreds_of_frontiers_over_heads_formats_and_tokens_are_those_of_brute_force(seed: int) -> None:
    frontiers_agree(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9500, 9600))
def test_every_answer_of_a_hundred_problems_over_heads_formats_and_tokens_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8600, 8613))
def test_regrets_over_heads_formats_and_tokens_are_those_of_brute_force(seed: int) -> None:
    chance, problem, whole = drawn(seed)
    kept = tuple(b for b in problem.budgets if b.metric not in ("loss", "perplexity"))
    law, pricing_all = problem.scenario.law, replace(problem.scenario, law=load_law("sparsity_iso"))
    problem = replace(problem, budgets=kept, scenario=pricing_all)
    further = wild(chance, problem.architectures(whole.genotypes)).model_copy(
        update={"precision_law": chance.one(None, "qat", "kumar", "post_training"), "precision": law.precision}
    )
    whole = problem.evaluate(whole.genotypes)
    with by_parts(small_steps=True):
        for verdict in verdicts(problem, (law, further), (PickRule(None), *map(PickRule, kept))):
            agree(problem, (law, further), verdict, whole)


def test_a_setting_prices_few_bits_for_its_own_tokens() -> None:
    law = load_law("chinchilla_epoch").model_copy(update={"precision_law": "qat", "precision_tokens": 3e10})
    penalties = [trained_on(law, tokens).at("int4").penalty for tokens in (1e9, 1e11)]
    assert [penalty and penalty.tokens for penalty in penalties] == [1e9, 1e11]


def small(problem_of: Callable[..., Problem], **study: object) -> Problem:
    """The tests' small study in three formats."""
    return problem_of(precisions=["fp16", "int8", "int4"], baselines=[], default_budget="none", **study)


@pytest.mark.parametrize("precision_law", [["none"], pytest.param(["kumar"], marks=pytest.mark.slow)])
def test_the_order_in_which_settings_are_solved_changes_no_answer(
    precision_law: list[str], problem_of: Callable[..., Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = small(problem_of, **({} if precision_law == ["none"] else {"precision_law": precision_law}))
    rules = tuple(map(PickRule, (None, Budget("decode_ms", 5.0), Budget("memory_gb", 0.1))))
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    expected = whole.keys[frontier_rows(whole)].tolist()
    rows = [PickRule(rule.budget).row(whole) for rule in rules]
    for order in permutations(range(3)):
        monkeypatch.setattr(SettingBySetting, "_order", lambda *_, order=order: list(order))
        with by_parts(small_steps=True):
            found = solve(problem, rules)
        assert found.frontier.keys.tolist() == expected
        assert [pick and pick.keys.tolist() for pick in found.picks] == [
            None if row is None else [whole.keys[row]] for row in rows
        ]


def test_a_setting_that_another_beats_everywhere_costs_next_to_nothing() -> None:
    study = {"precisions": ["fp16", "int8", "int4"], "baselines": [], "default_budget": "none"}
    problem = assemble(study, {}).problem  # under a law that does not see precision int4 is never worse
    with by_parts(small_steps=False):
        sums = SettingBySetting(problem, metrics_of(problem, (PickRule(None),)))
        found = sums.frontier(problem.objectives, problem.budgets)
    assert found is not None
    assert [one.scenario.precision.name for one in each_setting(problem)] == ["fp16", "int8", "int4"]
    beaten, best = sums.at(0).effort.bounded, sums.at(2).effort.bounded
    assert beaten < best / 2


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_tables_that_do_not_fit_together_are_held_one_at_a_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of 20 designs over 900 settings was killed at 24 GB when it looked for the exact frontier."""
    _, problem, whole = drawn(seed)
    monkeypatch.setattr(setting_by_setting, "MOST_BACKBONES", 0)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)
    metrics = metrics_of(problem, (PickRule(None),))
    with pytest.raises(Exceeded):
        SettingBySetting(problem, metrics, most=SECONDS)
    sums = SettingBySetting(problem, metrics)
    held = [(one := sums.at(number), one.sums)[0] for number in (1, 0, 1)]
    assert held[0] is held[2]
    assert ["sums" in vars(one) for one in held] == [True, False, True]
