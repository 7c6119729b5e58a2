"""The key `sustained` of a study: exact answers, what stays without it, ranges and limits at a quantile, what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from nas.errors import UsageError
from nas.exact.decomposition.frontier import SumsOfParts
from nas.problem.evaluations import frontier_rows
from nas.problem.problem import Problem
from nas.problem.quantiles import time_ranges
from nas.record.identity import difference, fingerprints
from nas.search.assembly import Study
from objectives.device import Calibration, Sustained
from objectives.measured_bounds import factors_of, in_quadrature
from objectives.typical.sustained import slower_than, typical_of
from search_spaces.architectures import one

PHONE = {"device": "a19_pro", "precision": "q4_k_m"}
BOARD = {"name": "Fanless", "fp16": 4, "int8": 4, "bandwidth": 100, "memory": 16}
LOAD = Sustained(share=0.6, interval=(0.4, 0.8))
RATIOS = [0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0]
KNOWN = Calibration.model_validate({"held_out": {"prefill": RATIOS, "decode": RATIOS}})


@pytest.mark.parametrize("calibration", ["datasheet", "shipped", "typical"])
@pytest.mark.parametrize("device", ["a19_pro", "snapdragon_8_elite", "rtx_4090"])
def test_sums_of_parts_find_what_brute_force_finds(
    problem_of: Callable[..., Problem], device: str, calibration: str
) -> None:
    """With every calibration; losses are those of the first seconds, times longer by one factor."""
    raw = {"device": device, "calibration": calibration, "precision": "w4a16", "objectives": "loss,total_ms"}
    hot, cold = problem_of(**raw, sustained=True), problem_of(**raw)
    rows = hot.space.genotypes(np.arange(hot.space.size))
    whole, before = hot.evaluate(rows), cold.evaluate(rows)
    np.testing.assert_allclose(whole.metrics["total_ms"], before.metrics["total_ms"] * hot.scenario.slower, rtol=1e-12)
    assert (whole.metrics["loss"] == before.metrics["loss"]).all()
    found = SumsOfParts(hot, ("loss", "total_ms", "memory_gb")).frontier(hot.objectives, hot.budgets)
    assert found is not None
    assert found.keys.tolist() == whole.keys[frontier_rows(whole)].tolist()


def test_without_the_key_nothing_changes(studied: Callable[..., Study]) -> None:
    """Not a key of what a run records, nor a hash, nor a field of the scenario; an older run's device without cooling is the same."""
    plain, off = studied(**PHONE), studied(**PHONE, sustained=False)
    assert "sustained" not in plain.resolved()
    assert plain.resolved() == off.resolved()
    assert plain.problem.scenario.sustained is None
    older = plain.resolved()
    older["device"] = {key: value for key, value in older["device"].items() if key != "cooling"}
    assert difference(older, plain.resolved()) is None
    assert fingerprints(older) == fingerprints(plain.resolved())


def test_a_run_at_sustained_load_is_another_and_repeats_itself(studied: Callable[..., Study]) -> None:
    """The share in force is recorded, and taken as it is from there."""
    plain, hot = studied(**PHONE), studied(**PHONE, sustained=True)
    recorded = hot.resolved()
    assert recorded["sustained"] == typical_of("phone").model_dump(mode="json")  # type: ignore[union-attr]
    assert "scenario.sustained" in str(difference(plain.resolved(), recorded))
    assert difference(recorded, studied(**PHONE, sustained=recorded["sustained"]).resolved()) is None
    assert "sustained load, 63 % of the speed" not in plain.calibration_note
    assert any("times are of sustained load" in said for said in hot.notices)
    assert sum("burst speed" in said for said in plain.notices) == 1


def test_the_share_of_the_study_wins_over_the_files_and_that_over_the_classes(
    studied: Callable[..., Study],
) -> None:
    board = BOARD | {"cooling": "phone", "sustained": 0.8}
    shares = [
        studied(device=device, sustained=asked).problem.scenario.sustained
        for device, asked in ((board, 0.5), (board, True), (BOARD | {"cooling": "phone"}, True))
    ]
    assert shares == [Sustained(share=0.5), Sustained(share=0.8), typical_of("phone")]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"device": BOARD, "sustained": True}, "expected a device whose cooling is known, got Fanless"),
        ({"device": BOARD | {"cooling": "passive"}, "sustained": True}, "and none are of fanless devices"),
        ({"device": "a19_pro", "sustained": True, "latency": "closed_form"}, "expected operator for sustained"),
        ({"device": "a19_pro", "sustained": 1.5}, "expected at most 1, got 1.5"),
        ({"device": "a19_pro", "sustained": True, "objectives": "loss,measure"}, "got measured ones"),
        (
            {
                "device": "jetson_orin_nano_super_8gb",
                "sustained": 0.7,
                "calibration": "shipped",
                "objectives": "loss,energy_j",
            },
            "energy_j: expected times of the first seconds",
        ),
    ],
)
def test_refused_by_name(studied: Callable[..., Study], raw: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        studied(**raw)


def test_ranges_at_sustained_load_are_wider(problem_of: Callable[..., Problem]) -> None:
    """Each end and that of the share in quadrature around the median, of each phase and of a total."""
    scenario = replace(problem_of(device="a19_pro").scenario, calibration=KNOWN)
    design = one({"depth": 2, "width": 64, "head_dim": 32, "n_kv_heads": 1, "expert_size": 64})
    times = {"prefill_ms": 10.0, "total_ms": 30.0, "decode_ms": 20.0, "tokens_per_second": 50.0}
    cold = time_ranges(scenario, design, times)
    hot = time_ranges(replace(scenario, sustained=LOAD), design, times)
    assert cold["decode_ms"] == (20.0 * RATIOS[0], 20.0 * RATIOS[-1])
    middle = 1.1
    ends = (
        middle * math.exp(-math.hypot(math.log(RATIOS[0] / middle), math.log(0.8 / 0.6))),
        middle * math.exp(math.hypot(math.log(RATIOS[-1] / middle), math.log(0.6 / 0.4))),
    )
    assert hot["decode_ms"] == pytest.approx((20.0 * ends[0], 20.0 * ends[1]))
    assert hot["total_ms"] == pytest.approx((30.0 * ends[0], 30.0 * ends[1]))
    assert hot["tokens_per_second"] == pytest.approx((50.0 / ends[1], 50.0 / ends[0]))
    own = time_ranges(replace(scenario, sustained=Sustained(share=0.6)), design, times)
    assert own["decode_ms"] == pytest.approx(cold["decode_ms"])


def test_quadrature_holds_as_many_as_it_claims_where_both_are_normal() -> None:
    """Products of two lognormal factors, drawn: nine tenths are at most the quadrature of their nine-tenths quantiles."""
    generator, z = np.random.default_rng(1), 1.2815515655446004
    drawn = 1.2 * np.exp(0.3 * generator.standard_normal(400_000) + 0.2 * generator.standard_normal(400_000))
    for sign, expected in ((1.0, 0.9), (-1.0, 0.1)):
        end = in_quadrature(1.2 * math.exp(sign * 0.3 * z), 1.2, math.exp(sign * 0.2 * z))
        assert np.mean(drawn <= end) == pytest.approx(expected, abs=0.003)
    assert in_quadrature(2.0, 1.1, 1.0) == pytest.approx(2.0)
    assert in_quadrature(0.7, 1.1, 1.0) == pytest.approx(0.7)


@pytest.mark.parametrize("share", ["50", "80", "90"])
def test_times_at_a_quantile_are_later(problem_of: Callable[..., Problem], share: str) -> None:
    """By the quadrature with the share's quantile; at one half, and without an interval, by nothing."""
    scenario, level = replace(problem_of(device="a19_pro").scenario, calibration=KNOWN), Fraction(share) / 100
    loads = (None, LOAD, Sustained(share=0.6))
    cold, hot, untold = (
        factors_of("decode_ms", level, replace(scenario, sustained=load))["decode_ms"].dense for load in loads
    )
    assert hot == pytest.approx(in_quadrature(cold, 1.1, slower_than(LOAD, float(level))))
    assert (hot == pytest.approx(cold)) == (share == "50")
    assert untold == cold


@pytest.mark.slow
def test_the_commands_take_it(inside: Callable[..., Any]) -> None:
    """run, explain, devices, select and resume; of devices those of which nothing is known are left out by name."""
    ran = inside("run", "--algo", "exact", "--device", "a19_pro", "--set", "sustained=true", "--verbose", "--out", "r")
    assert ran.code == 0
    assert "sustained load, 63 % of the speed of the first seconds" in " ".join(ran.out.split())
    again = inside("run", "--resume", "r")
    assert again.code == 0
    shown = inside("explain", "--model", "qwen2.5_0.5b", "--device", "a19_pro", "--set", "sustained=true")
    assert "times are of sustained load: after minutes 63 % of the speed" in shown.out + shown.err
    several = inside("devices", "--devices", "a19_pro,raspberry_pi_5", "--set", "sustained=true", "--no-plots")
    assert several.code == 0
    assert "no share is known for raspberry_pi_5" in several.out + several.err
    none = inside("devices", "--devices", "raspberry_pi_5", "--set", "sustained=true")
    assert none.code == 2
    selected = inside("select", "r", "--select", "knee")
    assert "times are of sustained load" in selected.out + selected.err
