"""Metrics of energy: time and work add up, whole and in parts; nothing without coefficients and calibrated times."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nas.problem.breakdown import operator_columns
from objectives.assessment import Assessment
from objectives.device import Calibration, Device, Energy
from objectives.parts import PartAssessment
from objectives.precision import PRECISIONS
from objectives.profile_choice import energy_for, energy_unseen
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures

Draw = Callable[..., Architectures]
KNOWN = Energy(base_power="2 W", per_flop="5 pJ", per_byte="40 pJ")
TIMES = Calibration(compute_efficiency=0.4, bandwidth_efficiency=0.6, overhead="9 us", request_overhead="3 ms")
SCENARIOS = (
    {},
    {"precision": PRECISIONS["int8"], "complete": True, "causal": True, "attention": "fused"},
    {"batch": 3, "output_tokens": 1, "attention": "fused"},
)


@pytest.fixture(params=SCENARIOS, ids=lambda options: ", ".join(options) or "plain")
def scenario(request: pytest.FixtureRequest, case: Any) -> Scenario:
    """A scenario whose energy is known."""
    options: dict[str, Any] = {"input_tokens": 70, "output_tokens": 9, **request.param}
    return replace(case.scenario, **options, calibration=TIMES, energy=KNOWN)


def test_joules_are_time_and_work(scenario: Scenario, random_architectures: Draw) -> None:
    architectures = random_architectures(40, 5)
    found = Assessment(architectures, scenario)
    operators = [o for phase in operator_columns(scenario, architectures).values() for o in phase]
    epilogues = sum(o.ms_by_kind["epilogue"] for o in operators) * 1e-3 / scenario.seconds_per_flop("fp16")
    flops, moved = (sum(getattr(o, name) for o in operators) for name in ("gflop", "mb"))
    joules = 2e-3 * found["total_ms"] + 5e-12 * (1e9 * flops + epilogues) + 40e-12 * 1e6 * moved
    np.testing.assert_allclose(found["energy_j"], joules, rtol=1e-12)
    np.testing.assert_allclose(found["power_w"], 1e3 * joules / found["total_ms"], rtol=1e-12)
    tokens = scenario.batch * scenario.output_tokens
    np.testing.assert_allclose(found["tokens_per_joule"], tokens / joules, rtol=1e-12)


def test_more_of_anything_takes_more(scenario: Scenario, random_architectures: Draw) -> None:
    architectures = random_architectures(40, 6)
    deeper = Architectures.from_shape(
        {name: getattr(architectures, name) + (name == "depth") for name in ("depth", "width", "head_dim", "n_heads")}
        | {name: getattr(architectures, name) for name in ("n_kv_heads", "n_experts", "top_k", "expert_size")}
    )
    plain = Architectures.from_shape(
        {name: getattr(architectures, name) for name in ("depth", "width", "head_dim", "n_heads", "n_kv_heads")}
        | {name: getattr(architectures, name) for name in ("n_experts", "top_k", "expert_size")}
    )
    assert (Assessment(deeper, scenario)["energy_j"] > Assessment(plain, scenario)["energy_j"]).all()


@pytest.mark.parametrize("part", ["base", "attention", "ffn"])
def test_a_part_has_no_negative_share(part: Any, scenario: Scenario, random_architectures: Draw) -> None:
    share = PartAssessment(random_architectures(10, 7), scenario, part)["energy_j"]
    assert all((term >= 0).all() for term in (*share.per_layer, *share.once))


@pytest.mark.parametrize("metric", ["energy_j", "power_w", "tokens_per_joule"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"calibration": TIMES}, "expected a device with energy coefficients in its power mode, got"),
        ({"energy": KNOWN}, "expected calibrated times"),
    ],
)
def test_unknown_energy_is_refused_by_name(
    metric: str, options: dict[str, Any], reason: str, case: Any, random_architectures: Draw
) -> None:
    with pytest.raises(ValueError, match=f"energy_j: {reason}"):
        Assessment(random_architectures(2, 1), replace(case.scenario, **options))[metric]


def test_units_are_read_as_people_write_them() -> None:
    assert (KNOWN.base_power, KNOWN.per_flop, KNOWN.per_byte) == (2.0, 5e-12, 4e-11)
    assert Energy(base_power="800 mW", per_flop="3e-12 J", per_byte=0).base_power == 0.8
    for wrong in ("3 Wh", "-1 W", "fast"):
        with pytest.raises(ValueError, match="expected"):
            Energy(base_power=wrong)


def test_the_coefficients_of_the_mode_the_engine_and_the_precision_are_taken() -> None:
    kinds = [
        Energy(engine="A", precisions=["int4"], held_out_error=0.1),
        Energy(engine="B", precisions=["int4"], held_out_error=0.2),
        Energy(engine="B", precisions=["fp16"], held_out_error=0.3),
        Energy(engine="B", mode="eco", precisions=["fp16"]),
    ]
    board = Device(name="b", fp16=1, int8=2, bandwidth=10, memory=8, energy=kinds, modes={"eco": {}, "off": {}})
    assert energy_for(board, None, "int4", 1) is kinds[0]
    assert energy_for(board, Calibration(engine="B"), "fp16", 1) is kinds[2]
    assert energy_for(board.in_mode("eco"), Calibration(engine="A"), "int4", 1) is kinds[3]
    assert energy_for(board.in_mode("off"), None, "int4", 1) is None
    assert Device.model_validate(board.mapping()) == board


def test_what_was_not_metered_is_named() -> None:
    seen = Energy(precisions=["int4"], batches=[1], most_tokens=2000)
    assert energy_unseen(seen, "int4", 1, 2000, experts=False) == ""
    said = energy_unseen(seen, "fp16", 8, 2001, experts=True)
    assert all(word in said for word in ("batch 8", "2,001 tokens", "fp16", "experts"))
    assert energy_unseen(Energy(experts=True), "fp16", 8, 2001, experts=True) == ""
