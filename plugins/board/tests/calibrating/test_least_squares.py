"""Least squares within bounds against solutions worked out by hand."""

import numpy as np
import pytest

from plas_board.calibrating.efficiencies import minimise
from search_spaces.arrays import FloatArray

WIDE = np.full(2, -1e3), np.full(2, 1e3)


def rosenbrock(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A bent valley, least at (1, 1)."""
    return np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0]])


def test_a_bent_valley() -> None:
    assert minimise(rosenbrock, np.array([-1.2, 1.0]), WIDE) == pytest.approx([1.0, 1.0], abs=1e-4)


def test_a_bound_that_binds() -> None:
    """With x below 0.5 the least is at (0.5, 0.25); a start outside is moved inside."""
    found = minimise(rosenbrock, np.array([2.0, 0.0]), (np.array([-2.0, -2.0]), np.array([0.5, 2.0])))
    assert found == pytest.approx([0.5, 0.25], abs=1e-4)


def test_a_corner() -> None:
    """Where every slope pushes outwards the start stays."""
    found = minimise(lambda x: (x - 5.0, np.eye(2)), np.ones(2), (np.zeros(2), np.ones(2)))
    assert found.tolist() == [1.0, 1.0]
