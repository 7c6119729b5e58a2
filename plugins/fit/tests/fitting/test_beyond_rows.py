"""Draws outside the rows: how wide they must be, measured on the largest rows, and what is made of them."""

from collections.abc import Callable

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import beyond_rows, law_of
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import largest
from search_spaces.architectures import Architectures

FORM = "parameters_power"


def sized(losses: Callable[[np.ndarray], np.ndarray], n: int = 60, seed: int = 0) -> Fit:  # type: ignore[type-arg]
    size = np.geomspace(1e7, 1e10, n)
    loss = losses(size) + np.random.default_rng(seed).normal(0, 0.004, n)
    table = Table({"parameters": size, "active_parameters": size, "loss": loss}, np.arange(2, n + 2))
    return fitted(FORM, named_form(FORM), table, Method(None, 8, 0, {}))


def right(size: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    found: np.ndarray = 1.8 + 480 / size**0.35  # type: ignore[type-arg]
    return found


def bent(size: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Above a billion it stops falling, which no power law says."""
    return np.maximum(right(size), right(np.array([1.5e9])))


def test_a_form_that_is_wrong_beyond_the_rest_is_widened_until_it_covers() -> None:
    found = beyond_rows(sized(bent))
    assert found is not None
    assert (found.by, found.rows) == ("active parameters", 12)
    assert found.covered < 0.5
    assert found.factor > 3


def test_a_form_that_holds_needs_less() -> None:
    wrong, held = beyond_rows(sized(bent)), beyond_rows(sized(right))
    assert held is not None
    assert wrong is not None
    assert 1 <= held.factor < wrong.factor / 2


def test_training_compute_counts_where_tokens_vary() -> None:
    size, tokens = np.tile(np.geomspace(1e7, 1e9, 10), 3), np.repeat([1e9, 1e10, 1e11], 10)
    found = largest(Table({"parameters": size, "tokens": tokens, "loss": size}, np.arange(30)))
    assert found is not None
    assert found[0] == "training compute"
    assert np.flatnonzero(found[1]).tolist() == np.sort(np.argsort(size * tokens)[-6:]).tolist()


def test_too_few_rows_tell_nothing() -> None:
    assert beyond_rows(sized(right, n=4)) is None


@pytest.fixture(scope="module")
def law() -> Law:
    fit = sized(bent)
    found = law_of(fit, intervals(fit, 60, np.random.default_rng(0)), "ours", FORM, None, None, beyond_rows(fit))
    return found.model_copy(update={"fitted_on": {"width": (512.0, 1536.0)}})


def test_the_file_holds_it_and_old_files_have_none(law: Law) -> None:
    assert law.beyond_rows is not None
    assert Law.model_validate(law.mapping()).beyond_rows == law.beyond_rows
    assert "beyond_rows" not in law.model_copy(update={"beyond_rows": None}).mapping()


def test_intervals_are_the_draws_inside_and_wider_outside(law: Law, paper_architectures: Architectures) -> None:
    rows = paper_architectures[:: len(paper_architectures) // 200]
    outside, plain, spread = law.extrapolates(rows), law.drawn_losses(rows), law.spread_losses(rows)
    assert 0 < outside.sum() < len(rows)
    np.testing.assert_array_equal(spread[:, ~outside], plain[:, ~outside])
    wide = np.ptp(spread[:, outside], axis=0) / np.ptp(plain[:, outside], axis=0)
    np.testing.assert_allclose(wide, law.beyond_rows or 0.0, rtol=1e-9)
    np.testing.assert_allclose(law.loss_quantile(rows, 0.9), np.quantile(spread, 0.9, axis=0))
