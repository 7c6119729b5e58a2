"""The key `chip`: chips are devices of the study, exact as any, recorded as genes, in a space too."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nas
from nas.errors import UsageError
from nas.exact.solution import solve

CHIP: dict[str, Any] = {
    "bandwidth": [50, 100, 200],
    "int8": [20, 40],
    "fp16": "int8 / 2",
    "memory": [4, 8],
    "columns": {"cost": {"formula": "0.2 * bandwidth + int8 + 3 * memory", "unit": "USD"}},
    "where": ["bandwidth <= 25 * memory"],
}


def assembled(**keys: Any) -> Any:
    return nas.load_study(**{"algo": "random", **keys}).assembled


def test_chips_are_an_axis_with_their_costs() -> None:
    study = assembled(chip=CHIP, objectives=["loss", "total_ms", "cost"], budgets={"chip_bandwidth": "100 GB/s"})
    devices = dict(study.problem.scenario.devices)
    assert "bw200_int8_20_mem4" not in devices
    assert devices["bw200_int8_40_mem8"].device.columns["cost"].value == 104.0
    assert study.problem.space.specification.axes.device == list(devices)
    assert [objective.unit for objective in study.problem.objectives] == ["nats", "ms", "USD"]


def test_a_record_makes_the_same_chips() -> None:
    study = assembled(preset="paper", chip={**CHIP, "base": "jetson_agx_orin_64gb@30w"}, objectives=["loss", "cost"])
    resolved = study.resolved()
    assert "devices" not in resolved
    assert resolved["chip"]["base"]["mode"] == "30w"
    again = assembled(**resolved)
    assert again.problem.scenario.devices == study.problem.scenario.devices
    assert again.resolved() == resolved


def test_a_space_may_hold_the_genes() -> None:
    axes = {"depth": [2, 4], "width": [256], "n_kv_heads": [4], "expert_ffn_ratio": [1.0]}
    study = assembled(space={"name": "small", "axes": axes, "chip": CHIP})
    assert dict(study.problem.scenario.devices) == dict(assembled(preset="paper", chip=CHIP).problem.scenario.devices)
    assert "chip" not in study.problem.space.mapping()


def test_one_chip_is_one_device() -> None:
    study = assembled(chip={"bandwidth": 100, "int8": 40, "fp16": 20, "memory": 8})
    assert study.problem.scenario.devices == ()
    assert study.problem.scenario.device.bandwidth == 100e9
    assert assembled(**study.resolved()).problem.scenario.device == study.problem.scenario.device


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"chip": {**CHIP, "fp16": "int9"}}, "chip.fp16: expected names of genes"),
        ({"chip": {**CHIP, "where": ["memory > 9"]}}, "chip.where.0: expected a chip that meets it"),
        ({"chip": {**CHIP, "base": "jetson"}}, "chip.base: expected a device"),
        ({"chip": CHIP, "device": "rtx_4090"}, "device: expected device or chip, got both"),
        ({"chip": CHIP, "devices": ["rtx_4090", "rtx_3090"]}, "devices: expected devices or chip, got both"),
    ],
)
def test_mistakes_are_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        assembled(**keys)
    assert message in str(caught.value)


@pytest.mark.slow
def test_the_frontier_over_chips_is_brute_forces() -> None:
    study = assembled(chip=CHIP, precision="int8", objectives=["loss", "total_ms", "cost"], budgets={"total_ms": 300})
    problem = replace(study.problem, queries=())
    whole = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    points = np.unique(whole.values[whole.feasible], axis=0)
    found = solve(problem).frontier.values
    order = points[np.lexsort(points.T[::-1])]
    front: list[Any] = []
    for point in order:
        rivals = np.array(front) if front else np.zeros((0, 3))
        if not (rivals <= point + 1e-9 * np.abs(point)).all(axis=1).any():
            front.append(point)
    for point in front:
        assert (found <= point * (1 + 1e-9)).all(axis=1).any()
    for point in found:
        assert not ((points <= point).all(axis=1) & (points < point * (1 - 1e-9)).any(axis=1)).any()
