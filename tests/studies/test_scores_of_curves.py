"""Curves of scores: what they give, differences that noise covers, what lies outside of their table."""

import numpy as np
import pytest

from search_spaces.arrays import FloatArray
from studies.scores.curves import FamilyCurve, Scores, difference, interval, steps


def curve_of(draws: FloatArray, chance: float = 0.0, top: float = 1.0) -> FamilyCurve:
    rows = [(float(a), float(b), float(c)) for a, b, c in draws]
    return FamilyCurve(tasks=["task"], chance=chance, top=top, models=9, draws=rows)


def test_scores_stay_between_chance_and_top_and_fall_with_bits() -> None:
    curve = curve_of(np.array([[0.3, 5.0, 0.02], [-0.2, 7.0, 0.05]]), 25.0, 100.0)
    offset = np.linspace(-2, 2, 41)
    expected = curve.scores(offset)
    assert (expected >= 25.0).all()
    assert (expected <= 100.0).all()
    assert (np.diff(expected, axis=1) <= 0).all()
    assert curve.changes(expected)[:, 20] == pytest.approx(
        (curve.scores(np.array([-1e-6])) - curve.scores(np.array([1e-6])))[:, 0] / 2e-6, rel=1e-4
    )


def test_a_difference_smaller_than_the_noise_is_none() -> None:
    curve = curve_of(np.column_stack([np.linspace(-0.6, 0.6, 50), np.full(50, 5.0), np.full(50, 0.02)]))
    offset = np.array([0.0, 0.01, 0.3])
    assert difference(curve, offset, None, 0, 1) is None
    assert difference(curve, offset, None, 1, 1) is None
    value, low, high = difference(curve, offset, None, 0, 2) or (0.0, 0.0, 0.0)
    assert 0 < low < value < high
    mirrored = difference(curve, offset, None, 2, 0)
    assert mirrored is not None
    assert mirrored[0] == pytest.approx(-value)
    assert difference(curve, offset, np.full(3, 0.2), 0, 2) is None  # the law's misfit in bits is noise too


def test_the_level_of_a_laboratory_is_shared_by_both_designs() -> None:
    curve = curve_of(np.column_stack([np.linspace(-2, 2, 50), np.full(50, 5.0), np.full(50, 0.004)]))
    _, low, high = interval(curve, np.array([0.0, 0.2]))
    assert low[0] < high[1]  # the intervals of both overlap widely
    assert difference(curve, np.array([0.0, 0.2]), None, 0, 1) is not None


def test_steps_hold_what_a_score_does_not_tell_apart() -> None:
    curve = curve_of(np.array([[0.0, 5.0, 0.02]] * 4))
    found = steps(curve, np.array([0.3, 0.0, 0.305, 0.004, 0.15]), None)
    assert found.tolist() == [2, 0, 2, 0, 1]
    assert steps(curve, np.zeros(0), None).tolist() == []


def test_bits_outside_of_the_table_are_said() -> None:
    scores = Scores(
        name="t", centre=0.9, fitted_on=(0.7, 1.1), models=9, laboratories=["a"], new_laboratory=False,
        families={"f": curve_of(np.array([[0.0, 5.0, 0.02]]))},
    )  # fmt: skip
    assert scores.outside(np.array([0.69, 0.7, 1.1, 1.2])).tolist() == [True, False, False, True]
    assert Scores.model_validate(scores.mapping()) == scores
