"""Curves fitted to scores: recovered where they are known, intervals that hold new laboratories."""

import numpy as np
import pytest

from search_spaces.arrays import AnyArray, FloatArray
from studies.scores.curve_fit import Rows, drawn
from studies.scores.curves import FamilyCurve, interval

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
