"""The fit of what a vocabulary costs to runs."""

from dataclasses import replace

import numpy as np
import pytest

from studies.vocabulary.cost import FittedCost, VocabularyRuns, fitted, refitted
from tests.objectives.test_text import CURVE


def runs(truth: FittedCost, noise: float, seed: int) -> VocabularyRuns:
    """Five bodies at six vocabularies, each of 20 tokens per parameter."""
    bodies = np.array([3e7, 8e7, 1.5e8, 6e8, 1.1e9])
    n, v = (each.ravel() for each in np.meshgrid(bodies, [4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 98_304.0]))
    bare = VocabularyRuns(n, v, 20 * n * CURVE.bytes_per_token(v), np.zeros(len(n)))
    losses = truth.losses(bare, CURVE) + noise * np.random.default_rng(seed).normal(size=len(n))
    return replace(bare, loss=losses)


def test_the_fit_finds_again_what_runs_were_made_of() -> None:
    truth = FittedCost(0.3, 0.25, 0.2, 0.03, 0.6)
    found = fitted(runs(truth, 0.0, 0), CURVE)
    assert (found.scale, found.exponent) == pytest.approx((0.03, 0.6), rel=0.02)


@pytest.mark.extended
def test_draws_hold_the_truth() -> None:
    """Of what 4,096 entries cost beside 65,536 the middle nine tenths of the refits hold what the runs were made of, nine times in ten."""
    truth, held = FittedCost(0.3, 0.25, 0.2, 0.03, 0.6), 0
    sizes = np.array([4096.0, 65_536.0]) / 16_384

    def step(scale: float, exponent: float) -> float:
        small, large = 1 + scale * sizes**-exponent
        return float(small / large)

    for seed in range(10):
        draws = [step(each.scale, each.exponent) for each in refitted(runs(truth, 0.02, seed), CURVE, 20, seed)]
        low, high = np.quantile(draws, [0.05, 0.95])
        held += low <= step(truth.scale, truth.exponent) <= high
    assert held >= 7
