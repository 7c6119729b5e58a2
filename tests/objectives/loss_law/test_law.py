"""Loss laws: the paper's, its fitted range, and what a user's own may say."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nas.files.faults import Faults
from objectives.composition import composition_of
from objectives.loss_law.features import feature
from objectives.loss_law.form import Form, named_form
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.architectures import Architectures, one

Draw = Callable[..., Architectures]
Convert = Callable[[Architectures], list[Any]]
INSIDE = {"depth": 16, "width": 2048, "n_experts": 16, "top_k": 1, "expert_size": 1024, "n_kv_heads": 4}


def refusal(content: dict[str, Any]) -> list[str]:
    """What a user reads when a law is refused, a line a fault."""
    with pytest.raises(ValidationError) as caught:
        Law.model_validate(content)
    faults = Faults()
    faults.add_validation(caught.value, model=Law)
    return [text for _, text in faults.lines]


@given(seed=st.integers(0, 2**32 - 1), plain=st.booleans())
def test_loss_is_the_oracles(
    seed: int, plain: bool, law: Law, case: Any, random_architectures: Draw, as_reference: Convert
) -> None:
    architectures = random_architectures(200, seed, plain=plain)
    expected = [case.oracle.loss(row) for row in as_reference(architectures)]
    np.testing.assert_allclose(law.loss(architectures), expected, rtol=1e-12)


def test_coefficients_are_the_papers(law: Law) -> None:
    assert law.coefficients == {
        "kappa_l": 9.96, "alpha_l": 1.63, "kappa_rho": 0.031, "alpha_rho": 1.09, "alpha_r": 0.17, "beta_1": -0.33,
        "kappa_d": 500, "beta_2": 0.97, "kappa_m": 0.20, "alpha_m": 0.05, "l_inf": 2.53,
    }  # fmt: skip
    assert law.tokens == 10e9


def test_loss_is_the_sum_of_its_terms(law: Law, random_architectures: Draw) -> None:
    architectures = random_architectures(100, 9)
    terms = law.terms(architectures)
    assert len(terms) == 5
    assert all(column.shape == (100,) for column in terms.values())
    np.testing.assert_allclose(sum(terms.values()), law.loss(architectures), rtol=1e-15)


def test_loss_of_a_model_without_limits_is_the_irreducible_one(law: Law) -> None:
    vast = {"depth": 10**9, "width": 64 * 10**6, "n_kv_heads": 10**6, "expert_size": 10**11}
    vast |= {"n_experts": 10**9, "top_k": 1}
    found = law.loss(one(vast))[0]
    kv = 0.2 / 64e6**0.05
    assert found == pytest.approx(2.53 + kv, abs=1e-3)


@pytest.mark.parametrize(
    ("better", "change"),
    [
        ("deeper", {"depth": 17}),
        ("more KV heads", {"n_kv_heads": 8}),
        ("larger experts", {"expert_size": 1025}),
        ("sparser", {"n_experts": 17}),
    ],
)
def test_loss_falls_where_the_law_says_so(law: Law, better: str, change: dict[str, int]) -> None:
    assert law.loss(one(INSIDE | change))[0] < law.loss(one(INSIDE))[0], better


def test_equal_products_give_equal_losses_bit_by_bit(law: Law) -> None:
    """Only l, d, ρ, r and d_m count: 1 of 8 experts of m is 2 of 16 of m/2."""
    first = {"depth": 4, "width": 768, "n_kv_heads": 1, "n_experts": 8, "top_k": 1}
    second = first | {"n_experts": 16, "top_k": 2}
    for size in range(2, 1000, 2):
        assert law.loss(one(first | {"expert_size": size})) == law.loss(one(second | {"expert_size": size // 2}))


def test_no_architecture_of_paper_is_an_extrapolation(law: Law, paper_architectures: Architectures) -> None:
    assert law.outside(paper_architectures) == {}
    assert not law.extrapolates(paper_architectures).any()


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"depth": 4}, set()), ({"depth": 32}, set()), ({"depth": 3}, {"depth"}), ({"depth": 33}, {"depth"}),
        ({"width": 768}, set()), ({"width": 3072, "expert_size": 1536}, set()),
        ({"width": 704, "n_kv_heads": 1, "expert_size": 704}, {"width"}),
        ({"width": 3136, "n_kv_heads": 1, "expert_size": 3136}, {"width"}),
        ({"expert_size": 8192}, set()), ({"expert_size": 8193}, {"expert_ffn_ratio"}),
        ({"expert_size": 1023}, {"expert_ffn_ratio"}),
        ({"n_experts": 17}, {"activation_rate", "n_experts"}), ({"n_experts": 17, "top_k": 2}, {"n_experts"}),
        ({"n_kv_heads": 1}, set()), ({"n_kv_heads": 32}, set()), ({"n_kv_heads": 1, "head_dim": 32}, {"kv_dim"}),
        ({"n_heads": 49, "n_kv_heads": 49}, {"kv_dim"}), ({"n_heads": 48, "n_kv_heads": 48, "width": 3072, "expert_size": 1536}, set()),
    ],
)  # fmt: skip
def test_the_fitted_range_is_the_model_pages(law: Law, change: dict[str, int], left: set[str]) -> None:
    """l 4–32, d 768–3072, r_single 0.5–4, ρ 1/16–1, E ≤ 16, d_m 64–3072, ends included."""
    row = one(INSIDE | change)
    assert set(law.outside(row)) == left
    assert law.extrapolates(row).tolist() == [bool(left)]


def test_qwen_is_an_extrapolation_by_its_ffn_ratio(law: Law, model: Callable[[str], Architectures]) -> None:
    assert set(law.outside(model("qwen2.5_0.5b"))) == {"expert_ffn_ratio"}


def test_extrapolation_is_marked_row_by_row(law: Law) -> None:
    both = Architectures.concatenate([one(INSIDE), one(INSIDE | {"depth": 33}), one(INSIDE | {"n_experts": 20})])
    assert law.extrapolates(both).tolist() == [False, True, True]
    assert law.outside(both)["depth"].tolist() == [False, True, False]


def test_a_law_reads_back_from_its_own_mapping(law: Law) -> None:
    assert Law.model_validate(law.mapping()) == law


def test_a_users_coefficients_are_used(law: Law) -> None:
    own = Law.model_validate(law.mapping() | {"coefficients": law.coefficients | {"l_inf": 1.0}, "fitted_on": {}})
    row = one(INSIDE)
    assert own.loss(row)[0] == pytest.approx(law.loss(row)[0] - 1.53, rel=1e-14)
    assert not own.extrapolates(one(INSIDE | {"depth": 1000})).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"form": "nonsense"}, "form: expected one of "),
        ({"coefficients": {"kappa_l": 1}}, "coefficients.alpha_l: expected a number, got nothing; add it"),
        ({"fitted_on": {"colour": [0, 1]}}, "fitted_on.colour: expected one of depth, width"),
        ({"fitted_on": {"depth": [1]}}, "fitted_on.depth.1: expected a value, got nothing"),
        ({"tokens": 0}, "tokens: expected more than 0, got 0"),
        ({"residual_sd": -1}, "residual_sd: expected at least 0, got -1"),
        ({"extra": 1}, "extra: unknown key"),
    ],
)
def test_a_refused_law_says_what_was_expected(law: Law, change: dict[str, Any], message: str) -> None:
    lines = refusal(law.mapping() | change)
    assert any(line.startswith(message) for line in lines), lines


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", None])
def test_a_coefficient_is_a_finite_number(law: Law, value: Any) -> None:
    (line,) = refusal(law.mapping() | {"coefficients": law.coefficients | {"l_inf": value}})
    assert line.startswith("coefficients.l_inf: expected a")
    assert ", got " in line


def test_a_law_in_tokens_says_for_how_many() -> None:
    coefficients = {"a": 480.0, "alpha": 0.35, "b": 2100.0, "beta": 0.37, "e": 1.8}
    content = {"name": "ours", "form": "chinchilla", "coefficients": coefficients}
    assert refusal(content) == ["tokens: expected the training tokens to predict for, got nothing; add them"]
    assert Law.model_validate(content | {"tokens": 1e10}).tokens == 1e10


@pytest.mark.parametrize("form", ["parameters_power", "bilinear_moe"])
def test_a_draw_equal_to_the_coefficients_gives_the_loss(form: str) -> None:
    """Whatever the terms add up to, the loss or its logarithm."""
    names = named_form(form).coefficients
    values = dict(zip(names, np.linspace(-0.02, 0.03, len(names)).tolist(), strict=True))
    drawn = " ".join(map(repr, values.values()))
    own = Law.model_validate({"name": "ours", "form": form, "coefficients": values, "draws": (drawn,)})
    row = one(INSIDE)
    assert own.drawn_losses(row) == pytest.approx(own.loss(row)[None], rel=1e-14)


@pytest.mark.parametrize("name", sorted(documents("objectives.laws")))
def test_many_draws_at_once_are_each_law_by_itself(
    name: str, shipped: Callable[[str, str], dict[str, Any]], random_architectures: Draw
) -> None:
    """Sums, products, bent quantities and joined terms, more losses than are computed at once."""
    content = {**shipped("objectives.laws", name), "tokens": 1e10, "rivals": [], "covariance": []}
    names = named_form(Law.model_validate({**content, "draws": []}).form).coefficients
    centre = np.array([content["coefficients"][each] for each in names])
    draws = centre * np.random.default_rng(3).uniform(0.98, 1.02, (7, len(names)))
    law = Law.model_validate({**content, "draws": [" ".join(map(repr, row.tolist())) for row in draws]})
    architectures = random_architectures(3_000, 5, plain=True)
    alone = [
        law.model_copy(update={"coefficients": dict(zip(names, row.tolist(), strict=True))}).terms(architectures)
        for row in draws
    ]
    expected = np.array([sum(terms.values()) for terms in alone])
    np.testing.assert_allclose(law.drawn_losses(architectures), expected, rtol=1e-14)


def test_an_unknown_coefficient_is_named(law: Law) -> None:
    (line,) = refusal(law.mapping() | {"coefficients": law.coefficients | {"gamma": 1.0}})
    assert line.startswith("coefficients.gamma: expected one of kappa_l, alpha_l")


def test_every_missing_coefficient_is_named_at_once(law: Law) -> None:
    assert len(refusal(law.mapping() | {"coefficients": {"kappa_l": 1, "alpha_l": 1}})) == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terms": {}}, "at least 1 item"),
        ({"terms": {"kv": {"scale": "m", "logs": {"kv_dim": 0}}}}, "terms.kv: expected logarithms of a quantity over"),
        ({"bounds": {"a": [3, 1]}}, "bounds.a: expected two finite numbers, the lower first, got 3 and 1"),
        ({"bounds": {"a": [0, float("inf")]}}, "bounds.a: expected two finite numbers"),
        ({"bounds": {"a": [float("nan"), 1]}}, "bounds.a: expected two finite numbers"),
    ],
)
def test_a_form_that_cannot_be_fitted_is_refused(change: dict[str, Any], message: str) -> None:
    form = {"terms": {"depth": {"scale": "k", "powers": {"depth": "-a"}}, "rest": {"scale": "e"}}}
    Form.model_validate(form)
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(form | change)
    assert message in str(caught.value)


JOINED: dict[str, Any] = {
    "terms": {
        "level": {"scale": "e"},
        "capacity": {"scale": "a", "powers": {"parameters": "-x", "depth": "y"}, "crossed": {"depth depth": "z"}},
        "data": {"scale": "b", "powers": {"tokens": "-w"}},
    },
    "joined": ["capacity", "data"],
    "join": "k",
}
JOINED_COEFFICIENTS = {"e": 1.5, "a": 50.0, "x": 0.2, "y": 0.1, "z": 0.02, "b": 500.0, "w": 0.3, "k": 2.0}


@pytest.mark.parametrize("kappa", [0.4, 1.0, 2.2, 40.0])
def test_joined_terms_share_what_they_count_together(kappa: float) -> None:
    """L = level + (C^κ + D^κ)^(1/κ), in shares of C^κ and D^κ; at κ = 1 they are C and D themselves, far above it the larger."""
    known = JOINED_COEFFICIENTS | {"k": kappa}
    law = Law.model_validate({"form": JOINED, "coefficients": known, "tokens": 1e10})
    row = one({**INSIDE, "depth": 12})
    size, depth = feature(row, "parameters")[0], np.log(12.0)
    capacity = 50.0 * size**-0.2 * np.exp(0.1 * depth + 0.02 * depth**2)
    data = 500.0 * 1e10**-0.3
    whole = (capacity**kappa + data**kappa) ** (1.0 / kappa)
    assert law.loss(row)[0] == pytest.approx(1.5 + whole, rel=1e-12)
    terms = {name: float(value[0]) for name, value in law.terms(row).items()}
    assert sum(terms.values()) == pytest.approx(law.loss(row)[0], rel=1e-12)
    assert terms["capacity"] / terms["data"] == pytest.approx((capacity / data) ** kappa, rel=1e-9)
    if kappa == 1.0:
        assert (terms["capacity"], terms["data"]) == pytest.approx((capacity, data), rel=1e-12)
    if kappa == 40.0:
        assert whole == pytest.approx(max(capacity, data), rel=0.02)
    known_as = composition_of(law)
    size_or_depth = {"parameters": np.array([size]), "depth": np.array([12.0])}
    columns = [
        size_or_depth[quantity]
        for quantity, direction in known_as.quantities.items()
        for _ in range(1 if direction else 2)  # the least and the greatest of what may move either way
    ]
    assert not law.separable
    assert known_as.value(*columns)[0] == pytest.approx(law.loss(row)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"join": ""},
            "joined: expected terms and in join the name of their coefficient, got one of both; add the other",
        ),
        (
            {"joined": []},
            "joined: expected terms and in join the name of their coefficient, got one of both; add the other",
        ),
        ({"joined": ["capacity", "text"]}, "joined: expected terms that are positive, got 'text'; correct it"),
        ({"of": "log_loss", "residuals": "log_loss"}, "joined: expected terms that add up to the loss without factors"),
        ({"factors": {"f": {"one": {"scale": "q"}}}}, "joined: expected terms that add up to the loss without factors"),
    ],
)
def test_a_form_that_joins_terms_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    Form.model_validate(JOINED)
    with pytest.raises(ValidationError, match=re.escape(message)):
        Form.model_validate(JOINED | change)


@pytest.mark.parametrize("change", [{"sign": -1}, {"logs": {"tokens": 2.0}, "powers": {}}, {"only": "dense"}])
def test_a_joined_term_that_may_not_be_positive_is_refused(change: dict[str, Any]) -> None:
    terms = JOINED["terms"] | {"data": JOINED["terms"]["data"] | change}
    with pytest.raises(ValidationError, match="joined: expected terms that are positive, got 'data'; correct it"):
        Form.model_validate(JOINED | {"terms": terms})


@pytest.mark.parametrize("name", ["a", "b", "k"])
def test_coefficients_of_joined_terms_are_positive(name: str) -> None:
    content = {"name": "ours", "form": JOINED, "coefficients": JOINED_COEFFICIENTS | {name: 0.0}, "tokens": 1e10}
    assert refusal(content) == [f"coefficients.{name}: expected a positive number of joined terms, got 0; correct it"]


@pytest.mark.parametrize(("power", "square"), [(0.5, 0.1), (-1.0, 0.15), (1.0, -0.2), (0.0, 0.3)])
def test_a_squared_logarithm_is_bounded_where_it_turns(power: float, square: float) -> None:
    """u^p exp(c ln² u) turns at ln u = −p / 2 c, inside the range or not."""
    term = {"scale": "a", "powers": {"n_experts": "p"}, "crossed": {"n_experts n_experts": "c"}}
    law = Law.model_validate({"form": {"terms": {"t": term}}, "coefficients": {"a": 1.0, "p": power, "c": square}})
    inside = np.exp(np.linspace(np.log(2.0), np.log(60.0), 100_001))
    values = inside**power * np.exp(square * np.log(inside) ** 2)
    found = float(composition_of(law).value(np.array([2.0]), np.array([60.0]))[0])
    assert found <= values.min() * (1 + 1e-12)
    assert found == pytest.approx(values.min(), rel=1e-6)


def test_quantities_made_of_others_may_have_an_exponent_of_nought() -> None:
    terms = {"shape": {"scale": "a", "powers": {"kv_ratio": "p", "aspect_ratio": "q", "parameters": "-x"}}}
    law = Law.model_validate({"form": {"terms": terms}, "coefficients": {"a": 9.0, "p": 0.0, "q": 0.0, "x": 0.1}})
    known = composition_of(law)
    assert dict(known.quantities) == {"parameters": -1}
    assert known.value(np.array([1e9]))[0] == pytest.approx(9.0 * 1e9**-0.1, rel=1e-12)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("power", [-2.0, 0.4])
@pytest.mark.parametrize(("least", "greatest"), [(2.0, 4.0), (2.0, 1e6), (3e5, 1e6), (7.0, 7.0)])
def test_the_least_of_a_turning_term_lies_at_an_end_or_where_it_turns(
    sign: int, power: float, least: float, greatest: float
) -> None:
    """E^p ln(E/30) turns at E = 30 exp(-1/p), inside the range or not."""
    term = {"scale": "a", "powers": {"n_experts": "p"}, "logs": {"n_experts": 30.0}, "sign": sign}
    law = Law.model_validate({"form": {"terms": {"t": term}}, "coefficients": {"a": 1.0, "p": power}})
    composition = composition_of(law)
    assert (law.separable, dict(composition.quantities)) == (False, {"n_experts": 0})
    inside = np.exp(np.linspace(np.log(least), np.log(greatest), 100_001))
    values = sign * inside**power * np.log(inside / 30.0)
    found = float(composition.value(np.array([least]), np.array([greatest]))[0])
    assert found <= values.min() + 1e-12 * abs(values.min())
    assert found == pytest.approx(values.min(), rel=1e-6)


def test_what_a_law_does_not_see_is_no_quantity_of_it() -> None:
    terms = {
        "a": {"scale": "a", "powers": {"n_experts": "p"}},
        "b": {"scale": "b", "powers": {"active_parameters": "q"}},
        "c": {"scale": "c", "powers": {"parameters": "r"}},
    }
    coefficients = {"a": 0.0, "p": 1.0, "b": 2.0, "q": 0.0, "c": 3.0, "r": -0.1}
    law = Law.model_validate({"form": {"terms": terms}, "coefficients": coefficients})
    assert dict(composition_of(law).quantities) == {"parameters": -1}
