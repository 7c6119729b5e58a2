"""What more of a device buys, against studies of that device with more of it, evaluated whole."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import nas
from nas.exact.device_gains import STEP, device_gains, tokens_for, with_more
from nas.exact.gains import gains, margins_of
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.settings import trained_on
from objectives.device import Device
from tests.nas.exact.test_random_problems import by_parts

SLOW, FAST = "jetson_orin_nano_super_8gb", "jetson_agx_orin_64gb"
STUDIES: dict[str, dict[str, Any]] = {
    "time binds": {"budgets": {"total_ms": 120}},
    "memory binds": {"budgets": {"memory_gb": 0.2}},
    "typical speeds": {"preset": "device", "budgets": {"total_ms": 300}},
    "a limit at a quantile": {"preset": "device", "budgets": {"total_ms@q80": 300}},
    "law with tokens": {"law": "evidence", "tokens": "20B", "budgets": {"total_ms": 80, "memory_gb": 4}},
}


def lowest(problem: Problem, limits: tuple[Budget, ...] = ()) -> float:
    """The lowest loss within the budgets and further limits, of every architecture."""
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    rows = PickRule(None, limits).allowed(whole)
    return float(whole.metrics["loss"][rows].min())


def more(device: Device, resource: str) -> dict[str, Any]:
    """A device's content with a tenth more of a resource."""
    keys = {"compute": ("fp16", "int8"), "bandwidth": ("bandwidth",), "memory": ("memory",)}[resource]
    grown: dict[str, Any] = {key: getattr(device, key) * (1.0 + STEP) for key in keys}
    peaks = {key: value * (1.0 + STEP) for key, value in device.other_peaks.items()}
    return device.model_copy(update=grown | ({"other_peaks": peaks} if resource == "compute" else {})).mapping()


@pytest.mark.slow
@pytest.mark.parametrize("keys", STUDIES.values(), ids=STUDIES)
def test_gains_are_differences_of_answers_solved_again(keys: dict[str, Any]) -> None:
    study = nas.load_study(**{"preset": "paper", **keys}, device=SLOW)
    problem, found = study.problem, gains(study.problem)
    assert found is not None
    limits = margins_of(found.pick)
    assert bool(limits) == (keys["budgets"].keys() == {"total_ms"} and keys.get("preset") == "device")
    for gained in device_gains(problem, found.pick):
        budgets = {**keys["budgets"]}
        if gained.resource == "memory":
            budgets = {**{b.metric: b.limit for b in problem.budgets}, **budgets}
            budgets |= {n: budgets[n] * (1 + STEP) for n in ("memory_gb", "resident_gb") if n in budgets}
        again = nas.load_study(
            **{"preset": "paper", **keys, "budgets": budgets}, device=more(problem.scenario.device, gained.resource)
        )
        assert gained.nats == pytest.approx(lowest(problem, limits) - lowest(again.problem, limits), abs=1e-9), (
            gained.resource
        )


def test_tokens_lower_the_loss_as_far_as_the_device_does() -> None:
    problem = nas.load_study(preset="paper", device=SLOW, **STUDIES["law with tokens"]).problem
    found = gains(problem)
    assert found is not None
    bought = [each for each in device_gains(problem, found.pick) if each.bought is not None]
    assert bought
    law, design = problem.scenario.law, problem.architectures(found.pick.genotypes)
    for each in bought:
        assert each.tokens is not None
        assert each.bought is not None
        assert trained_on(law, law.stated_tokens * each.tokens).loss(design)[0] == pytest.approx(
            each.bought.loss, abs=1e-6
        )
    assert tokens_for(law, design, 0.0) is None


def test_of_several_devices_the_picks_own_has_more() -> None:
    problem = nas.load_study(preset="paper", devices=f"{SLOW},{FAST}", budgets={"total_ms": 120}).problem
    found = gains(problem)
    assert found is not None
    alone = nas.load_study(preset="paper", device=FAST, budgets={"total_ms": 120}).problem
    own = gains(alone)
    assert own is not None
    both = [(g.resource, g.nats) for g in device_gains(problem, found.pick)]
    assert both == [(g.resource, pytest.approx(g.nats, abs=1e-12)) for g in device_gains(alone, own.pick)]


@pytest.mark.slow
@pytest.mark.parametrize("parts", [False, True])
def test_a_budget_on_a_figure_of_devices_is_relaxed_to_the_next_that_helps(parts: bool) -> None:
    prices = {"raspberry_pi_5": 90, SLOW: 250, "rtx_4090": 1600, FAST: 2000}
    keys: dict[str, Any] = {
        "preset": "paper",
        "devices": ",".join(prices),
        "device_columns": {k: {"price": v} for k, v in prices.items()},
    }
    problem = nas.load_study(**keys, budgets={"total_ms": 120, "price": 1000}).problem
    alone = {
        name: lowest(nas.load_study(preset="paper", device=name, budgets={"total_ms": 120}).problem)
        for name in (SLOW, FAST)
    }
    with by_parts(small_steps=False) if parts else nullcontext():
        found = gains(problem)
    assert found is not None
    held = next(each for each in found.budgets if each.budget.metric == "price")
    assert found.pick.metrics["loss"][0] == pytest.approx(alone[SLOW], abs=1e-12)
    assert (held.tightest, held.relaxed and held.relaxed.at) == (250, 1600)
    assert held.relaxed is not None
    assert held.relaxed.loss <= alone[FAST] < alone[SLOW]


def test_what_is_left_over_buys_nothing() -> None:
    problem = nas.load_study(preset="paper", device=SLOW, budgets={"memory_gb": 0.1}).problem
    found = gains(problem)
    assert found is not None
    assert {g.resource: g.bought is None for g in device_gains(problem, found.pick)} == {
        "compute": True,
        "bandwidth": True,
        "memory": False,
    }
    assert with_more(problem, "memory", 2.0).budgets[0].limit == 0.2


def test_ranges_are_of_times_at_both_ends_of_what_was_measured() -> None:
    problem = nas.load_study(device=FAST, preset="device", precision="int4", budgets={"total_ms": 60}).problem
    found = gains(problem)
    assert found is not None
    for each in device_gains(problem, found.pick):
        assert each.by_range is not None
        assert 0.0 <= each.by_range[0] <= each.by_range[1]
