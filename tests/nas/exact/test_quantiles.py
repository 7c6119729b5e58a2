"""Times and energies at a quantile, each design by its own factor, against brute force: frontiers, picks, budgets, diagnoses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, built_in
from nas.problem.problem import Problem
from objectives.device import Calibration, Energy
from objectives.scenario import Scenario
from tests.nas.exact.test_random_problems import (
    Chance,
    by_parts,
    calibration_of,
    diagnosis_agrees,
    frontier_agrees,
    gains_agree,
    problem_of,
    sweep_agrees,
)
from tests.nas.exact.test_vocabularies import over_vocabularies

KINDS = ("plain", "plain", "heads", "layers", "formats", "formats", "typical", "vocabularies")
TIMES = ("prefill_ms", "ttft_ms", "decode_ms", "tpot_ms", "total_ms")
FAST = range(9304, 9312)  # one of each kind
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(9304, 9344)]


def profile_of(chance: Chance, *, typical: bool) -> Calibration:
    """Any coefficients, with errors of both phases, of dense models or of some with experts, at a batch and lengths of its own."""
    errors = {phase: np.exp(chance.generator.normal(0.0, 0.3, 20)).tolist() for phase in ("prefill", "decode")}
    measured = {"experts": chance.one(False, False, True), "batch": chance.one(1, 4), "prompts": (64, 512)}
    known: dict[str, Any] = {"held_out": errors, "held_out_models": chance.one(5, 10, 20), "precision": "fp16"}
    known |= {"typical": "gpu"} if typical else {**measured, "contexts": (64, chance.one(64, 2048))}
    return Calibration.model_validate(calibration_of(chance) | known)


def with_errors(chance: Chance, scenario: Scenario, *, typical: bool = False) -> Scenario:
    """The scenario with a profile and coefficients of energy of which something was held out; its cache stays."""
    old, profile = scenario.calibration, profile_of(chance, typical=typical)
    if old is not None and old.cache_efficiency is not None:
        profile = profile.model_copy(update={"cache_efficiency": old.cache_efficiency})
    joules = Energy(base_power=1.0, per_flop=1e-12, per_byte=1e-10, held_out=[0.7, 1.1, 1.3, 0.9, chance.share(1, 3)])
    return replace(scenario, calibration=profile, energy=joules)


def quantile_problem(seed: int) -> tuple[Problem, Evaluations]:
    """A problem of one to three objectives and none to three budgets, some at a quantile, and its whole space evaluated."""
    chance, kind = Chance(seed), KINDS[seed % len(KINDS)]
    problem, _ = problem_of(chance, heads=kind == "heads", layers=kind == "layers", formats=kind == "formats")
    while problem.scenario.latency == "closed_form":
        problem, _ = problem_of(chance, heads=kind == "heads", layers=kind == "layers", formats=kind == "formats")
    scenario = with_errors(chance, problem.scenario, typical=kind == "typical")
    formats = tuple(with_errors(chance, each) for each in problem.scenario.formats)
    problem = replace(problem, scenario=replace(scenario, formats=formats), objectives=(), budgets=(), columns=())
    if kind == "vocabularies":
        problem = over_vocabularies(chance, problem)
    levels = chance.few((0, 20, 50, 80, 83.3), 1, 2)
    of_text = ("ms_per_kilobyte", "energy_per_kilobyte") if kind == "vocabularies" else ()
    joules = [] if problem.scenario.sustained else [name for name in ("energy_j", *of_text) if "energy" in name]
    names = (
        *TIMES,
        *(name for name in of_text if "energy" not in name),
        *joules,
    )  # at sustained load nothing was metered
    measured = [f"{name}@q{level:g}" for name in names for level in levels]
    every = problem.space.genotypes(np.arange(problem.space.size))
    whole = problem.evaluate(every, (*problem.metric_names, *measured))
    pool, usable = chance.generator.permutation(problem.metric_names).tolist(), np.flatnonzero(whole.ok).tolist()
    objectives = tuple(dict.fromkeys(chance.few([chance.one(*measured), *pool[:2]], 1, 3)))
    limited = [chance.one(*measured), *chance.few([*pool, *measured], 0, 2)] if usable else []
    budgets = tuple(Budget(name, float(whole.metrics[name][chance.one(*usable)])) for name in dict.fromkeys(limited))
    problem = replace(problem, objectives=tuple(map(built_in, objectives)), budgets=budgets)
    return problem, replace(whole, objectives=objectives, budgets=budgets)


def quantiles_agree(seed: int) -> None:
    problem, whole = quantile_problem(seed)
    chance = Chance(seed)
    with by_parts(small_steps=seed % 3 > 0):
        frontier_agrees(problem, whole)
        if not problem.space.settings and seed % 3 == 0:
            gains_agree(problem, whole)
            sweep_agrees(problem, whole, chance.one(*(name for name in whole.metrics if "@" in name)))
            diagnosis_agrees(problem, whole, [chance.share(0.3, 1.0) for _ in range(4)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_answers_at_quantiles_are_those_of_brute_force(seed: int) -> None:
    quantiles_agree(seed)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9344, 9600))
def test_hundreds_of_answers_at_quantiles_are_those_of_brute_force(seed: int) -> None:
    quantiles_agree(seed)
