"""What is said of a fit, against values worked out by hand or by its definition."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from objectives.loss_law.form import named_form
from plas_fit.fitting.diagnostics import SIGNIFICANT, identifiability, influence, quality, replicates
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import _restarted, bootstrap, intervals
from plas_fit.fitting.law_file import law_of
from plas_fit.fitting.trained_models import Table, read_table
from plas_fit.fitting.validation import groups, near_frontier, validated


def fit(table: Table, form: str, delta: float = np.inf) -> Fit:
    """Least squares from four starts."""
    return fitted(form, named_form(form), table, Method(starts=4, delta=delta))


def sized(parameters: np.ndarray, loss: np.ndarray, **columns: np.ndarray) -> Table:  # type: ignore[type-arg]
    """Rows that are known by their number of parameters."""
    return Table({"parameters": parameters, **columns, "loss": loss}, np.arange(2, len(loss) + 2))


@pytest.fixture(scope="module")
def noisy() -> Fit:
    """Thirty models of a power law with noise and two rows far off."""
    size, generator = np.geomspace(1e7, 1e10, 30), np.random.default_rng(0)
    loss = 2.0 + 400 / size**0.3 + generator.normal(0, 0.01, 30)
    loss[[4, 20]] += [0.06, 0.2]
    return fit(sized(size, loss), "parameters_power", delta=0.02)


@pytest.mark.parametrize(("a", "b", "c"), [(-0.08, 0.02, -0.01), (0.05, -0.03, 0.01)])
def test_scales_of_the_bilinear_form_have_any_sign(a: float, b: float, c: float) -> None:
    size, experts = (x.ravel() for x in np.meshgrid(np.geomspace(1e7, 1e9, 5), [1.0, 2, 8, 64]))
    log_size = np.log(size / 1e8)
    for d in (1.0, -0.5):
        loss = np.exp(a * log_size + b * np.log(experts) + c * log_size * np.log(experts) + d)
        found = fit(sized(size, loss, active_parameters=size, n_experts=experts), "bilinear_moe")
        assert found.coefficients == pytest.approx({"a": a, "b": b, "c": c, "d": d}, rel=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(0.34, 0.37), (1.6, 0.05), (0.05, 1.6)])
def test_exponents_of_parameters_and_tokens_are_found_from_slow_to_steep(alpha: float, beta: float) -> None:
    size, tokens = (x.ravel() for x in np.meshgrid(np.geomspace(1e7, 1e10, 7), np.geomspace(1e9, 1e12, 7)))
    loss = 1.7 + 1.5 * (1e7 / size) ** alpha + 1.2 * (1e9 / tokens) ** beta
    found = fit(sized(size, loss, tokens=tokens), "chinchilla")
    assert found.coefficients["alpha"] == pytest.approx(alpha, rel=1e-2)
    assert found.coefficients["beta"] == pytest.approx(beta, rel=1e-2)
    assert quality(found)["rmse"] < 1e-4


def test_levels_are_groups_and_many_levels_are_fifths() -> None:
    loss = np.linspace(3, 2, 40)
    few = Table({"width": np.repeat([512.0, 1024, 2048, 4096], 10), "loss": loss}, np.arange(40))
    assert groups(few, "width").tolist() == np.repeat([0, 1, 2, 3], 10).tolist()
    many = Table({"width": np.arange(40.0)[::-1] + 1, "loss": loss}, np.arange(40))
    assert groups(many, "width").tolist() == np.repeat([4, 3, 2, 1, 0], 8).tolist()


def test_the_largest_fifth_leaves_out_what_is_as_large_as_its_bound() -> None:
    """Of eleven sizes the 80 % quantile is the ninth: two are larger."""
    size = np.geomspace(1e7, 1e10, 11)
    found = validated(fit(sized(size, 2.0 + 400 / size**0.3), "parameters_power"))
    assert found.largest is not None
    assert found.largest.rows == 2
    assert found.largest.rmse < 1e-3


def test_pairs_near_the_frontier_are_those_of_the_definition() -> None:
    """Two designs, losses apart by more than the replicates' noise, both within two residual sds of the best of their size."""
    size, generator = np.repeat(np.geomspace(1e7, 1e10, 12), 2), np.random.default_rng(1)
    loss = 2.0 + 400 / size**0.3 + np.repeat(generator.normal(0, 0.03, 12), 2) + generator.normal(0, 0.002, 24)
    found = fit(sized(size, loss), "parameters_power")
    predicted = loss + generator.normal(0, 0.1, 24)
    noise, near = replicates(found.table), 2 * quality(found)["residual_sd"]
    assert noise is not None
    rows = [i for i in range(24) if loss[i] <= loss[size <= size[i]].min() + near]
    pairs = [
        (i, j) for i in rows for j in rows if i < j and size[i] != size[j] and abs(loss[i] - loss[j]) > noise["sd"]
    ]
    right = [(loss[i] < loss[j]) == (predicted[i] < predicted[j]) for i, j in pairs]
    order = near_frontier(found, predicted)
    assert order is not None
    assert (order.pairs, order.right) == (len(pairs), pytest.approx(np.mean(right)))
    assert 0.5 < order.right < 1


def test_the_rows_that_matter_most_come_first(noisy: Fit) -> None:
    cook = [row["cook"] for row in influence(noisy)]
    assert cook == sorted(cook, reverse=True)
    assert influence(noisy)[0]["line"] == 22
    assert influence(noisy)[0]["robust_sds"] > 4
    assert len(influence(noisy)) >= 5


@pytest.mark.filterwarnings("error")
def test_rounding_of_rows_without_noise_is_no_outlier(noisy: Fit) -> None:
    """Most residuals are exactly 0, some the last bit of a loss."""
    told = noisy.predicted + np.where(np.arange(30) % 7, 0.0, 4.4e-16)
    exact = replace(noisy, model=replace(noisy.model, target=told))
    assert max(row["robust_sds"] for row in influence(exact)) < 1


def test_what_is_not_identifiable_is_below_two_standard_errors(noisy: Fit) -> None:
    known = intervals(noisy, 0, np.random.default_rng(0))
    place = list(noisy.coefficients).index("alpha")
    for ratio, said in ((0.99 * SIGNIFICANT, True), (1.01 * SIGNIFICANT, False)):
        covariance = known.covariance.copy()
        covariance[place, place] = (noisy.coefficients["alpha"] / ratio) ** 2
        lines = identifiability(noisy, replace(known, covariance=covariance))
        assert any(line.startswith("alpha is not identifiable") for line in lines) is said


@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_resampled_fits_as_asked_for(noisy: Fit, count: int) -> None:
    vectors, agreeing, checked = bootstrap(noisy, count, np.random.default_rng(0))
    assert vectors.shape == (count, len(noisy.vector))
    assert agreeing <= checked <= count


def test_a_law_file_says_how_it_was_fitted(noisy: Fit) -> None:
    known = intervals(noisy, 0, np.random.default_rng(0))
    assert law_of(noisy, known, "ours", "parameters_power", None).provenance["delta"] == 0.02
    squares = replace(noisy, delta=float("inf"))
    assert law_of(squares, known, "ours", "parameters_power", None).provenance["delta"] == "least squares"


def test_counts_that_differ_from_the_architecture_are_said(csv: Callable[[str], object]) -> None:
    header = "depth,width,n_kv_heads,n_experts,top_k,expert_size,parameters,loss\n"
    rows = "8,1024,4,1,1,4096,{},3.2\n16,1536,4,1,1,4096,{},3.0\n"
    own = read_table(csv((header + rows).replace(",parameters", "").replace(",{}", ""))).feature("parameters")  # type: ignore[arg-type]
    for factor, said in ((1.0, False), (1.01, False), (1.1, True)):
        table = read_table(csv(header + rows.format(*(factor * own))))  # type: ignore[arg-type]
        notes = [note for note in table.notes if note.startswith("parameters differs from the architecture's count")]
        assert bool(notes) is said
        assert not said or "by up to 10 %" in notes[0]


def test_a_scale_without_a_sign_of_its_own_is_never_negative() -> None:
    """Losses that rise with size: the best that a falling power can do is nothing."""
    size = np.geomspace(1e7, 1e10, 12)
    found = fit(sized(size, 2.0 + 0.1 * np.log(size / 1e7)), "parameters_power")
    assert found.coefficients["kappa"] == pytest.approx(0.0, abs=1e-6)
    assert found.coefficients["l_inf"] == pytest.approx(np.mean(found.table.loss), rel=1e-3)
    said = identifiability(found, intervals(found, 0, np.random.default_rng(0)))
    assert "alpha has no effect: its term is zero in this fit" in said


@pytest.mark.parametrize(("last", "said"), [(1.05e-3, False), (1.5e-3, True)])
def test_a_learning_rate_that_varies_by_more_than_a_tenth_is_said(
    last: float, said: bool, csv: Callable[[str], object]
) -> None:
    table = read_table(csv(f"parameters,learning_rate,loss\n1e8,1e-3,3.2\n2e8,{last},3.0\n"))  # type: ignore[arg-type]
    assert any(note.startswith("learning_rate is not constant") for note in table.notes) is said


def test_intervals_hold_95_percent_of_what_they_are_made_of(noisy: Fit) -> None:
    """Linear theory: Student's t times the standard error, of scales on their logarithm; the bootstrap: percentiles of its draws."""
    known = intervals(noisy, 40, np.random.default_rng(0))
    centre, sd = np.array(list(noisy.coefficients.values())), np.sqrt(np.diag(known.covariance))
    wide = stats.t.ppf(0.975, 30 - 3) * sd
    expected = np.stack([centre - wide, centre + wide], axis=1)
    for i, name in enumerate(noisy.coefficients):
        if name in noisy.model.form.scales:
            expected[i] = np.exp(np.log(centre[i]) + np.array([-1, 1]) * wide[i] / centre[i])
    assert known.linear == pytest.approx(expected, rel=1e-12)
    assert known.bootstrap == pytest.approx(np.quantile(known.draws, [0.025, 0.975], axis=0).T, rel=1e-12)


def test_a_restart_finds_the_same_fit(noisy: Fit) -> None:
    """Of all rows once, and of all rows twice: twice the objective."""
    for weight in (1.0, 2.0):
        assert _restarted(noisy, np.full(30, weight), 1) == pytest.approx(weight * noisy.objective, rel=1e-4)
