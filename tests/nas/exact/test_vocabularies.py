"""Vocabularies, tying, formats and tokens in one space: every exact answer against brute force, metrics of text among what is asked."""

from dataclasses import replace

import numpy as np
import pytest

from nas.files import yaml_source
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.study.scenarios import with_text
from nas.study.study_laws import cost_beside
from objectives.plugins import documents
from objectives.token_curve import Text, TokenCurve
from search_spaces.space import SearchSpace
from tests.nas.exact.test_random_problems import (
    Chance,
    by_parts,
    every_answer_is_brute_forces,
    frontier_agrees,
    in_formats,
)
from tests.nas.exact.test_random_problems import problem_of as random_problem
from tests.nas.exact.test_setting_by_setting import law_of
from tests.nas.exact.test_tokens import asked, over_tokens

PER_TEXT = ("bits_per_byte", "ms_per_kilobyte")
FAST = (8012, 8013)  # layers of several kinds, heads free of width with formats; the others are slow
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(8004, 8026)]


def over_vocabularies(chance: Chance, problem: Problem) -> Problem:
    """The problem with two or three vocabularies, perhaps tied or not, what they cost, and the text of metrics per byte, perhaps of requests too."""
    mapping = problem.space.mapping()
    mapping["axes"]["vocabulary"] = sorted(chance.few([2048, 4096, 16_384, 50_257, 151_936], 2, 3)) or [4096, 16_384]
    mapping["axes"] |= {"tied": [True, False]} if chance.one(True, False) else {}
    cost = cost_beside(problem.scenario.law)
    law = problem.scenario.law.model_copy(update={"vocabulary_cost": cost})
    curve = TokenCurve.model_validate(yaml_source.read(documents("objectives.token_curves")["slimpajama"])[0])
    request = chance.one((0.0, 0.0), (777.0, 0.0), (0.0, 50.0), (4000.0, 300.0))
    scenario = with_text(replace(problem.scenario, law=law), Text(curve, cost, *request), None)
    columns = (*problem.columns, *PER_TEXT)
    return replace(problem, space=SearchSpace.from_mapping(mapping), scenario=scenario, columns=columns)


def over_tokens_and_formats(chance: Chance, seed: int) -> Problem:
    """A problem over tokens in the operator model, of every third seed over formats as well."""
    problem, whole = random_problem(chance, heads=bool(seed % 2), layers=seed % 4 == 0)
    law = law_of(chance, problem.architectures(whole.genotypes), seed)
    problem = over_tokens(chance, replace(problem, scenario=replace(problem.scenario, latency="operator")), law)
    return in_formats(chance, problem) if seed % 3 == 0 else problem


def drawn(seed: int) -> tuple[Chance, Problem, Evaluations]:
    """A problem over vocabularies and tokens of one seed, a third of them over formats as well."""
    chance = Chance(seed)
    return chance, *asked(chance, over_vocabularies(chance, over_tokens_and_formats(chance, seed)))


def frontiers_agree(seed: int) -> None:
    """Frontier and picks of one problem, every mechanism at work."""
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


def every_answer_agrees(seed: int) -> None:
    """Frontier, picks, gains, a sweep and a diagnosis of one problem."""
    every_answer_is_brute_forces(*drawn(seed), PER_TEXT)


@pytest.mark.parametrize("seed", SEEDS)
def test_frontiers_and_picks_over_vocabularies_are_those_of_brute_force(seed: int) -> None:
    frontiers_agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8700, 8712))
def test_every_answer_over_vocabularies_is_that_of_brute_force(seed: int) -> None:
    every_answer_agrees(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9700, 9900))
def test_two_hundred_frontiers_over_vocabularies_are_those_of_brute_force(seed: int) -> None:
    frontiers_agree(seed)


def test_a_setting_and_a_batch_of_all_vocabularies_price_alike() -> None:
    _, problem, whole = drawn(8005)
    sizes = whole.genotypes[:, problem.space.place["vocabulary"]]
    assert len(np.unique(sizes)) > 1
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        alone = problem.evaluate(whole.genotypes[rows])
        for name in problem.metric_names:
            assert (alone.metrics[name] == whole.metrics[name][rows]).all()
