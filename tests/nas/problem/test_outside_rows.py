"""Designs outside the rows of a law with draws: no probability, no regret, and the answer says what intervals are worth."""

from collections.abc import Callable

import numpy as np
import pytest

from nas.answer.sentences import doubt_outside, optimality
from nas.problem.problem import Problem
from nas.problem.uncertainty import uncertainty
from objectives.loss_law.law import Law


@pytest.fixture(scope="module")
def law() -> Law:
    draws = tuple(f"{depth} 0.5 {width} 0.4 1.8" for depth, width in ((1, 9), (2, 8), (3, 7), (4, 6), (5, 5)))
    coefficients = {"kappa_l": 3.0, "alpha_l": 0.5, "kappa_d": 7.0, "beta": 0.4, "l_inf": 1.8}
    return Law.model_validate(
        {"name": "ours", "form": "depth_width", "coefficients": coefficients, "draws": draws}
        | {"beyond_rows": 4.0, "fitted_on": {"width": (512.0, 1536.0)}}
    )


def law_of_size() -> Law:
    """A law that sees parameters alone, with draws."""
    draws = tuple(f"{a} {alpha} 1.8" for a, alpha in ((450, 0.346), (480, 0.35), (510, 0.354)))
    coefficients = {"kappa": 480.0, "alpha": 0.35, "l_inf": 1.8}
    return Law.model_validate({"form": "parameters_power", "coefficients": coefficients, "draws": draws})


def test_draws_that_cannot_disagree_give_no_probability(law: Law, problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(baselines=[], applications={}, default_budget="none")
    found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    alike, differing = (
        uncertainty(each, lambda rows: problem.architectures(found.genotypes[rows]), found)
        for each in (law_of_size(), law)
    )
    assert alike is not None
    assert differing is not None
    assert alike.alike
    assert not differing.alike
    assert np.isnan(alike.probability()).all()
    said = optimality(alike.probability(), law_of_size(), 0, 9)
    assert "each of the law's 3 draws orders all designs alike, since its form can give no other answer" in said


def test_few_designs_far_apart_are_no_sign_of_a_form_that_cannot_answer(
    law: Law, problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(baselines=[], applications={}, default_budget="none")
    some = np.array([0, problem.space.size - 1])
    found = problem.evaluate(problem.space.genotypes(some))
    few = uncertainty(law, lambda rows: problem.architectures(found.genotypes[rows]), found)
    assert few is not None
    assert not few.alike


def test_draws_of_rows_without_noise_agree_by_the_rows_not_by_the_form(
    law: Law, problem_of: Callable[..., Problem]
) -> None:
    problem = problem_of(baselines=[], applications={}, default_budget="none")
    found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    exact = law.model_copy(update={"draws": ("3 0.5 7 0.4 1.8", "3 0.5 7 0.4 1.80000000000001")})
    drawn = uncertainty(exact, lambda rows: problem.architectures(found.genotypes[rows]), found)
    assert drawn is not None
    assert not drawn.alike
    assert drawn.probability()[~drawn.outside].max() == 1.0


def test_no_probability_is_given_outside(law: Law, problem_of: Callable[..., Problem]) -> None:
    problem = problem_of(baselines=[], applications={}, default_budget="none")
    found = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)))
    narrow = law.model_copy(update={"fitted_on": {"width": (1.0, float(problem.space.widths[0]))}, "covers": {}})
    unsure = uncertainty(narrow, lambda rows: problem.architectures(found.genotypes[rows]), found)
    assert unsure is not None
    outside = narrow.extrapolates(problem.architectures(found.genotypes))
    assert 0 < outside.sum() < len(outside)
    np.testing.assert_array_equal(np.isnan(unsure.probability()), outside & found.feasible)


def test_the_answer_says_what_draws_are_worth(law: Law) -> None:
    assert doubt_outside(law, 0) == []
    assert "there loss@q spreads 4 times as wide as the draws" in doubt_outside(law, 3)[0]
    silent = doubt_outside(law.model_copy(update={"beyond_rows": None}), 3)[0]
    assert silent.startswith("Outside of the evidence (3 of the frontier) no difference is claimed")
    assert "by how much the law's file does not say" in silent
    of_misfit = law.model_copy(update={"draws": (), "residual_sd": 0.02})
    assert doubt_outside(of_misfit, 3) == ["Outside of the evidence (3 of the frontier) no difference is claimed"]
    assert doubt_outside(law.model_copy(update={"draws": ()}), 3) == []
    assert "0.50 (median of the 1 inside the law's rows)" in optimality(np.array([0.5, np.nan]), law, 1, 9)
    assert "lies outside" in optimality(np.array([np.nan]), law, 1, 9)
