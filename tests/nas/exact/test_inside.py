"""What a law's rows cover as a constraint: exact answers against brute force, with random rows, ranges and hulls."""

from dataclasses import replace

import numpy as np
import pytest

from nas.exact.solution import solve
from nas.problem.evaluations import Evaluations
from nas.problem.objective import EXTRAPOLATION, Budget, built_in
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.study.catalogue import load_law
from objectives.loss_law.coverage import DesignKind, LeftBy, Region, extrapolation, kinds_of, logs_of, region_of
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from tests.nas.exact.test_joined_laws import KINDS, joined_problem
from tests.nas.exact.test_random_problems import Chance, by_parts, frontier_agrees

LEFT_OUT = ("quantile", "formats", "tokens")  # kinds of problems that add nothing here
SEEDS = [seed for seed in range(9100, 9280) if KINDS[seed % len(KINDS)] not in LEFT_OUT][:100]
FAST = 8


def region(chance: Chance, problem: Problem, designs: Architectures, kind: DesignKind) -> Region:
    """What a few random designs of a kind cover."""
    rows = np.sort(chance.generator.choice(len(designs), min(len(designs), chance.one(2, 3, 5, 12)), replace=False))
    few, law = designs[rows], problem.scenario.law

    def column(name: str) -> FloatArray | None:
        return None if chance.one(False, False, False, True) else law.feature(few, name)

    return region_of(column, kind)


def covered_problem(seed: int) -> tuple[Problem, Evaluations]:
    """A random problem whose law covers what random designs of its space do, one kind of design sometimes not at all."""
    _, problem, _ = joined_problem(seed)
    chance = Chance(seed + 7)
    every = problem.architectures(problem.space.genotypes(np.arange(problem.space.size)))
    sparse = every.n_experts > 1
    kinds: dict[DesignKind, Architectures] = {"dense": every[~sparse], "sparse": every[sparse]}
    some = [name for name, designs in kinds.items() if len(designs)]
    some = some if len(some) == 1 or chance.one(True, True, False) else [chance.one(*some)]
    covers = {name: region(chance, problem, kinds[name], name) for name in some}
    law = problem.scenario.law.model_copy(update={"covers": covers, "fitted_on": {}})
    problem = replace(problem, scenario=replace(problem.scenario, law=law))
    limit = Budget(EXTRAPOLATION, chance.one(1.0, 1.0, 1.0, 1.3))
    budgets = (*problem.budgets, limit)
    problem = replace(problem, budgets=budgets, objectives=tuple(o for o in problem.objectives if "@" not in o.name))
    problem = problem if problem.objectives else replace(problem, objectives=(built_in("loss"),))
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    return problem, whole


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=() if i < FAST else pytest.mark.slow) for i, s in enumerate(SEEDS)]
)
def test_exact_answers_inside_are_those_of_brute_force(seed: int) -> None:
    problem, whole = covered_problem(seed)
    with by_parts(small_steps=seed % 3 > 0):
        frontier_agrees(problem, whole)
        rules = (PickRule(None), PickRule(None, least=EXTRAPOLATION))
        found = solve(problem, rules).picks
    for rule, pick in zip(rules, found, strict=True):
        row = PickRule(None, least=rule.least).row(whole)
        assert (None if pick is None else pick.keys.tolist()) == (None if row is None else [whole.keys[row]])


def test_the_problems_hold_designs_on_both_sides() -> None:
    inside = [covered_problem(seed)[1].metrics[EXTRAPOLATION] for seed in SEEDS[:FAST]]
    assert any(0 < (values <= 1.0).sum() < len(values) for values in inside)
    assert all((values >= 1.0).all() for values in inside)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_whether_designs_are_inside_is_known_without_how_far_they_are(kind: DesignKind) -> None:
    law, size, generator = load_law("evidence"), 400, np.random.default_rng(0)
    covered = law.regions[kind]
    rows = np.exp(logs_of(covered.rows))
    least = dict(
        zip(covered.axes, generator.choice(rows, size).T * generator.uniform(0.5, 2.5, (1, size)), strict=True)
    )
    most = {name: values * generator.uniform(1.0, 1.5, size) for name, values in least.items()}

    def excess(left_by: LeftBy) -> FloatArray:
        experts = np.full(size, 8 if kind == "sparse" else 1)
        ends = {name: (least[name], most[name]) for name in least}
        return extrapolation(kinds_of(law.regions, experts, ends.get, {}, left_by), size)

    far, soon = excess(Region.excess), excess(Region.left)
    assert 0 < (far <= 1.0).sum() < size
    assert ((far <= 1.0) == (soon <= 1.0)).all()
    assert (soon[soon <= 1.0] == 1.0).all()
