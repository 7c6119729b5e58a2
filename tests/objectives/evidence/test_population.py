"""The pooled law: its form against a scalar, coefficients of a made-up population found again, and what is promised of it."""

from dataclasses import replace

import numpy as np
import pytest

from objectives.evidence.joint_form import (
    FORM,
    NAMES,
    REFERENCE,
    Trainings,
    coefficients,
    coordinates,
    excess,
    trainings,
    with_slopes,
)
from objectives.evidence.population import (
    CENTRE,
    Widening,
    covers,
    drawn_coordinates,
    fit_table,
    law_of,
    population,
    prior_between,
)
from objectives.fitting.trained_models import Table
from search_spaces.arrays import FloatArray


def made_up(seed: int, theta: FloatArray, noise: float = 0.003, rows: int = 40, laboratory: str = "") -> Trainings:
    """Trainings of designs taken at random, whose losses follow the form."""
    draw = np.random.default_rng(seed)
    experts = draw.choice([1.0, 8.0, 64.0], rows)
    numbers = {
        "depth": draw.choice([8.0, 16.0, 32.0], rows),
        "width": draw.choice([512.0, 1024.0, 2048.0], rows),
        "query_dim": draw.choice([512.0, 1024.0], rows),
        "kv_dim": draw.choice([64.0, 256.0], rows),
        "expert_ffn_ratio": draw.choice([0.5, 1.0, 4.0], rows),
        "n_experts": experts,
        "top_k": np.where(experts > 1, draw.choice([1.0, 2.0], rows), 1.0),
        "active_parameters": draw.uniform(5e7, 3e9, rows),
        "tokens": draw.choice([5e9, 2e10, 2e11], rows),
        "loss": np.zeros(rows),
    }
    numbers["parameters"] = numbers["active_parameters"] * np.where(experts > 1, experts / 2, 1.0)
    table = trainings(f"t{seed}", laboratory or f"lab {seed}", Table(numbers, np.arange(rows)), np.zeros(rows))
    loss = 1.7 + excess(theta, table.of) + noise * draw.normal(size=rows)
    whole = Table({**numbers, "loss": loss}, np.arange(rows))
    return trainings(table.name, table.laboratory, whole, np.zeros(rows))


def test_the_form_is_the_scalar_formula_and_its_coefficients_go_back() -> None:
    theta = CENTRE + 0.1 * np.random.default_rng(1).normal(size=len(NAMES))
    table = made_up(1, theta, noise=0.0)
    c, of = coefficients(theta, 1.7), table.table
    losses = sum(FORM.values(of.feature, c).values(), np.zeros(len(table)))
    a, b, kappa, q = (np.exp(theta[i]) for i in (1, 4, 5, 7))
    s = 1 / (1 + np.exp(-theta[2]))
    for row in range(5):
        n, active, tokens, depth, width, kv, query, k = (
            float(of.feature(name)[row])
            for name in (
                "parameters",
                "active_parameters",
                "tokens",
                "depth",
                "width",
                "kv_dim",
                "query_dim",
                "top_k",
            )
        )
        u = np.log(width / depth / 64)
        capacity = (
            np.exp(theta[0])
            / a
            * (active / 1e9) ** (-a * (1 - s))
            * (n / 1e9) ** (-a * s)
            * np.exp(theta[6] * u + q * u**2)
        )
        capacity *= (kv / width) ** theta[8] * (query / width) ** theta[9] * k ** theta[10]
        data = np.exp(theta[3]) / b * (tokens / 1e10) ** -b
        expected = 1.7 + (capacity**kappa + data**kappa) ** (1 / kappa)
        assert losses[row] == pytest.approx(expected, rel=1e-12)
        assert table.loss[row] == pytest.approx(expected, rel=1e-12)
    back, level = coordinates(c)
    assert back == pytest.approx(theta, abs=1e-9)
    assert level == 1.7


def test_derivatives_are_those_of_differences() -> None:
    table, slope = made_up(2, CENTRE), with_slopes(CENTRE, made_up(2, CENTRE).of)[1]
    for i in range(len(NAMES)):
        step = 1e-6 * np.eye(len(NAMES))[i]
        numeric = (excess(CENTRE + step, table.of) - excess(CENTRE - step, table.of)) / 2e-6
        assert slope[:, i] == pytest.approx(numeric, abs=1e-7)


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


def test_a_population_is_found_again_and_its_intervals_hold_new_laboratories() -> None:
    draw, spread = np.random.default_rng(5), 0.7 * np.linalg.cholesky(prior_between())
    truths = [CENTRE + spread @ draw.normal(size=len(NAMES)) for _ in range(16)]
    found = population([made_up(seed, theta, 0.01) for seed, theta in enumerate(truths[:10])])
    assert np.abs((found.mean - CENTRE) / np.sqrt(np.diag(prior_between()))).max() < 0.8
    assert found.misfit == pytest.approx(0.01, rel=0.5)
    theta, _ = drawn_coordinates(found, Widening())
    held = []
    for seed, truth in enumerate(truths[10:]):
        of = made_up(100 + seed, truth, 0.0).of
        drawn = excess(theta, of)
        true, gaps = np.diff(excess(truth, of)), np.diff(drawn, axis=1)
        low, high = np.quantile(gaps, [0.05, 0.95], axis=0)
        held.append(((low <= true) & (true <= high)).mean())
    assert 0.75 < np.mean(held) <= 1.0


def test_a_laboratory_counts_once_however_many_tables_it_has() -> None:
    theta, other = CENTRE.copy(), CENTRE.copy()
    other[0] += 0.4
    one = population([made_up(1, theta, laboratory="a"), made_up(2, other, laboratory="b")])
    many = population([made_up(1, theta, laboratory="a"), *(made_up(2, other, laboratory="b") for _ in range(3))])
    assert many.mean[0] == pytest.approx(one.mean[0], abs=0.03)


def test_rows_that_are_too_small_or_read_too_often_are_not_fitted() -> None:
    table = made_up(1, CENTRE)
    small = Table({**table.table.numbers, "active_parameters": np.full(40, 9e6)}, np.arange(40))
    assert not trainings("t", "l", small, np.zeros(40)).fitted.any()
    assert trainings("t", "l", table.table, np.zeros(40), epochs=np.arange(40.0)).fitted.sum() == 5
    with pytest.raises(ValueError, match="expected trainings of 10 M parameters"):
        population([trainings("t", "l", small, np.zeros(40))])


def test_a_law_of_a_population_carries_draws_of_a_new_laboratory() -> None:
    tables = [made_up(seed, CENTRE) for seed in range(3)]
    found = population(tables)
    law = law_of(found, Widening(2.0, 2.0, 2.0, 1.0), covers(tables), name="pooled")
    assert law.residual_sd == pytest.approx(2 * found.misfit, rel=1e-3)
    assert len(law.draws) == 256
    back = np.stack(
        [coordinates(dict(zip(FORM.coefficients, map(float, row.split()), strict=True)))[0] for row in law.draws]
    )
    assert back.mean(axis=0) == pytest.approx(found.mean, abs=0.1)
    assert back[:, 0].std() == pytest.approx(2 * np.sqrt(found.new[0, 0]), rel=0.1)
    assert back[:, 3].std() == pytest.approx(np.sqrt(found.new[3, 3]), rel=0.1)
    at = law.coefficients["level"] + excess(found.mean, REFERENCE)[0]
    assert at == pytest.approx(found.at_reference[0], abs=1e-6)
    assert law.fitted_on["tokens"] == (5e9, 2e11)
