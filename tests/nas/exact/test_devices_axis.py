"""Several devices as an axis: every exact answer against brute force, and every design as its own device prices it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nas
from nas.errors import UsageError
from nas.exact import solution as exact_solution
from nas.exact.solution import solve, way_of
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import each_setting, in_all_settings
from objectives.device import Calibration
from objectives.scenario import Scenario
from search_spaces.space import SearchSpace
from tests.nas.exact.test_random_problems import Chance, by_parts, every_answer_is_brute_forces, frontier_agrees
from tests.nas.exact.test_tokens import TINY, asked
from tests.nas.exact.test_vocabularies import over_tokens_and_formats

FAST = (9501, 9502, 9503)  # formats among them; the others are slow
SEEDS = [pytest.param(i, marks=() if i in FAST else pytest.mark.slow) for i in range(9501, 9521)]
SHARES = ("memory_share", "resident_share")


def board_of(chance: Chance, scenario: Scenario) -> Scenario:
    """A scenario on a device with other figures, and another profile or load."""
    device = scenario.device
    peaks = {name: device.peak(name) * chance.share(0.2, 3.0) for name in ("fp16", "int8") if name in device.mapping()}
    figures = {"bandwidth": device.bandwidth * chance.share(0.2, 3.0), "memory": device.memory * chance.share(0.01, 2)}
    profile = chance.one(scenario.calibration if scenario.energy else None, scenario.calibration)
    profile = profile and profile.model_copy(update={"overhead": chance.share(0.0, 0.01)})
    placed = replace(scenario, device=device.model_copy(update={**peaks, **figures}), calibration=profile)
    return replace(placed, formats=tuple(board_of(chance, each) for each in scenario.formats))


def on_devices(chance: Chance, problem: Problem) -> Problem:
    """The problem with two to four devices as an axis."""
    scenario = problem.scenario
    names = chance.few(["left", "right@15w", "third", "fourth"], 2, 4)
    first, *others = names
    devices = ((first, scenario), *((name, board_of(chance, scenario)) for name in others))
    mapping = problem.space.mapping()
    mapping["axes"]["device"] = names
    columns = tuple(dict.fromkeys([*problem.columns, *SHARES]))
    return replace(
        problem, space=SearchSpace.from_mapping(mapping), scenario=replace(scenario, devices=devices), columns=columns
    )


def drawn(seed: int) -> tuple[Chance, Problem, Evaluations]:
    """A problem over devices and tokens of one seed, a third of them over formats as well."""
    chance = Chance(seed)
    return chance, *asked(chance, on_devices(chance, over_tokens_and_formats(chance, seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_frontiers_over_devices_are_those_of_brute_force(seed: int) -> None:
    _, problem, whole = drawn(seed)
    with by_parts(small_steps=True):
        frontier_agrees(problem, whole)


@pytest.mark.parametrize("seed", [9501, 9504])
def test_every_design_is_priced_as_its_own_device_prices_it(seed: int) -> None:
    _, problem, whole = drawn(seed)
    for number, one in enumerate(each_setting(problem)):
        alone = replace(one, scenario=replace(one.scenario, devices=()))
        there = in_all_settings(alone.evaluate(alone.space.genotypes(np.arange(alone.space.size))), number, problem)
        assert len(there) * len(each_setting(problem)) == len(whole)
        for name, values in there.metrics.items():
            np.testing.assert_allclose(values, whole.metrics[name][there.keys], rtol=1e-12, err_msg=name)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(9600, 9800))
def test_every_answer_of_200_problems_is_that_of_brute_force(seed: int) -> None:
    every_answer_is_brute_forces(*drawn(seed), SHARES)


CHIPS = {
    "bandwidth": {"from": "40 GB/s", "to": "160 GB/s", "step": "40 GB/s"},
    "int8": [10, 20, 40],
    "fp16": "int8 / 2",
    "memory": [1, 4],
    "columns": {"cost": "0.2 * bandwidth + int8 + 4 * memory", "area": "int8 + (memory - 2) ** 2"},
}
ASKED: list[dict[str, Any]] = [
    {"objectives": ["loss", "total_ms", "cost"]},
    {"objectives": ["loss", "cost", "area"], "budgets": {"total_ms": 100}},
    {"objectives": ["loss", "total_ms"], "budgets": {"cost": 60, "loss": 3.6}},
    {"objectives": ["decode_ms", "loss"], "budgets": {"resident_share": 0.5}, "default_budget": "none"},
    {"objectives": ["loss", "total_ms", "cost"], "latency": "closed_form", "precision": "fp16"},
]


def over_chips(**keys: Any) -> Problem:
    """A tiny problem over two dozen chips."""
    tiny = {"name": "tiny", "axes": TINY["axes"]}
    return nas.load_study(preset="paper", space=tiny, chip=CHIPS, algo="exact", **{"precision": "int8", **keys}).problem


@pytest.mark.slow
@pytest.mark.parametrize("keys", ASKED)
def test_many_devices_solved_one_by_one_are_those_of_every_pair(keys: dict[str, Any]) -> None:
    problem = over_chips(**keys)
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    rule = PickRule(Budget("decode_ms", float(np.median(whole.metrics["decode_ms"]))))
    with by_parts(small_steps=True):
        found = solve(problem, (PickRule(None), rule))
    best = whole[frontier_rows(whole)]
    np.testing.assert_allclose(np.unique(found.frontier.values, axis=0), np.unique(best.values, axis=0), rtol=1e-9)
    members = set(zip(*found.frontier.genotypes.T.tolist(), strict=True))
    assert members == set(zip(*best.genotypes.T.tolist(), strict=True))  # with all ties
    assert "covered by sums of parts: " in found.explanation
    for pick, ruled in zip(found.picks, (PickRule(None), rule), strict=True):
        row = ruled.row(whole)
        assert (pick is None) == (row is None)
        if pick is not None and row is not None:
            assert pick.metrics["loss"][0] == pytest.approx(whole.metrics["loss"][row], rel=1e-12)
            assert pick.metrics["total_ms"][0] == pytest.approx(whole.metrics["total_ms"][row], rel=1e-9)


def test_too_many_chips_to_solve_one_by_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = over_chips()
    monkeypatch.setattr(exact_solution, "LARGEST", problem.space.size)
    with by_parts(small_steps=False):
        assert way_of(problem)[0] == "parts"
        monkeypatch.setattr(exact_solution, "LARGEST", problem.space.size - 1)
        said = r"more than 12 devices solved one by one, got [\d,]+ on 24; take a smaller space, fewer devices"
        with pytest.raises(UsageError, match=said):
            solve(problem)
        few = nas.load_study(
            preset="paper", devices=["rtx_4090", "m4_10c"], space={"name": "tiny", "axes": TINY["axes"]}
        ).problem
        monkeypatch.setattr(exact_solution, "LARGEST", 1)
        assert way_of(few)[0] == "parts"
        first, *others = problem.scenario.devices
        loaded = replace(others[0][1], calibration=Calibration(overhead=0.01))
        unlike = (first, (others[0][0], loaded), *others[1:])
        boards = replace(problem, scenario=replace(problem.scenario, devices=unlike))
        assert way_of(boards)[0] == "parts"  # boards, each with its own profile
