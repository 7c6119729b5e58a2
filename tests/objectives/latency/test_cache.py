"""Hits of the cache tier against the fixed point of random replacement, and its limits."""

import numpy as np
import pytest

from objectives.latency.roofline import hit_share


def test_what_fits_is_found() -> None:
    assert hit_share(np.array([0.1, 1.0]), 1.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("ratio", [1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0])
def test_beyond_capacity_as_random_replacement(ratio: float) -> None:
    """h = exp(-(1 - h) W/C): bytes read again and again find what W - hits have not driven out."""
    h = 0.0
    for _ in range(10_000):
        h = float(np.exp(-(1.0 - h) * ratio))
    assert float(hit_share(np.array([ratio]), 1.0)[0]) == pytest.approx(h, abs=0.03)
