"""Curves of scores: recovered where they are known, intervals that hold new laboratories, differences that noise covers."""

import numpy as np
import pytest

from objectives.scores.curves import FamilyCurve, Scores, difference, interval, steps
from objectives.scores.fit import Rows, drawn
from search_spaces.arrays import AnyArray, FloatArray

SLOPE, LEVEL = 6.0, -0.5


def simulated(seed: int, laboratories: int, models: int, between: float, sd: float = 0.012) -> Rows:
    """Models of laboratories whose levels differ, between 0.65 and 1.1 bits per byte."""
    generator = np.random.default_rng(seed)
    offset = generator.uniform(-0.2, 0.25, laboratories * models)
    laboratory = np.repeat(np.arange(laboratories), models)
    level = LEVEL + generator.normal(0, between, laboratories)[laboratory]
    share = 1 / (1 + np.exp(-(level - SLOPE * offset)))
    return Rows(offset, share + generator.normal(0, sd, len(offset)), laboratory)


def curve_of(draws: FloatArray, chance: float = 0.0, top: float = 1.0) -> FamilyCurve:
    rows = [(float(a), float(b), float(c)) for a, b, c in draws]
    return FamilyCurve(tasks=["task"], chance=chance, top=top, models=9, draws=rows)


def kept(rows: Rows, which: AnyArray) -> Rows:
    return Rows(rows.offset[which], rows.share[which], rows.laboratory[which])


def test_a_known_curve_is_recovered() -> None:
    at = np.array([-0.2, 0.0, 0.2])
    true = 1 / (1 + np.exp(-(LEVEL - SLOPE * at)))
    for several, rows in ((False, simulated(1, 1, 24, 0.0)), (True, simulated(2, 8, 6, 0.1))):
        draws = drawn(rows, 0, new_laboratory=several)
        value, low, high = interval(curve_of(draws), at)
        assert np.abs(value - true).max() < 0.03
        assert ((low < true) & (true < high)).all()
        assert np.median(draws[:, 1]) == pytest.approx(SLOPE, rel=0.1)
        assert np.median(draws[:, 2]) == pytest.approx(0.012, rel=0.5)


def test_a_laboratory_that_nobody_has_seen_is_less_known_than_further_models_of_one() -> None:
    rows = simulated(3, 4, 6, 0.3)
    widths = []
    for several, which in ((True, rows.laboratory >= 0), (False, rows.laboratory == 0)):
        _, low, high = interval(curve_of(drawn(kept(rows, which), 0, new_laboratory=several)), np.zeros(1))
        widths.append(float(high[0] - low[0]))
    assert widths[0] > 2 * widths[1]


def test_the_same_rows_and_seed_give_the_same_draws() -> None:
    rows = simulated(4, 3, 5, 0.2)
    first, again = (drawn(rows, 7, new_laboratory=True) for _ in range(2))
    np.testing.assert_allclose(first, again, rtol=1e-9)  # older BLAS round by where in memory arrays lie


def test_rows_without_noise_are_fitted_with_the_noise_of_their_digits() -> None:
    draws = drawn(simulated(5, 1, 12, 0.0, sd=0.0), 0, new_laboratory=False)
    assert np.median(draws[:, 1]) == pytest.approx(SLOPE, rel=0.02)
    assert (draws[:, 2] >= 1e-3).all()


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


@pytest.mark.slow
@pytest.mark.parametrize("laboratories", [3, 8])
def test_intervals_hold_the_scores_of_new_laboratories(laboratories: int) -> None:
    inside = []
    for seed in range(60):
        rows = simulated(100 * laboratories + seed, laboratories + 4, 6, 0.1 if seed % 2 else 0.4)
        seen = rows.laboratory < laboratories
        _, low, high = interval(curve_of(drawn(kept(rows, seen), 0, new_laboratory=True)), rows.offset[~seen])
        inside.append(np.mean((low <= rows.share[~seen]) & (rows.share[~seen] <= high)))
    assert 0.83 <= np.mean(inside) <= 0.99
