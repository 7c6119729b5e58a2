"""`METRIC@qNN` is a budget on predictions, tightened by the profile's held-out errors."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from nas.problem.quantile_budgets import metric_of, plain_limits

from nas.errors import UsageError
from nas.problem.time_ranges import conformal_factor
from objectives.device import Calibration
from objectives.transfers import BATCH_UP, Conditions

PROFILE = Calibration(held_out={"prefill": [0.9, 1.0, 1.25, 2.0], "decode": [0.8, 1.0]})


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ({"prefill_ms@q50": 100.0}, {"prefill_ms": 80.0}),
        ({"prefill_ms@q80": 100.0}, {"prefill_ms": 50.0}),
        ({"prefill_ms@q60.0": 100.0}, {"prefill_ms": 80.0}),
        ({"prefill_ms@q60.1": 100.0}, {"prefill_ms": 50.0}),
        ({"prefill_ms@q0": 9.0}, {"prefill_ms": 10.0}),
        ({"decode_ms@q66": 10.0, "memory_gb": 4.0}, {"decode_ms": 10.0, "memory_gb": 4.0}),
        ({"total_ms@q66": 100.0, "total_ms": 40.0}, {"total_ms": 40.0}),
        ({"total_ms@q66": 100.0, "total_ms": 90.0}, {"total_ms": 50.0}),
        ({"loss@q90": 3.0, "prefill_ms@q50": 100.0}, {"loss@q90": 3.0, "prefill_ms": 80.0}),
    ],
)
def test_limits(budgets: dict[str, float], expected: dict[str, float]) -> None:
    """limit / the ratio of rank ceil((n + 1) q) among n models; the tighter of two holds."""
    assert plain_limits(budgets, PROFILE, "note")[0] == expected


def test_what_is_said() -> None:
    """The answer names the limit, the factor and how many rows stand behind it."""
    (said,) = plain_limits({"prefill_ms@q80": 100.0}, PROFILE, "calibrated (E, int4)")[1]
    assert said.startswith("prefill_ms@q80 <= 100 is prefill_ms <= 50")
    assert "at most 2 with probability 80 %, from 4 models held out" in said


@pytest.mark.parametrize(
    ("name", "largest", "models"),
    [("prefill_ms@q90", "q80", 4), ("prefill_ms@q80.1", "q80", 4), ("total_ms@q67", "q66.6", 2)],
)
def test_more_than_the_models_can_claim(name: str, largest: str, models: int) -> None:
    """Four models claim 80 % and no more; the message names the largest quantile, which is then accepted."""
    message = f"expected at most {largest}, which is what {models} models held out can claim"
    with pytest.raises(UsageError, match=message):
        plain_limits({name: 100.0}, PROFILE, "note")
    assert plain_limits({f"{name.partition('@')[0]}@{largest}": 100.0}, PROFILE, "note")[0]


def test_rows_of_one_model_are_one_model() -> None:
    """Eight rows of two models claim what two models do."""
    profile = Calibration(held_out={"decode": [0.9 + 0.05 * i for i in range(8)]}, held_out_models=2)
    with pytest.raises(UsageError, match=r"q66\.6, which is what 2 models"):
        plain_limits({"decode_ms@q80": 1.0}, profile, "note")


def test_another_batch_widens() -> None:
    """At batch 8 of a profile measured at batch 1 the factor grows by the worst that such a change was seen to miss by."""
    plain = plain_limits({"prefill_ms@q80": 100.0}, PROFILE, "note")[0]["prefill_ms"]
    limits, (said,) = plain_limits({"prefill_ms@q80": 100.0}, PROFILE, "note", Conditions(PROFILE.precision, batch=8))
    assert plain is not None
    assert limits["prefill_ms"] == pytest.approx(plain / BATCH_UP.seen["prefill"][1])
    assert "times 4.22 for what was not measured" in said


@pytest.mark.parametrize(("models", "share"), [(4, "0.8"), (9, "0.9"), (9, "0.75"), (19, "0.9")])
@pytest.mark.parametrize("phases", [1, 2])
def test_real_coverage(models: int, share: str, phases: int) -> None:
    """Over many draws an unseen model's total time is within the factor at least as often as claimed.

    Errors of the two phases of a model depend on one another; the total weighs them in any way.
    """
    rng, trials = np.random.default_rng(0), 10_000
    common = rng.normal(0.0, 0.3, (trials, models + 1, 1))
    ratios = np.exp(common + rng.normal(0.0, 0.3, (trials, models + 1, phases)))
    weights = rng.dirichlet([0.3] * phases, trials)
    covered = 0
    for held_out, unseen, weight in zip(ratios[:, :-1], ratios[:, -1], weights, strict=True):
        factor = conformal_factor(held_out.ravel().tolist(), models, Fraction(share))
        assert factor is not None
        covered += bool(unseen @ weight <= factor)
    spread = 3 * (0.25 / trials) ** 0.5
    assert covered / trials >= float(share) - spread
    if phases == 1:
        assert covered / trials <= float(share) + 1 / (models + 1) + spread


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


EXTRAPOLATED = "times are extrapolated: measured without experts: with them prefill took 0.72 to 1.6 times"


def test_in_a_run(inside: Any) -> None:
    """A run under preset device tightens the budget, says so, and keeps the plain one in its config."""
    flags = ("--algo", "random", "--evaluations", "50", "--preset", "device", "--precision", "int4")
    answer = inside("run", *flags, "--budget", "total_ms@q80=200", "--out", "run")
    assert "total_ms@q80 <= 200 is total_ms <= 121:" in answer.err, answer
    assert "of every design, since the space has experts; in a space of dense designs alone times 1" in answer.err
    assert "total_ms <= 121.0" in answer.out
    assert answer.err.count(EXTRAPOLATED) == 1
    assert EXTRAPOLATED in inside("select", "run").err
    assert EXTRAPOLATED in inside("explain", "run", "--json").out
    refused = inside("run", *flags, "--budget", "total_ms@q90=200", "--out", "other")
    assert refused.code == 2
    assert "expected at most q80, which is what 4 models held out can claim, got q90" in refused.err
    refused = inside("run", "--algo", "random", "--budget", "total_ms@q80=200")
    assert refused.code == 2
    assert "expected a calibrated profile with held-out errors, got datasheet peaks" in refused.err
    wrong = inside("run", "--budget", "memory_gb@q90=3")
    assert "--budget memory_gb@q90: expected METRIC@qNN" in wrong.err
