"""Fits against known truths, slow oracles and public data."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, least_squares

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from objectives.plugins import importable
from plas_fit.fitting.diagnostics import determined, identifiability, lack_of_fit, quality, replicates
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import law_of
from plas_fit.fitting.model import compiled
from plas_fit.fitting.report import coefficients
from plas_fit.fitting.robust import huber, minimised
from plas_fit.fitting.trained_models import Table, read_table
from plas_fit.fitting.validation import validated
from search_spaces.architectures import Architectures
from search_spaces.columns import NAMES

Simulate = Callable[..., Table]
FORM = "hw_codesign_log_kv"
TRUE = {"alpha_l": 1.63, "alpha_rho": 1.09, "alpha_r": 0.17, "beta_1": -0.33, "beta_2": 0.97}


FITTED = [name for name in importable("objectives.law_forms") if named_form(name).fitted]


def fit(table: Table, form: str = FORM, **method: Any) -> Fit:
    """A fit with four starts."""
    return fitted(form, named_form(form), table, Method(**{"starts": 4, **method}))


def near(found: Fit, within: float = 0.2) -> bool:
    """Whether the paper's five exponents are recovered."""
    return all(abs(found.coefficients[name] / value - 1) < within for name, value in TRUE.items())


@pytest.fixture(scope="module")
def one_fit(simulated: Simulate) -> Fit:
    return fit(simulated(138, 0.01, 0))


def test_the_papers_law_is_recovered(simulated: Simulate, one_fit: Fit) -> None:
    assert near(one_fit)
    assert all(near(fit(simulated(138, 0.01, seed))) for seed in range(1, 5))
    assert one_fit.agreeing == 4


def test_without_noise_the_free_form_returns_the_losses(simulated: Simulate) -> None:
    found = fit(simulated(200, 0.0, 1), "hw_codesign", delta=float("inf"))
    assert quality(found)["rmse"] < 1e-4
    assert near(found, 0.02)


@pytest.mark.parametrize("form", FITTED)
def test_derivatives_are_those_of_the_predictions(form: str, simulated: Simulate) -> None:
    table = simulated(40, 0.01, 2)
    table = Table({**table.numbers, "tokens": np.geomspace(1e9, 1e11, 40)}, table.lines)
    model = compiled(named_form(form), table, {})
    generator = np.random.default_rng(3)
    scales = generator.uniform(0.2, 1.0, model.count) * (0.05 if model.form.of == "log_loss" else 1.0)
    vector = np.concatenate([scales, generator.uniform(0.1, 0.9, len(model.free))])
    _, jacobian = model.derivatives(vector[None])
    for row in range(0, 40, 7):
        numeric = approx_fprime(vector, lambda v, row=row: model.predict(v[None])[0, row], 1e-7)
        np.testing.assert_allclose(jacobian[0, :, row], numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FITTED)
def test_a_law_file_predicts_what_the_fit_does(
    form: str, simulated: Simulate, paper_architectures: Architectures
) -> None:
    """Scales at a reference design become the file's, and a fitted law computes the same losses from architectures."""
    table = simulated(60, 0.01, 4, rows=np.arange(0, 12_000, 200))
    table = Table({**table.numbers, "tokens": np.full(60, 1e10)}, table.lines)
    own = named_form(form)
    model = compiled(own, table, {"beta": 0.3} if form == "chinchilla" else {})
    vector = np.concatenate([np.full(model.count, 0.3), np.full(len(model.free), 0.4)])
    coefficients = dict(zip(own.coefficients, model.raw(vector[None])[0].tolist(), strict=True))
    np.testing.assert_allclose(model.vector(coefficients), vector, rtol=1e-10)
    law = Law.model_validate({"form": form, "coefficients": coefficients, "tokens": 1e10})
    predicted = model.predict(vector[None])[0]
    predicted = np.exp(predicted) if own.residuals == "log_loss" else predicted
    np.testing.assert_allclose(law.loss(paper_architectures[np.arange(0, 12_000, 200)]), predicted, rtol=1e-10)


def test_the_polish_is_scipys(simulated: Simulate) -> None:
    """Least squares from the same start ends at the same sum of squares as scipy's trust region."""
    model = compiled(named_form(FORM), simulated(80, 0.03, 5), {})
    start = np.concatenate([np.full(5, 0.3), [1.5, 1.0, 0.2, -0.2, 0.9]])
    _, (own,) = minimised(model, start[None], np.inf)
    theirs = least_squares(
        lambda v: model.predict(v[None])[0] - model.target,
        start,
        bounds=(model.low, model.high),
        xtol=1e-14,
        ftol=1e-14,
    )
    assert own == pytest.approx(theirs.cost, rel=1e-6)


def test_hubers_loss() -> None:
    assert huber(np.array([0.5, -3.0]), 1.0).tolist() == [0.125, 2.5]
    assert huber(np.array([-3.0]), np.inf).tolist() == [4.5]


@pytest.mark.slow
def test_outliers_do_not_break_it(simulated: Simulate) -> None:
    tables = [simulated(138, 0.01, seed, outliers=0.05) for seed in range(4)]
    robust = [near(fit(table)) for table in tables]
    squares = [near(fit(table, delta=float("inf"))) for table in tables]
    assert all(robust)
    assert sum(squares) < 4, "outliers that least squares survives prove nothing"


def test_a_free_kv_exponent_is_not_identifiable(simulated: Simulate) -> None:
    found = fit(simulated(138, 0.02, 6), "hw_codesign")
    said = identifiability(found, intervals(found, 0, np.random.default_rng(0)))
    assert any(line.startswith("alpha_m is not identifiable") for line in said)


def test_data_of_another_form_fail_the_lack_of_fit_test(simulated: Simulate) -> None:
    """A random split sees nothing: R² is as good as the paper's."""

    def truth(a: Architectures) -> Any:
        from objectives.loss_law.features import feature

        aspect = np.log(a.width / a.depth / 100.0)
        size = feature(a, "active_parameters")
        return 1.9 + 130.0 / size**0.25 * a.activation_rate**0.09 * (1 + 0.015 * aspect**2)

    wrong = fit(simulated(138, 0.02, 7, truth=truth))
    right = fit(simulated(138, 0.02, 7))
    assert quality(wrong)["r2"] > 0.95
    found, control = lack_of_fit(wrong), lack_of_fit(right)
    assert found is not None
    assert control is not None
    assert found.p_value < 1e-3
    assert control.p_value > 0.01


def test_replicates_measure_noise(simulated: Simulate) -> None:
    table = simulated(300, 0.02, 8, rows=np.repeat(np.arange(0, 3000, 100), 10))
    found = replicates(table)
    assert found is not None
    assert found["freedom"] == 270
    assert found["sd"] == pytest.approx(0.02, rel=0.15)
    assert replicates(simulated(50, 0.02, 8)) is None


def test_copies_of_a_row_are_no_replicates(simulated: Simulate) -> None:
    table = simulated(50, 0.02, 8)
    assert replicates(table[np.concatenate([np.arange(50), np.arange(50)])]) is None


def test_validation_leaves_out_what_it_predicts(one_fit: Fit) -> None:
    """Refitting without a level in the slow way gives the same errors."""
    table, depth = one_fit.table, one_fit.table.feature("depth")
    errors = []
    for level in np.unique(depth):
        rest = fit(table[depth != level], delta=one_fit.delta)
        law = Law.model_validate({"form": FORM, "coefficients": rest.coefficients})
        errors.append(
            law.loss(Architectures.from_columns({n: c[depth == level] for n, c in table.numbers.items() if n in NAMES}))
            - table.loss[depth == level]
        )
    assert validated(one_fit).levels["depth"].rmse == pytest.approx(
        np.sqrt((np.concatenate(errors) ** 2).mean()), rel=1e-3
    )


def test_a_law_carries_where_it_came_from(one_fit: Fit) -> None:
    known = intervals(one_fit, 50, np.random.default_rng(0))
    law = law_of(one_fit, known, "mine", FORM, 1e10)
    again = Law.model_validate(law.mapping())
    assert again.coefficients == one_fit.coefficients
    np.testing.assert_array_equal([list(draw.coefficients.values()) for draw in again.drawn], known.draws)
    assert known.draws.shape == (50, 10)
    assert again.provenance["starts_agreeing"] == 4
    assert again.fitted_on["depth"] == (4.0, 32.0)
    assert known.restarts == known.checked


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"depth": 8.0}, "depth: expected values that vary, got 8 in every row"),
        ({"width": 1024.0, "expert_size": 1024.0, "n_heads": 16.0}, "width: expected values that vary"),
    ],
)
def test_a_constant_column_is_said(change: dict[str, float], said: str, simulated: Simulate) -> None:
    table = simulated(50, 0.01, 9)
    numbers = {**table.numbers, **{name: np.full(50, value) for name, value in change.items()}}
    numbers["n_kv_heads"] = np.full(50, 2.0) if "width" in change else numbers["n_kv_heads"]
    with pytest.raises(ValueError, match=said):
        fit(Table(numbers, table.lines))


def test_fewer_designs_than_coefficients_are_said(simulated: Simulate) -> None:
    with pytest.raises(ValueError, match="more than 10 different designs for 10 coefficients, got 10"):
        fit(simulated(10, 0.01, 10))


def test_weights_are_repetitions(simulated: Simulate) -> None:
    table = simulated(40, 0.02, 11)
    twice = np.where(np.arange(40) < 10, 2.0, 1.0)
    weighted = fit(Table({**table.numbers, "weight": twice}, table.lines), delta=0.05)
    repeated = fit(table[np.concatenate([np.arange(10), np.arange(40)])], delta=0.05)
    for name, value in weighted.coefficients.items():
        assert repeated.coefficients[name] == pytest.approx(value, rel=1e-3), name


def test_chinchilla_refit(external_data: Path) -> None:
    """The published refit's optimum: Besiroglu et al. 2024, five rows of fewest tokens per parameter left out."""
    table = read_table(
        external_data / "loss" / "chinchilla_epoch.csv",
        ["Model Size=parameters", "Training FLOP=training_flops"],
        ["tokens_per_parameter>0.43"],
    )
    found = fit(table, "chinchilla", delta=1e-3, starts=16)
    assert len(table) == 240
    assert found.objective / 1e-3 <= 1.0183
    assert found.agreeing == 16
    assert found.coefficients["a"] == pytest.approx(477.8, rel=0.05)
    assert found.coefficients["b"] == pytest.approx(2143, rel=0.05)
    for name, value in {"e": 1.8172, "alpha": 0.3473, "beta": 0.3672}.items():
        assert found.coefficients[name] == pytest.approx(value, abs=0.002)


@pytest.mark.extended
def test_intervals_cover(simulated: Simulate, law: Law) -> None:
    """95 % intervals of the five exponents hold the truth as often as they say."""
    hits = {"linear": np.zeros(len(TRUE)), "bootstrap": np.zeros(len(TRUE))}
    runs = 200
    for seed in range(runs):
        found = fit(simulated(138, 0.02, 1000 + seed), "hw_codesign", fixed={"alpha_m": 0.05})
        known = intervals(found, 300, np.random.default_rng(seed))
        for i, (name, value) in enumerate(TRUE.items()):
            at = list(found.coefficients).index(name)
            for kind, ends in (("linear", known.linear), ("bootstrap", known.bootstrap)):
                hits[kind][i] += ends[at, 0] <= value <= ends[at, 1]
    for kind, count in hits.items():
        assert 0.90 <= count.mean() / runs <= 0.99, (kind, count / runs)
        assert count.min() / runs >= 0.85, (kind, count / runs)


def test_a_constant_beside_undetermined_coefficients_is_not_determined() -> None:
    parameters = np.geomspace(5e7, 5e9, 12)
    table = Table(
        {"parameters": parameters, "tokens": np.geomspace(1e9, 5e10, 12), "loss": 2.0 + 40 / parameters**0.2},
        np.arange(12),
    )
    found = fit(table, "parameters_power")
    known = intervals(found, 0, np.random.default_rng(0))
    of = dict(zip(found.model.names, np.abs(found.vector), strict=True))
    for unsure, constant in (({"alpha"}, True), ({"kappa", "alpha"}, False)):
        sd = np.array([10 * size if name in unsure else 0.0 for name, size in of.items()])
        assert determined(found, replace(known, sd=sd, held=known.held & False))["l_inf"] is constant


def test_coefficients_told_together_alone_are_named_and_have_no_interval() -> None:
    """With one count of tokens and beta held, b D^-beta + e is one number: neither b nor e is known, and no --fix is advised."""
    parameters, noise = np.array([5e7, 7e7, 1.6e8, 2.1e8, 3.2e8, 4.8e8]), 0.004 * np.array([1, -2, 1, 0, 2, -1])
    table = Table(
        {"parameters": parameters, "tokens": np.full(6, 4e9), "loss": 440 / parameters**0.34 + 2.4 + noise},
        np.arange(6),
    )
    with pytest.raises(ValueError, match="tokens: expected values that vary, got 4e\\+09 in every row; choose a form"):
        fit(table, "chinchilla")
    found = fit(table, "chinchilla", fixed={"beta": 0.28})
    known = intervals(found, 20, np.random.default_rng(0))
    assert determined(found, known) == {"a": True, "b": False, "e": False, "alpha": True}
    assert identifiability(found, known)[0].startswith("b, e are not determined: these rows tell a combination")
    said = coefficients(found, known)
    for name in ("b", "e"):
        assert np.isnan([said[name]["standard_error"], *said[name]["linear"], *said[name]["bootstrap"]]).all()
    assert np.isfinite(said["alpha"]["linear"]).all()


def test_holding_an_exponent_is_advised_where_it_cures(simulated: Simulate) -> None:
    """Routed models of one FFN ratio: without it all terms still differ in what varies."""
    table = simulated(60, 0.01, 4)
    alike = Table({**table.numbers, "expert_size": table.numbers["width"] / table.numbers["top_k"]}, table.lines)
    with pytest.raises(ValueError, match="ffn_ratio: expected values that vary, got 1 in every row; fix its exponent"):
        fit(alike)
    assert fit(alike, fixed={"alpha_r": 0.0}).agreeing


def test_the_residual_sd_has_degrees_of_freedom(simulated: Simulate) -> None:
    found = fit(simulated(14, 0.05, 2))
    rows, coefficients = len(found.residuals), len(found.vector)
    squares = float((found.model.weight * found.residuals**2).sum())
    assert found.residual_sd == pytest.approx((squares / (rows - coefficients)) ** 0.5)
