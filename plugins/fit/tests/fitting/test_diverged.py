"""Which rows count as diverged trainings."""

import numpy as np

from plas_fit.fitting.robust import diverged


def test_a_row_far_above_all_others_diverged_one_below_or_in_their_noise_did_not() -> None:
    noise = 0.01 * np.random.default_rng(0).normal(size=15)
    noise[[3, 7]] = 4.9, -4.9
    assert np.flatnonzero(diverged(noise)).tolist() == [3]


def test_rows_that_a_fit_goes_through_say_nothing_of_noise() -> None:
    """Five coefficients on eight rows: five residuals of zero, three of the noise."""
    residuals = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.2, -0.9, 0.5])
    assert not diverged(residuals, 5).any()
    assert diverged(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 49.0, -0.9, 0.5]), 5).tolist().index(True) == 5
