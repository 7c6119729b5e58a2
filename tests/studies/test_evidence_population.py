"""The pooled law: coefficients of a made-up population found again, and what is promised of it."""

from dataclasses import replace

import numpy as np
import pytest

from plas_fit.evidence.joint_form import (
    FORM,
    NAMES,
    coordinates,
    excess,
    trainings,
)
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures
from studies.evidence.population import (
    CENTRE,
    drawn_coordinates,
    fit_table,
    law_of,
    population,
    prior_between,
)
from tests.made_up_prior import made_up


def test_one_table_gives_its_coefficients_back_where_it_decides_them() -> None:
    theta = CENTRE.copy()
    theta[[0, 1, 2]] += [0.1, -0.3, 0.5]
    found = fit_table(made_up(3, theta, noise=1e-4, rows=200), CENTRE, 4 * prior_between())
    assert found.theta[:6] == pytest.approx(theta[:6], abs=0.05)
    assert found.levels[0] == pytest.approx(1.7, abs=0.05)


def test_outliers_move_a_table_little() -> None:
    table = made_up(4, CENTRE, rows=100)
    loss = table.loss.copy()
    loss[:5] += 0.5
    found = fit_table(replace(table, loss=loss), CENTRE, prior_between())
    assert np.abs(excess(found.theta, table.of) - excess(CENTRE, table.of)).max() < 0.05


@pytest.mark.slow
def test_a_population_is_found_again_and_its_intervals_hold_new_laboratories() -> None:
    draw, spread = np.random.default_rng(5), 0.7 * np.linalg.cholesky(prior_between())
    truths = [CENTRE + spread @ draw.normal(size=len(NAMES)) for _ in range(16)]
    found = population([made_up(seed, theta, 0.01) for seed, theta in enumerate(truths[:10])])
    assert np.abs((found.mean - CENTRE) / np.sqrt(np.diag(prior_between()))).max() < 0.8
    assert found.misfit == pytest.approx(0.01, rel=0.5)
    theta, _ = drawn_coordinates(found, 1.0)
    held = []
    for seed, truth in enumerate(truths[10:]):
        of = made_up(100 + seed, truth, 0.0).of
        drawn = excess(theta, of)
        true, gaps = np.diff(excess(truth, of)), np.diff(drawn, axis=1)
        low, high = np.quantile(gaps, [0.05, 0.95], axis=0)
        held.append(((low <= true) & (true <= high)).mean())
    assert 0.75 < np.mean(held) <= 1.0


@pytest.mark.slow
def test_a_laboratory_counts_once_however_many_tables_it_has() -> None:
    theta, other = CENTRE.copy(), CENTRE.copy()
    other[0] += 0.4
    one = population([made_up(1, theta, laboratory="a"), made_up(2, other, laboratory="b")])
    many = population([made_up(1, theta, laboratory="a"), *(made_up(2, other, laboratory="b") for _ in range(3))])
    assert many.mean[0] == pytest.approx(one.mean[0], abs=0.03)


def test_rows_that_are_too_small_make_no_population() -> None:
    numbers = made_up(1, CENTRE).table.numbers
    small = {**numbers, "kv_dim": numbers["query_dim"], "active_parameters": np.full(40, 9e6)}
    with pytest.raises(ValueError, match="expected trainings of 10 M parameters"):
        population([trainings("t", "l", Table(small, np.arange(40)), np.zeros(40))])


def test_a_law_of_a_population_carries_draws_of_a_new_laboratory() -> None:
    tables = [made_up(seed, CENTRE) for seed in range(3)]
    found = population(tables)
    law = law_of(found, 2.0, tables, name="pooled")
    assert law.residual_sd == pytest.approx(2 * found.misfit, rel=1e-3)
    assert len(law.draws) == 256
    back = np.stack(
        [coordinates(dict(zip(FORM.coefficients, map(float, row.split()), strict=True)))[0] for row in law.draws]
    )
    low, high = found.bounds
    for name in ("ln a", "ln b", "ln kappa"):
        at = NAMES.index(name)
        assert (low[at] - 1e-6 <= back[:, at]).all()
        assert (back[:, at] <= high[at] + 1e-6).all()
    assert back[:, 0].std() == pytest.approx(2 * np.sqrt(found.new[0, 0]), rel=0.15)
    assert min(float(row.split()[0]) for row in law.draws) >= 0.0
    assert law.faults_of(law.drawn) == [""] * 256
    rows = Architectures.concatenate([each for region in law.covers.values() if (each := region.designs_as_built)])
    assert law.loss(rows) == pytest.approx(law.drawn_losses(rows).mean(axis=0), abs=0.01)
    assert law.fitted_on["tokens"] == (5e9, 2e11)
