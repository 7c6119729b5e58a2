"""Ranges of measured times: ranks of what was held out, what is typical of a class, conditions outside of what was measured."""

from fractions import Fraction

import pytest

from nas.problem.quantiles import Range, phase_range, share_of, time_ranges
from nas.study.catalogue import load_device, load_law
from objectives.device import Calibration
from objectives.measured_bounds import conformal_factor
from objectives.scenario import Scenario
from objectives.transfers import EXPERTS
from search_spaces.architectures import one

SHAPE = {"depth": 2, "width": 64, "head_dim": 32, "n_kv_heads": 1, "expert_size": 64}


def profile(n: int, **changes: object) -> Calibration:
    """Measured / predicted of 1, 2, … n in both phases."""
    ratios = [float(i) for i in range(1, n + 1)]
    return Calibration.model_validate(
        {"held_out": {"prefill": ratios, "decode": ratios}, "held_out_models": n} | changes
    )


@pytest.mark.parametrize(
    ("models", "least", "most", "share"),
    [(19, 2.0, 18.0, "8/10"), (9, 1.0, 9.0, "8/10"), (4, 1.0, 4.0, "6/10"), (1, 1.0, 1.0, "0")],
)
def test_ranks_hold_as_many_further_models_as_they_claim(models: int, least: float, most: float, share: str) -> None:
    """Of n models the i-th smallest and the i-th largest hold 1 − 2i/(n + 1) of further ones."""
    assert phase_range(profile(models), "decode") == Range(least, most, Fraction(share))


def test_of_a_class_the_quantile_is_of_its_devices() -> None:
    """Of 19 devices with five ratios each: what is outside for one of twenty on either side, of 95 ratios five times as many less five."""
    typical = profile(95, held_out_models=19, typical="gpu")
    assert phase_range(typical, "decode") == Range(6.0, 90.0, Fraction(8, 10))
    ratios = typical.held_out["decode"]
    assert conformal_factor(ratios, 19, Fraction(9, 10), rows=95) == 90.0
    assert conformal_factor(ratios, 19, Fraction(96, 100), rows=95) is None
    assert conformal_factor(ratios, 19, Fraction(0), rows=95) == 1.0


def test_nothing_held_out_is_no_range() -> None:
    assert phase_range(Calibration(), "decode") is None


def scenario(known: Calibration) -> Scenario:
    """A board with a profile."""
    return Scenario(load_law("hw_codesign"), load_device("raspberry_pi_5"), calibration=known)


def test_times_of_a_design_and_its_rate() -> None:
    """A total has both phases at the same end; a rate falls as its time rises."""
    board, dense = scenario(profile(9)), one(SHAPE)
    times = {
        "prefill_ms": 3.0,
        "decode_ms": 2.0,
        "tpot_ms": 0.5,
        "total_ms": 5.0,
        "tokens_per_second": 2000.0,
        "loss": 3.0,
    }
    assert time_ranges(board, dense, times) == {
        "prefill_ms": (3.0, 27.0),
        "decode_ms": (2.0, 18.0),
        "tpot_ms": (0.5, 4.5),
        "total_ms": (5.0, 45.0),
        "tokens_per_second": (2000.0 / 9.0, 2000.0),
    }
    assert share_of(board, dense) == 80


def test_experts_widen_the_range_of_designs_that_have_them() -> None:
    """A profile measured without experts: the upper end of a design with some is later, that of a dense one is not."""
    board = scenario(profile(9, experts=False))
    dense, sparse = (one(SHAPE | {"n_experts": e}) for e in (1, 8))
    times = {"prefill_ms": 1.0, "decode_ms": 1.0}
    assert time_ranges(board, dense, times)["decode_ms"] == (1.0, 9.0)
    assert time_ranges(board, sparse, times)["decode_ms"] == pytest.approx(
        (1.0, 9.0 * EXPERTS.seen["decode"].at(Fraction(9, 10)))
    )
