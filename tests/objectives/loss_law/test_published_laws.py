"""Published laws against what their own papers print, by formulas written out here."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from nas.study.catalogue import load_law as shipped_law
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.architectures import Architectures, one

LAWS = tuple(documents("objectives.laws"))
REDUCED = {  # Ludziejewski et al. 2025, table 4
    1: (30.3640, -0.1817, 53.9838, -0.1965),
    2: (27.7982, -0.1780, 66.8401, -0.2065),
    4: (24.8462, -0.1731, 87.7022, -0.2192),
    8: (21.8330, -0.1676, 119.9126, -0.2338),
    16: (19.0159, -0.1617, 167.5073, -0.2494),
    32: (16.5424, -0.1557, 234.6726, -0.2652),
}
DEPTHS = np.array([6, 12, 24, 48, 96])


def models(n_experts: int, top_k: int = 1, size: int = 2048) -> Architectures:
    """Models of one width that differ in depth."""
    return Architectures.from_columns(
        {"depth": DEPTHS, "width": 1024, "n_kv_heads": 16, "expert_size": size, "n_experts": n_experts, "top_k": top_k}
    )


def power_of(values: list[float], at: np.ndarray) -> tuple[float, float]:
    """Factor and exponent of a power law through values."""
    exponent, factor = np.polyfit(np.log(at), np.log(values), 1)
    return math.exp(factor), float(exponent)


def reduced(law: Law, n_experts: int) -> tuple[float, ...]:
    """m, μ, n, ν of m N^μ + n D^ν + c, from the law's own values."""
    m, tokens = models(n_experts, size=3072), np.geomspace(1e9, 64e9, 5)
    sizes = law.feature(m, "active_parameters_with_embeddings")
    by_tokens = [law.model_copy(update={"tokens": t}).terms(m)["tokens"][0] for t in tokens.tolist()]
    return (*power_of(law.terms(m)["parameters"], sizes), *power_of(by_tokens, tokens))


@pytest.mark.parametrize("n_experts", REDUCED)
def test_joint_moe_is_a_chinchilla_law_for_each_number_of_experts(n_experts: int) -> None:
    """Exponents to their digits; factors to 0.3 %, as the paper's two tables differ: its second has 2.0836 for E_start."""
    law = shipped_law("joint_moe")
    second = law.model_copy(update={"coefficients": {**law.coefficients, "e_start": 2.0836}})
    for value, theirs, expected in zip(
        reduced(law, n_experts), reduced(second, n_experts), REDUCED[n_experts], strict=True
    ):
        if abs(expected) < 1:
            assert value == pytest.approx(expected, abs=2.2e-4)  # of constants with four digits, times ln 30
            assert theirs == pytest.approx(expected, abs=2.2e-4)
        else:
            assert value == pytest.approx(expected, rel=3e-3)
            assert theirs == pytest.approx(expected, rel=3e-4)


def test_joint_moe_counts_parameters_as_its_paper_does() -> None:
    """N_act = 2 d V + 13 l d² with V 50,257; table E of the paper: 16 blocks of 1,024 are 321 M."""
    m = one({"depth": 16, "width": 1024, "n_kv_heads": 16, "expert_size": 3072, "n_experts": 32, "top_k": 1})
    counted = shipped_law("joint_moe").feature(m, "active_parameters_with_embeddings")[0]
    assert counted == pytest.approx(2 * 1024 * 50257 + 13 * 16 * 1024**2, rel=2e-3)  # small tensors and the router
    assert counted / 1e6 == pytest.approx(321, abs=1)


def test_chinchilla_epochs_optimum_is_twenty_tokens_a_parameter() -> None:
    """At 10²³ FLOPs, C = 6ND: the least of the law's own terms along the isoFLOP curve."""
    law, c = shipped_law("chinchilla_epoch"), 1e23
    sizes = np.geomspace(1e9, 1e12, 20_001)
    values = law.law_form.values(lambda name: sizes if name != "tokens" else c / 6 / sizes, law.coefficients)
    best = sizes[np.argmin(sum(values.values(), np.zeros(len(sizes))))]
    assert c / 6 / best**2 == pytest.approx(20, abs=2.5)


def test_routed_is_its_published_losses(external_data: Path) -> None:
    """Dense and S-BASE rows of the paper's own runs; the slope of the dense ones is 0.078 there."""
    with (external_data / "loss" / "deepmind_routing.csv").open() as lines:
        rows = [r for r in csv.DictReader(lines) if r["router_type"] in ("Dense", "S-Base")]
    rows = [r for r in rows if r["k"] == "1" and float(r["flop_increase"]) == 1 and r["routing_frequency"] == "0.5"]
    column = {name: np.array([float(r[name]) for r in rows]) for name in ("num_experts", "loss_validation")}
    size = np.array([float(r["dense_parameter_count"]) for r in rows])
    law = shipped_law("routed")
    given = {"active_parameters": size, "n_experts": column["num_experts"]}
    predicted = law.law_form.loss(sum(law.law_form.values(given.__getitem__, law.coefficients).values()))
    assert len(rows) > 50
    assert np.sqrt(np.mean(np.log(predicted / column["loss_validation"]) ** 2)) < 0.01
    dense = [r["router_type"] == "Dense" for r in rows]
    slope = np.polyfit(np.log(size[dense]), np.log(column["loss_validation"][dense]), 1)[0]
    own = np.polyfit(np.log(size[dense]), np.log(predicted[dense]), 1)[0]
    assert slope == pytest.approx(-0.078, abs=1e-3)
    assert own == pytest.approx(-0.078, abs=2e-3)


def test_one_expert_is_the_start_of_a_saturation() -> None:
    law = shipped_law("routed")
    bent = law.law_form.bent["effective_experts"]
    experts = np.array([1.0, 2.0, 8.0, 512.0, 1e12])
    found = np.asarray(bent.value(experts, law.coefficients))
    assert found[0] == pytest.approx(1.847, rel=1e-12)
    assert (np.diff(found) > 0).all()
    assert found[-1] == pytest.approx(314.478, rel=1e-6)


def test_fine_grained_prefers_finer_experts_and_has_constants_of_its_own_for_dense_models() -> None:
    law, m = shipped_law("fine_grained"), models(64, size=4096)
    finer = models(256, top_k=4, size=1024)
    assert (law.loss(finer) < law.loss(m)).all()
    n, d = law.feature(m, "parameters"), law.tokens or 0.0
    np.testing.assert_allclose(law.loss(m), 0.47 + (2.1 + 18.1) / n**0.115 + 30.8 / d**0.147, rtol=1e-12)
    n, plain = law.feature(models(1), "parameters"), models(1)
    np.testing.assert_allclose(law.loss(plain), 0.47 + 16.3 / n**0.126 + 26.7 / d**0.127, rtol=1e-12)
    assert np.isinf(law.loss(models(16))).all()
    assert set(law.unpriced(models(16))) == {"expansion_rate"}


def test_sparsity_iso_is_its_formula() -> None:
    law, m = shipped_law("sparsity_iso"), models(16, top_k=2)
    n, d, kept = law.feature(m, "parameters"), law.tokens or 0.0, 2 / 16
    expected = (
        16612.5 / n**0.5962 + 5455.67 / d**0.3954 + 0.4598 / kept**-0.1666 + 17.26 / (kept**0.1603 * n**0.1595) + 0.94
    )
    np.testing.assert_allclose(law.loss(m), expected, rtol=1e-12)
    assert "0.68" in law.caveat


def test_four_epochs_are_almost_fresh_data_and_forty_are_not() -> None:
    law, m = shipped_law("data_limited"), models(1)[:1]

    def loss(tokens: float, unique: float) -> float:
        told = {"tokens": tokens, "coefficients": {**law.coefficients, "unique_tokens": unique}}
        return float(law.model_copy(update=told).terms(m)["tokens"][0])

    fresh, four, forty = loss(40e9, 40e9), loss(40e9, 10e9), loss(40e9, 1e9)
    assert four / fresh - 1 == pytest.approx(0.027, abs=2e-3)
    assert forty / fresh > 1.3
    assert loss(1e15, 1e9) == pytest.approx(1487.716 / (1e9 * (1 + 15.387756)) ** 0.3526596, rel=1e-6)


def test_parameters_beyond_what_unique_tokens_feed_count_less() -> None:
    """U_N = 0.051 U_D, which is G² U_D of the fitted constants; up to there a parameter counts whole."""
    law = shipped_law("data_limited")
    c, bend = law.coefficients, law.law_form.bent["effective_parameters"]
    assert (c["a"] / c["b"]) ** (1 / c["alpha"]) == pytest.approx(c["parameters_per_token"], abs=5e-4)
    enough = 0.051 * 10e9
    assert bend.value(np.array([0.5, 1.0]) * enough, c) == pytest.approx([0.5 * enough, enough])
    assert bend.value(np.array([1e15]), c)[0] == pytest.approx(enough * (1 + 5.309743))  # type: ignore[index]


@pytest.mark.parametrize("name", LAWS)
def test_a_shipped_law_says_what_it_is_good_for(name: str) -> None:
    law = shipped_law(name)
    assert law.name == name
    assert law.description
    assert law.source
    assert law.cannot_see
    assert law.fitted_on
    assert law.tokens


def test_a_law_prices_what_its_paper_varied_alone() -> None:
    both = Architectures.concatenate([models(1)[:1], models(8)[:1], models(8, top_k=2)[:1]])
    priced = {name: np.isfinite(shipped_law(name).loss(both)).tolist() for name in LAWS}
    assert priced["joint_moe"] == priced["routed"] == [True, True, False]
    assert priced["chinchilla"] == priced["chinchilla_epoch"] == priced["data_limited"] == [True, False, False]
    assert priced["hw_codesign"] == priced["sparsity_iso"] == [True, True, True]


def test_counts_with_embeddings_are_the_laws_own_whatever_the_study_counts() -> None:
    law = shipped_law("chinchilla")
    m = models(1)
    np.testing.assert_array_equal(law.loss(m), law.loss(m.with_vocabulary(151_936, tied=False)))
    body = law.feature(m, "parameters")
    np.testing.assert_array_equal(law.feature(m, "parameters_with_embeddings"), body + 32_000 * 1024)
