"""Designs: against brute force, and by what fits to simulated trainings of them recover."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.design import assumed_by, filling_rows, known_by, optimal, plan, shrunk
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures

Simulate = Callable[..., Table]
TRUE = {"alpha_l": 1.63, "alpha_rho": 1.09, "alpha_r": 0.17, "beta_1": -0.33, "beta_2": 0.97}
FORM = "hw_codesign_log_kv"


@pytest.fixture(scope="module")
def prior(simulated: Simulate) -> Fit:
    return fitted(FORM, named_form(FORM), simulated(40, 0.03, 0), Method(starts=4))


def test_few_designs_are_the_best_of_all_sets() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        candidates, known = generator.normal(size=(12, 3)), 0.1 * np.eye(3)
        sets = list(combinations(range(12), 4))
        best = max(np.linalg.slogdet(known + candidates[list(s)].T @ candidates[list(s)])[1] for s in sets)
        own = optimal(candidates, 4, known)
        assert len(set(own.tolist())) == 4
        assert np.linalg.slogdet(known + candidates[own].T @ candidates[own])[1] >= best - 0.1


def test_aimed_designs_predict_their_targets_better() -> None:
    generator = np.random.default_rng(1)
    candidates, targets, known = generator.normal(size=(300, 5)), generator.normal(size=(2, 5)), 0.01 * np.eye(5)

    def variance(rows: np.ndarray) -> float:  # type: ignore[type-arg]
        return float(np.trace(targets @ np.linalg.inv(known + candidates[rows].T @ candidates[rows]) @ targets.T))

    assert variance(optimal(candidates, 8, known, targets)) < variance(optimal(candidates, 8, known))


def test_optimal_designs_beat_random_ones(prior: Fit, paper_architectures: Architectures) -> None:
    known = known_by(prior).information
    candidates = known_by(prior).sensitivities(paper_architectures, None)
    chosen = optimal(candidates, 30, known)
    random = np.random.default_rng(0).choice(len(candidates), 30, replace=False)
    gain = [shrunk(known, known + candidates[rows].T @ candidates[rows]) for rows in (chosen, random)]
    assert gain[0] < 0.8 * gain[1]


def test_a_plan_mixes_purposes(prior: Fit, paper_architectures: Architectures) -> None:
    found = plan(known_by(prior), paper_architectures, 12, "coefficients", None, np.random.default_rng(0))
    assert [found.purpose.count(name) for name in ("coefficients", "space_filling", "replicate")] == [8, 3, 1]
    assert found.seed.tolist() == [0] * 11 + [1]
    assert found.rows[-1] == found.rows[0]
    assert len(set(found.rows.tolist())) == 11
    assert 0 < found.shrink < 1


def test_cost_aware_designs_are_cheaper(prior: Fit, paper_architectures: Architectures) -> None:
    from plas_fit.fitting.design import training_flops

    flops = training_flops(paper_architectures, 1e10)
    spent = [
        flops[plan(known_by(prior), paper_architectures, 12, goal, 1e10, np.random.default_rng(0)).rows[:8]].sum()
        for goal in ("cost", "coefficients")
    ]
    assert spent[0] < 0.2 * spent[1]


def test_more_designs_than_the_space_has_are_refused(prior: Fit, paper_architectures: Architectures) -> None:
    with pytest.raises(ValueError, match="at most 5 designs"):
        plan(known_by(prior), paper_architectures[:5], 12, "coefficients", None, np.random.default_rng(0))


def test_first_designs_beat_random_ones(law: Law, paper_architectures: Architectures) -> None:
    """Before anything is trained, under the paper's law: `shrink` is against as many random designs."""
    known = assumed_by(law, {"alpha_m": 0.05}, paper_architectures)
    assert known.empty
    assert known.information.shape == (10, 10)
    found = plan(known, paper_architectures, 30, "coefficients", None, np.random.default_rng(0))
    assert 0.3 < found.shrink < 0.8
    candidates = known.sensitivities(paper_architectures, None)

    def volume(rows: np.ndarray) -> float:  # type: ignore[type-arg]
        return float(np.linalg.slogdet(candidates[rows].T @ candidates[rows])[1])

    generator = np.random.default_rng(1)
    random = max(volume(generator.choice(len(candidates), 30)) for _ in range(50))
    assert volume(found.rows) > random


def test_sensitivities_are_derivatives_of_the_law(law: Law, paper_architectures: Architectures) -> None:
    """Against differences of the law's own losses, by one exponent and one scale."""
    known = assumed_by(law, {"alpha_m": 0.05}, paper_architectures)
    some = paper_architectures[np.arange(0, len(paper_architectures), 500)]
    names = [*law.law_form.scales, *(name for name in law.law_form.exponents if name != "alpha_m")]
    columns = known.sensitivities(some, None) * known.scale
    for name in ("kappa_d", "l_inf"):  # a scale at the reference design is proportional to the file's
        moved = law.model_copy(update={"coefficients": law.coefficients | {name: law.coefficients[name] * 1.001}})
        expected = moved.loss(some) - law.loss(some)
        column = columns[:, names.index(name)]
        np.testing.assert_allclose(column / column[0], expected / expected[0], rtol=1e-6)


@pytest.mark.slow
def test_sixty_optimal_designs_recover_the_law(
    prior: Fit, paper_architectures: Architectures, simulated: Simulate
) -> None:
    """Chosen with coefficients of a first rough fit; noise 0.02; 18 of 20 seeds within 20 %."""
    candidates = known_by(prior).sensitivities(paper_architectures, None)
    rows = optimal(candidates, 60, np.zeros((candidates.shape[1],) * 2))
    good = 0
    for seed in range(20):
        found = fitted(
            FORM, named_form(FORM), simulated(60, 0.02, 100 + seed, rows=rows), Method(starts=4)
        ).coefficients
        good += all(abs(found[name] / value - 1) < 0.2 for name, value in TRUE.items())
    assert good >= 18


def test_a_filling_lies_over_the_whole_range_of_every_factor(paper_architectures: Architectures) -> None:
    """Sixteen points of a Latin hypercube: a quarter of them in each quarter of a factor, give or take its values."""
    rows = filling_rows(("depth", "width"), paper_architectures, np.array([5]), 16, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 16
    assert 5 not in rows
    for column in (paper_architectures.depth, paper_architectures.width):
        logs = np.log(column)
        place = (logs[rows] - logs.min()) / np.ptp(logs)
        assert 0.35 < place.mean() < 0.65
        assert place.min() < 0.2
        assert place.max() > 0.8
