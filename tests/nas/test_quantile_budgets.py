"""`METRIC@qNN` is a budget on predictions, tightened by the profile's held-out errors."""

from typing import Any

import pytest

from nas.errors import UsageError
from nas.quantile_budgets import metric_of, plain_limits
from objectives.device import Calibration

PROFILE = Calibration(held_out={"prefill": [0.9, 1.0, 1.25, 2.0], "decode": [0.8, 1.0]})


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ({"prefill_ms@q50": 100.0}, {"prefill_ms": 80.0}),
        ({"prefill_ms@q90": 100.0}, {"prefill_ms": 50.0}),
        ({"decode_ms@q90": 10.0, "memory_gb": 4.0}, {"decode_ms": 10.0, "memory_gb": 4.0}),
        ({"total_ms@q90": 100.0, "total_ms": 40.0}, {"total_ms": 40.0}),
        ({"total_ms@q90": 100.0, "total_ms": 90.0}, {"total_ms": 50.0}),
        ({"total_ms@q90": None, "loss": None}, {"loss": None}),
        ({"loss@q90": 3.0, "prefill_ms@q50": 100.0}, {"loss@q90": 3.0, "prefill_ms": 80.0}),
    ],
)
def test_limits(budgets: dict[str, float | None], expected: dict[str, float | None]) -> None:
    """limit / quantile of measured / predicted, the next higher row of few; the tighter of two holds."""
    assert plain_limits(budgets, PROFILE, "note")[0] == expected


def test_what_is_said() -> None:
    """The answer names the limit, the factor and how many rows stand behind it."""
    (said,) = plain_limits({"prefill_ms@q90": 100.0}, PROFILE, "calibrated (E, int4)")[1]
    assert said.startswith("prefill_ms@q90 <= 100 is prefill_ms <= 50")
    assert "4 held-out rows" in said


def test_without_errors() -> None:
    """No profile, or one that nothing was held out of, has no quantile."""
    for profile in (None, Calibration()):
        with pytest.raises(UsageError, match="expected a calibrated profile"):
            plain_limits({"total_ms@q90": 1.0}, profile, "datasheet peaks")


@pytest.mark.parametrize("name", ["memory_gb@q90", "total_ms@90", "total_ms@q100", "total_ms@"])
def test_forms(name: str) -> None:
    """Only measured times have errors, and a quantile is below 100."""
    with pytest.raises(ValueError, match="METRIC@qNN"):
        metric_of(name)


def test_in_a_run(inside: Any) -> None:
    """A run under preset device tightens the budget, says so, and keeps the plain one in its config."""
    flags = ("--algo", "random", "--evaluations", "50", "--preset", "device", "--precision", "int4")
    answer = inside("run", *flags, "--budget", "total_ms@q90=200", "--out", "run")
    assert "total_ms@q90 <= 200 is total_ms <= 197.2" in answer.err, answer
    assert "total_ms <= 197.2" in answer.out
    refused = inside("run", "--algo", "random", "--budget", "total_ms@q90=200")
    assert refused.code == 2
    assert "expected a calibrated profile with held-out errors, got datasheet peaks" in refused.err
    wrong = inside("run", "--budget", "memory_gb@q90=3")
    assert "--budget memory_gb@q90: expected METRIC@qNN" in wrong.err
