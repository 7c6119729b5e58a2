"""Differences of losses under draws and a misfit, against samples of the mixture."""

import numpy as np
import pytest

from objectives.loss_law.draws import difference_quantiles, probability_below


@pytest.mark.parametrize("sd", [0.0, 0.05, 0.5])
def test_quantiles_and_probabilities_are_those_of_a_sampled_mixture(sd: float) -> None:
    draw = np.random.default_rng(3)
    gaps = draw.normal([-0.4, 0.0, 0.3], 0.2, (200, 3))
    sampled = (gaps[:, None, :] + np.sqrt(2.0) * sd * draw.normal(size=(200, 2000, 3))).reshape(-1, 3)
    assert probability_below(gaps, sd) == pytest.approx((sampled < 0).mean(axis=0), abs=0.01)
    found = difference_quantiles(gaps, sd, (0.05, 0.5, 0.95))
    assert found == pytest.approx(np.quantile(sampled, [0.05, 0.5, 0.95], axis=0), abs=0.02)
    assert (np.diff(found, axis=0) > 0).all()


def test_equal_designs_are_better_with_probability_one_half() -> None:
    assert probability_below(np.zeros((10, 2)), 0.0) == pytest.approx([0.5, 0.5])
    assert probability_below(np.zeros((10, 2)), 0.1) == pytest.approx([0.5, 0.5])


def test_few_and_many_values_have_the_same_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = np.random.default_rng(0).normal(0.0, 3.0, (100, 30))
    few = probability_below(gaps, 0.5)
    monkeypatch.setattr("objectives.loss_law.draws.FEW", 0)
    np.testing.assert_allclose(few, probability_below(gaps, 0.5), rtol=1e-14)
    assert probability_below(np.array([[-100.0, 0.0, 100.0]]), 0.1).tolist() == [1.0, 0.5, 0.0]
