"""Tokens drafted ahead, experts in slow memory and a chip for prompts, as axes and as settings of all designs: every exact answer against brute force."""

from dataclasses import replace

import pytest

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.study.catalogue import load_device
from objectives.device import SlowMemory
from objectives.scenario import Scenario
from objectives.serving import Acceptance, HotExperts, Serving
from search_spaces.architectures import one
from search_spaces.space import SearchSpace
from tests.nas.exact.test_random_problems import (
    Chance,
    by_parts,
    every_answer_is_brute_forces,
    frontier_agrees,
)
from tests.nas.exact.test_tokens import asked
from tests.nas.exact.test_vocabularies import over_tokens_and_formats

FAST = (9101, 9102, 9103)  # formats and a draft model among them; the others are slow
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(9101, 9121)]
DRAFT = {"depth": 3, "width": 256, "n_kv_heads": 2, "expert_size": 512}


def served(chance: Chance, problem: Problem) -> Problem:
    """The problem with one way of drafting and one place of experts, or several of either as axes."""
    mapping, scenario = problem.space.mapping(), problem.scenario
    ways = chance.few(["none", "mtp:1", "mtp:3", "draft:2", "draft:5"], 1, 3) or ["mtp:2"]
    places = chance.few(["fast", "slow:25%", "slow:100%"], 1, 2) or ["slow:50%"]
    given = {"speculation": ways, "experts_in": places}
    mapping["axes"] |= {name: words for name, words in given.items() if len(words) > 1}
    slow = SlowMemory(
        bandwidth=f"{chance.share(5, 60):g} GB/s",
        capacity="64 GB",
        link=chance.one(None, "12 GB/s"),
        fp16=chance.one(None, "1 TFLOP/s"),
        overhead=chance.one(0.0, "0.05 ms"),
    )
    device = scenario.device.model_copy(update={"slow_memory": slow})
    formats = tuple(_without_cache(replace(each, device=device)) for each in scenario.formats)
    reader = replace(scenario, device=load_device("jetson_agx_thor"), calibration=None)
    link = Serving(link=chance.one(0.0, 1e10))  # beside energy, which is of one chip, there is none
    serving = Serving(
        acceptance={"mtp": Acceptance(shares={1: 0.86, 3: 0.7}), "draft": Acceptance(chance.share(0.4, 0.9))},
        draft=one(DRAFT),
        hot=HotExperts(chance.one(0.0, 0.3), chance.one(0.0, 0.5), chance.one(0.0, 0.25)),
        position_cost=chance.one(None, 0.166),
        position_bits=0.75,
        position_overlap=chance.one(0.0, 0.45),
        mtp_nats=chance.one(0.0, -0.0126),
        prompts=None if scenario.energy else chance.one(None, replace(reader, serving=link)),
        **{name: words[0] for name, words in given.items() if len(words) == 1},
    )
    placed = _without_cache(replace(scenario, device=device, formats=formats)).served(serving)
    of_slow = () if "fast" in places else ("slow_gb",)  # else 0, which is no limit
    columns = tuple(dict.fromkeys((*problem.columns, *of_slow, "train_flops", "lifetime_flops")))
    return replace(problem, space=SearchSpace.from_mapping(mapping), scenario=placed, columns=columns)


def _without_cache(scenario: Scenario) -> Scenario:
    """A study refuses a cache tier beside what is served so."""
    calibration = scenario.calibration and scenario.calibration.model_copy(update={"cache_efficiency": None})
    return replace(scenario, calibration=calibration)


def drawn(seed: int) -> tuple[Chance, Problem, Evaluations]:
    """A problem of one seed, over tokens too, a third of them over formats."""
    chance = Chance(seed)
    return chance, *asked(chance, served(chance, over_tokens_and_formats(chance, seed)))


def answers_agree(seed: int) -> None:
    """Frontier, picks, gains, a sweep and a diagnosis of one problem."""
    every_answer_is_brute_forces(*drawn(seed), ("train_flops",))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_frontiers_of_served_designs_are_those_of_brute_force(seed: int) -> None:
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9300, 9500))
def test_every_answer_of_200_problems_is_that_of_brute_force(seed: int) -> None:
    answers_agree(seed)
