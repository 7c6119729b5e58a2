"""Simple baselines beside a fit: what they predict, that they see no row that judges them, and when a form is said to lose."""

from collections.abc import Callable

import numpy as np
import pytest

from objectives.loss_law.form import named_form
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.report import LINE, QUADRATIC, SIZE, Baselines, baselines, ordered, ridge
from plas_fit.fitting.report import shrunk_quadratic as quadratic
from plas_fit.fitting.report import straight_line as line
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import largest, validated
from search_spaces.arrays import FloatArray

Loss = Callable[[FloatArray, FloatArray], FloatArray]


def grid(loss: Loss, sd: float = 0.0, seed: int = 0) -> Table:
    """64 models, 8 sizes on 8 counts of tokens."""
    n, d = (each.ravel() for each in np.meshgrid(np.geomspace(1e7, 1e9, 8), np.geomspace(1e9, 1e11, 8)))
    noise = np.random.default_rng(seed).normal(0, sd, 64)
    return Table({"parameters": n, "active_parameters": n, "tokens": d, "loss": loss(n, d) + noise}, np.arange(2, 66))


def chinchilla(n: FloatArray, d: FloatArray) -> FloatArray:
    return 1.8 + 480 / n**0.35 + 2000 / d**0.37


def power(n: FloatArray, d: FloatArray) -> FloatArray:
    return 30 * n**-0.06 * d**-0.05


def judged(table: Table, form: str) -> Baselines:
    fit, size = (fitted(name, named_form(name), table, Method(None, 4, 0, {})) for name in (form, "parameters_power"))
    return baselines(fit, validated(fit), (size, validated(size)))


def test_the_right_form_loses_to_none() -> None:
    found = judged(grid(chinchilla, 0.005), "chinchilla")
    assert not found.better
    assert found.largest_by == "training compute"
    assert list(found.predictors) == ["chinchilla", LINE, QUADRATIC, SIZE]
    assert found.logarithms == ("tokens", "parameters")


def test_a_form_without_what_the_rows_show_loses_by_how_much_is_said() -> None:
    found = judged(grid(power, 0.005), "parameters_power")
    lost = {(each.baseline, each.rows): each for each in found.better}
    own, theirs = found.predictors["parameters_power"], found.predictors[LINE]
    assert not isinstance(own, str)
    assert not isinstance(theirs, str)
    known = lost[LINE, "10 random folds"]
    assert (known.fit_rmse, known.rmse) == (own.folds.rmse, theirs.folds.rmse)
    assert known.excess == pytest.approx(own.folds.rmse - theirs.folds.rmse)
    assert known.rmse < 0.01 < known.fit_rmse
    assert (LINE, "the largest fifth by training compute") in lost


@pytest.mark.parametrize("predict", [line, quadratic])
def test_what_is_left_out_is_seen_by_none(predict: Callable[..., FloatArray]) -> None:
    table, other = grid(chinchilla, 0.01), grid(chinchilla, 0.01)
    found = largest(table)
    assert found is not None
    changed = Table({**other.numbers, "loss": np.where(found[1], 9.0, other.loss)}, other.lines)
    assert predict(changed, ~found[1]) == pytest.approx(predict(table, ~found[1]), rel=1e-12)


def test_each_predicts_what_it_can_express() -> None:
    def bent(n: FloatArray, d: FloatArray) -> FloatArray:
        return np.exp(2 - 0.03 * np.log(n) + 0.001 * np.log(n) * np.log(d) - 0.002 * np.log(d) ** 2)

    half = np.random.default_rng(0).permutation(64) < 32
    assert line(grid(power), half) == pytest.approx(grid(power).loss, rel=1e-9)
    assert quadratic(grid(bent), half) == pytest.approx(grid(bent).loss, rel=1e-4)
    assert np.abs(line(grid(bent), half) / grid(bent).loss - 1).max() > 1e-2


def test_weights_count() -> None:
    table = grid(chinchilla, 0.01)
    kept = np.arange(64) < 40
    twice = Table(
        {name: np.concatenate([column, column[kept]]) for name, column in table.numbers.items()}, np.arange(2, 106)
    )
    weighted = Table({**table.numbers, "weight": np.where(kept, 2.0, 1.0)}, table.lines)
    assert line(twice, np.ones(104, dtype=bool))[:64] == pytest.approx(
        line(weighted, np.ones(64, dtype=bool)), rel=1e-9
    )


def test_the_ridge_has_the_least_generalised_cross_validation_error() -> None:
    generator = np.random.default_rng(3)
    columns, kept = generator.normal(size=(40, 6)), np.arange(40) < 30
    target = columns[:, 0] + generator.normal(0, 1.0, 40)
    found = ridge(columns, target, kept, np.ones(40))
    x, y = columns[kept] - columns[kept].mean(axis=0), target[kept] - target[kept].mean()

    def score(penalty: float) -> float:
        hat = x @ np.linalg.inv(x.T @ x + penalty * np.eye(6)) @ x.T
        return float(((y - hat @ y) ** 2).sum() / (30 - 1 - np.trace(hat)) ** 2)

    penalties = np.geomspace(1e-8, 1e3, 45) * float((x**2).sum()) / 6
    best = min(penalties, key=score)
    coefficients = np.linalg.solve(x.T @ x + best * np.eye(6), x.T @ y)
    by_hand = target[kept].mean() + (columns - columns[kept].mean(axis=0)) @ coefficients
    assert found == pytest.approx(by_hand, rel=1e-6)


def test_pairs_in_order_count_predicted_ties_half_and_no_pair_of_one_design_or_loss() -> None:
    loss, design = np.array([1.0, 2.0, 3.0, 3.0, 4.0]), np.array([0, 1, 2, 3, 3])
    found = ordered(np.array([1.0, 1.0, 3.0, 2.0, 0.0]), loss, design)
    assert found is not None
    assert found.pairs == 8
    assert found.right == pytest.approx((0.5 + 1 + 1 + 0 + 1 + 1 + 0 + 0) / 8)
    assert ordered(np.ones(2), np.ones(2), np.arange(2)) is None


def test_too_few_designs_are_a_reason_and_no_error() -> None:
    table = grid(chinchilla, 0.01)[np.array([0, 9, 18, 36])]
    found = judged(table, "parameters_power")
    assert isinstance(found.predictors[LINE], str)
    assert "too few designs" in found.predictors[LINE]
