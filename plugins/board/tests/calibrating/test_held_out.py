"""Error measures against values worked out by hand."""

import numpy as np
import pytest

from plas_board.calibrating.held_out import errors, worst_overshoot

MEASURED = np.array([10.0, 20.0, 40.0])
SIZE = np.array([1.0, 2.0, 4.0])


def test_exact_prediction() -> None:
    """No error, the right order, no overshoot, the same frontier."""
    e = errors(MEASURED, MEASURED, SIZE)
    assert (e.rows, e.median, e.p90, e.kendall, e.overshoot, e.overlap) == (3, 0, 0, 1, 0, 1)


def test_by_hand() -> None:
    """Half of a time predicted: within 20 ms, the 40 ms model is picked, 100 % over."""
    e = errors(MEASURED / 2, MEASURED, SIZE)
    assert e.median == pytest.approx(0.5)
    assert e.overshoot == pytest.approx(1.0)
    assert worst_overshoot(MEASURED * 2, MEASURED) == 0


def test_reversed_order() -> None:
    """A reversed order has τ −1; the largest model, seemingly the fastest, is the only one on that frontier."""
    e = errors(MEASURED[::-1], MEASURED, SIZE)
    assert e.kendall == pytest.approx(-1)
    assert e.overlap == pytest.approx(1 / 3)


def test_models_of_one_time_or_one_size() -> None:
    """Of two models equally fast the larger is on the frontier, of two equally large the faster; twins both are."""
    for measured, size, frontier in (
        ([10.0, 10.0, 20.0], [1.0, 2.0, 4.0], [1, 2]),
        ([10.0, 15.0, 20.0], [2.0, 2.0, 4.0], [0, 2]),
        ([10.0, 10.0, 20.0], [2.0, 2.0, 1.0], [0, 1]),
    ):
        apart = np.where(np.isin(np.arange(3), frontier), np.array(measured), 1e3)  # whatever else is seen as slow
        assert errors(apart, np.array(measured), np.array(size)).overlap == 1


def test_unpredicted_rows() -> None:
    """NaN is no prediction."""
    assert errors(np.array([10.0, np.nan, np.nan]), MEASURED, SIZE).rows == 1
    assert errors(np.full(3, np.nan), MEASURED, SIZE).rows == 0
