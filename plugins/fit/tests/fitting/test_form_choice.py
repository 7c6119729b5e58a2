"""Evidence for forms, intervals of scales on the log scale, what a lack-of-fit test can see."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import f as fisher

from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.fitting.diagnostics import POWER, REJECT, determined, lack_of_fit, noncentrality
from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.intervals import intervals
from plas_fit.fitting.law_file import law_of
from plas_fit.fitting.trained_models import Table
from plas_fit.fitting.validation import excess, form_weights, shares, validated
from search_spaces.architectures import Architectures

Simulate = Callable[..., Table]
FORMS = ("hw_codesign_log_kv", "hw_codesign_no_kv", "hw_codesign_dense", "depth_width", "parameters_power")


def fit(table: Table, form: str) -> Fit:
    return fitted(form, named_form(form), table, Method(float("inf"), 4))


def test_shares_are_those_of_the_definition() -> None:
    found = shares({"a": 10.0, "b": 12.0, "c": 400.0})
    assert found["b"] / found["a"] == pytest.approx(np.exp(-1.0))
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["c"] < 1e-80


@pytest.mark.slow
def test_bic_finds_the_form_of_the_data(simulated: Simulate, law: Law) -> None:
    """Twelve tables each of two forms: the right one has the largest weight in at least ten."""
    dense = fit(simulated(138, 0.01, 0), "hw_codesign_dense")
    truth = law_of(dense, intervals(dense, 0, np.random.default_rng(0)), "dense", "hw_codesign_dense", None)
    right = 0
    for seed in range(12):
        for form, losses in (("hw_codesign_log_kv", None), ("hw_codesign_dense", truth.loss)):
            table = simulated(100, 0.01, 300 + seed, truth=losses)
            fits = {name: fit(table, name) for name in FORMS}
            weights = form_weights(fits[FORMS[0]], {name: fits[name] for name in FORMS[1:]})
            right += max(weights, key=weights.__getitem__) == form
    assert right >= 20


def test_a_difference_of_errors_has_a_standard_error(simulated: Simulate) -> None:
    table = simulated(80, 0.02, 3)
    own, other = fit(table, "hw_codesign_log_kv"), fit(table, "depth_width")
    apart, error = excess(own, validated(own), validated(other))
    assert apart > 3 * error > 0
    assert excess(own, validated(own), validated(own)) == (0.0, 0.0)


def test_scales_have_intervals_on_the_log_scale(simulated: Simulate) -> None:
    found = fit(simulated(14, 0.02, 5), "hw_codesign_log_kv")
    known = intervals(found, 0, np.random.default_rng(0))
    sd = np.sqrt(np.diag(known.covariance))
    for i, (name, value) in enumerate(found.coefficients.items()):
        low, high = known.linear[i]
        if name in found.model.form.scales and value > 0 and np.isfinite(high):
            assert 0 < low < value < high
            assert low * high == pytest.approx(value**2)
        elif name not in found.model.form.scales:
            assert (low + high) / 2 == pytest.approx(value)
    assert sd.shape == (10,)


@pytest.mark.parametrize(("terms", "freedom"), [(3, 4), (19, 51), (19, 400)])
def test_the_misfit_that_is_seen_four_times_of_five(terms: int, freedom: int) -> None:
    generator = np.random.default_rng(0)
    size, strength = 40_000, noncentrality(terms, freedom)
    above = generator.noncentral_chisquare(terms, strength, size) / terms
    seen = above / (generator.chisquare(freedom, size) / freedom) > fisher.isf(REJECT, terms, freedom)
    assert seen.mean() == pytest.approx(POWER, abs=0.01)


def test_more_rows_see_smaller_misfits(simulated: Simulate) -> None:
    few, many = (lack_of_fit(fit(simulated(n, 0.02, 1), "hw_codesign_log_kv")) for n in (50, 200))
    assert few is not None
    assert many is not None
    assert many.visible < few.visible
    assert many.visible == pytest.approx(0.02 * np.sqrt(noncentrality(many.terms, many.freedom) / 200), rel=0.2)


def test_what_rows_determine(simulated: Simulate) -> None:
    sure = determined(
        found := fit(simulated(138, 0.01, 0), "hw_codesign_log_kv"), intervals(found, 0, np.random.default_rng(0))
    )
    assert all(sure.values())
    unsure = determined(
        found := fit(simulated(138, 0.03, 0), "hw_codesign"), intervals(found, 0, np.random.default_rng(0))
    )
    assert not unsure["alpha_m"]
    assert list(unsure) == list(found.model.names)


@pytest.mark.slow
def test_draws_of_several_forms_are_mixed_by_their_share(
    simulated: Simulate, paper_architectures: Architectures
) -> None:
    table = simulated(24, 0.03, 2)
    own, other = fit(table, "hw_codesign_log_kv"), fit(table, "hw_codesign_no_kv")
    known = intervals(own, 60, np.random.default_rng(0))
    law = law_of(own, known, "mine", "hw_codesign_log_kv", None, {"hw_codesign_no_kv": other})
    weight = form_weights(own, {"hw_codesign_no_kv": other})["hw_codesign_no_kv"]
    assert 0.05 < weight < 0.95
    (rival,) = law.rivals
    assert len(rival.draws) == round(60 * weight)
    assert len(law.draws) + len(rival.draws) == 60
    again = Law.model_validate(law.mapping())
    few = paper_architectures[np.arange(0, 8000, 400)]
    losses = again.drawn_losses(few)
    alone = [Law(form=each, coefficients=dict(zip(named_form(each).coefficients, map(float, row.split()), strict=True))).loss(few)
             for each, rows in (("hw_codesign_log_kv", law.draws), (rival.form, rival.draws)) for row in rows]  # fmt: skip
    np.testing.assert_allclose(np.sort(losses, axis=0), np.sort(alone, axis=0))
    first = [draw.form for draw in again.drawn[:20]]
    assert abs(sum(form == named_form("hw_codesign_no_kv") for form in first) - 20 * weight) <= 1.5
    np.testing.assert_array_equal(again.drawn_losses(few, 20), losses[:20])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rivals": [{"form": "depth_width", "draws": ["1 2 3"]}]}, "rivals[0].draws: expected 5 numbers a row"),
        ({"rivals": [{"form": "chinchilla", "draws": ["1 2 3 4 5"]}], "tokens": None}, "tokens: expected the training tokens"),
        ({"rivals": [{"form": "depth_width", "draws": ["1 2 3 4 5"]}], "draws": []}, "rivals: expected draws of the law's own"),
    ],
)  # fmt: skip
def test_a_law_file_with_wrong_rivals_is_refused(change: dict[str, object], said: str) -> None:
    own = {"form": "parameters_power", "coefficients": {"kappa": 1.0, "a": 0.3, "l_inf": 1.0}, "draws": ["1 0.3 1"]}
    own["coefficients"] = dict.fromkeys(named_form("parameters_power").coefficients, 1.0)
    with pytest.raises(ValueError, match="expected") as caught:
        Law.model_validate(own | change)
    assert said in str(caught.value)
