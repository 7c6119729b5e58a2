"""What lies outside of a profile's measurements is said, and widened by what such steps were seen to miss by."""

from fractions import Fraction

import pytest

from objectives.device import Calibration
from objectives.transfers import (
    BATCH_UP,
    EXPERTS,
    FORMATS,
    LONGER,
    SHORTER,
    Conditions,
    Ratios,
    error_factor,
    extrapolations,
)

PROFILE = Calibration(precision="int4", prompts=(2048, 2048), contexts=(2049, 2049), experts=False)
INSIDE = Conditions("int4", 1, 1024, 1040)
SHARE = Fraction(8, 10)


def test_inside_nothing_is_said() -> None:
    """Within a factor of two of the lengths, at the batch and format, without experts."""
    assert extrapolations(PROFILE, INSIDE) == []
    assert extrapolations(PROFILE, Conditions("int4", 1, 4096, 4098)) == []
    assert error_factor(PROFILE, INSIDE, "prefill", SHARE) == error_factor(PROFILE, INSIDE, "decode", SHARE) == 1.0


@pytest.mark.parametrize(
    ("asked", "step", "said"),
    [
        (Conditions("int4", 8), BATCH_UP, "measured at batch 1, and prefill at batch 8 cannot be known from it"),
        (Conditions("fp16"), FORMATS, "transferred from an int4 measurement: prefill took 0.73 to 3.2 times"),
        (
            Conditions("int4", experts=True),
            EXPERTS,
            "measured without experts: with them prefill took 0.72 to 1.6 times",
        ),
    ],
)
def test_a_step_is_said_and_widens(asked: Conditions, step: object, said: str) -> None:
    """Each by what a further row stays below with the share that is asked for, at the end by the worst that was seen."""
    (transfer,) = extrapolations(PROFILE, asked)
    assert said in transfer.sentence
    for phase, ratios in step.seen.items():  # type: ignore[attr-defined]
        assert error_factor(PROFILE, asked, phase, SHARE) == pytest.approx(ratios.at(SHARE))
        assert error_factor(PROFILE, asked, phase, Fraction(99, 100)) == pytest.approx(ratios.deciles[-1])


def test_a_share_of_a_steps_rows() -> None:
    """q (n + 1)/n between deciles, in logarithms; beyond the largest there is none."""
    known = Ratios(10, tuple(float(2**i) for i in range(11)))
    assert known.at(Fraction(10, 11)) == pytest.approx(1024.0)
    assert known.at(Fraction(99, 100)) == pytest.approx(1024.0)
    assert known.at(Fraction(1, 2)) == pytest.approx(2.0**5.5)


def test_lengths_concern_their_phase() -> None:
    """A prompt that is shorter or longer widens prefill, a context decode, in proportion to its logarithm."""
    short = Conditions("int4", 1, 57, 2048)
    assert "prompts of 57 tokens are shorter than the measured 2,048" in extrapolations(PROFILE, short)[0].sentence
    assert error_factor(PROFILE, short, "prefill", SHARE) == pytest.approx(SHORTER.seen["prefill"].at(SHARE))
    assert error_factor(PROFILE, short, "decode", SHARE) == 1.0
    long = Conditions("int4", 1, 2048, 2049 * 64)
    assert error_factor(PROFILE, long, "prefill", SHARE) == 1.0
    assert error_factor(PROFILE, long, "decode", SHARE) == pytest.approx(LONGER.seen["decode"].at(SHARE) ** 2)


def test_degrees_of_a_batch() -> None:
    """1 at the profile's batch, the square at 64, the inverse direction from its own rows; steps multiply."""
    one, eight = Calibration(batch=1), Calibration(batch=8)
    for phase in ("prefill", "decode"):
        assert error_factor(one, Conditions("int4", 1), phase, SHARE) == 1.0
        assert error_factor(one, Conditions("int4", 64), phase, SHARE) == pytest.approx(
            BATCH_UP.seen[phase].at(SHARE) ** 2
        )
        assert error_factor(eight, Conditions("int4", 1), phase, SHARE) == 1.0  # faster than predicted is no doubt less
    both = error_factor(PROFILE, Conditions("int4", 8, experts=True), "prefill", SHARE)
    assert both == pytest.approx(BATCH_UP.seen["prefill"].at(SHARE) * EXPERTS.seen["prefill"].at(SHARE))


def test_what_no_data_supports_is_flagged() -> None:
    """int8 from int4 was never seen: it is said, and nothing is widened."""
    (transfer,) = extrapolations(PROFILE, Conditions("int8"))
    assert "no data says how far off" in transfer.sentence
    assert transfer.widening == {}


def test_profiles_of_old_say_nothing_of_lengths_and_experts() -> None:
    """A profile without these figures is not known to lie outside."""
    assert extrapolations(Calibration(precision="int4"), Conditions("int4", 1, 9, 99_999, experts=True)) == []
