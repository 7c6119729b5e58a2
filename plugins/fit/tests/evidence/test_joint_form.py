"""The joint form against a scalar, its derivatives against differences, and which rows are fitted."""

import numpy as np
import pytest

from plas_fit.evidence.joint_form import FORM, NAMES, coefficients, coordinates, excess, trainings, with_slopes
from plas_fit.fitting.trained_models import Table
from tests.made_up_prior import CENTRE, made_up


def test_the_form_is_the_scalar_formula_and_its_coefficients_go_back() -> None:
    theta = CENTRE + 0.1 * np.random.default_rng(1).normal(size=len(NAMES))
    table = made_up(1, theta, noise=0.0)
    c, of = coefficients(theta, 1.7), table.table
    losses = sum(FORM.values(of.feature, c).values(), np.zeros(len(table)))
    a, b, kappa, q = (np.exp(theta[i]) for i in (1, 4, 5, 7))
    s = 1 / (1 + np.exp(-theta[2]))
    for row in range(5):
        n, active, tokens, depth, width, query, k = (
            float(of.feature(name)[row])
            for name in (
                "parameters_of_full_heads",
                "active_parameters_of_full_heads",
                "tokens",
                "depth",
                "width",
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
        capacity *= (query / width) ** theta[8] * k ** theta[9]
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


def test_rows_that_are_too_small_or_read_too_often_are_not_fitted() -> None:
    table = made_up(1, CENTRE)
    kv = {"kv_dim": table.table.feature("query_dim")}  # as many KV heads as heads
    small = Table({**table.table.numbers, **kv, "active_parameters": np.full(40, 9e6)}, np.arange(40))
    assert not trainings("t", "l", small, np.zeros(40)).fitted.any()
    assert trainings("t", "l", table.table, np.zeros(40), epochs=np.arange(40.0)).fitted.sum() == 5


def test_kv_heads_change_no_loss_but_the_counts_say_what_they_hold() -> None:
    numbers = {"depth": [8.0, 8.0], "width": [512.0, 512.0], "query_dim": [512.0, 512.0], "kv_dim": [512.0, 64.0]}
    held = 8 * 512 * (2 * 512 + 3 * 4 * 512)
    columns = {name: np.array(values) for name, values in numbers.items()}
    columns |= {"parameters": held + 2 * 8 * 512 * columns["kv_dim"], "loss": np.ones(2), "tokens": np.full(2, 1e10)}
    table = trainings("t", "l", Table(columns, np.arange(2)), np.zeros(2))
    losses = excess(CENTRE, table.of)
    assert columns["parameters"][0] > columns["parameters"][1]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
