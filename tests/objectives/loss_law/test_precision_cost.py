"""What few bits cost: the papers' own values, and a law beside it."""

import math
from typing import Any

import numpy as np
import pytest

from nas.study.catalogue import load_law
from objectives.composition import composition_of
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from objectives.loss_law.precision_cost import KUMAR, FewBits, Penalty, taken_as_another, unpriced_formats
from objectives.parts import Quantity
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

AT = np.array([358e6])
LAWS = ("hw_codesign", "routed", "conditional", "chinchilla_epoch", "joint_moe", "evidence")


def designs(n_experts: int = 1, precision: str = "") -> Architectures:
    """Models of one width and several depths."""
    columns: dict[str, Any] = {"depth": [8, 12, 24], "width": 1024, "n_kv_heads": 4, "expert_size": 4096}
    return Architectures.from_columns({**columns, "n_experts": n_experts, "top_k": 1, "precision": precision})


def beside(law: str, precision_law: str, precision: str = "") -> Law:
    """A shipped law beside a law of what few bits cost."""
    return load_law(law).model_copy(update={"precision_law": precision_law, "precision": precision})


@pytest.mark.parametrize(
    ("law", "precision", "tokens", "nats"),
    [
        ("qat", "int4", 10e9, 0.0174),
        ("kumar", "int4", 10e9, 0.0327),
        ("kumar", "nvfp4", 10e9, 0.0583),
        ("qat", "int4", 1e12, 0.0365),
    ],
)
def test_costs_are_those_of_the_papers_constants(law: Any, precision: str, tokens: float, nats: float) -> None:
    found = FewBits(law, precision, tokens, 128).penalty("")
    assert found is not None
    assert found.nats(AT)[0] == pytest.approx(nats, abs=5e-5)


def test_w4a4_in_groups_of_128_costs_what_the_paper_says() -> None:
    """nvfp4 has groups of 16, which cost less."""
    k, gamma_n, gamma_d, gamma_g = 0.1582, 0.2186, 0.0745, 0.7779
    nvfp4 = FewBits("qat", "nvfp4", 10e9, 128).penalty("")
    assert nvfp4 is not None
    wide = Penalty("qat", nvfp4.scale * (math.log2(128) / math.log2(16)) ** gamma_g, nvfp4.exponent, 10e9)
    assert wide.nats(AT)[0] == pytest.approx(0.0539, abs=5e-5)
    assert nvfp4.nats(AT)[0] == pytest.approx(k * 10e9**gamma_d * 4**gamma_g / 358e6**gamma_n, rel=1e-12)


def test_kumar_counts_fewer_parameters() -> None:
    a, alpha = KUMAR
    left = (1 - math.exp(-8 / 2.6745)) * (1 - math.exp(-8 / 2.2102))
    found = FewBits("kumar", "int8", 10e9, 128).penalty("")
    assert found is not None
    assert found.nats(AT)[0] == pytest.approx(a / (left * 358e6) ** alpha - a / 358e6**alpha, rel=1e-9)


@pytest.mark.parametrize(
    ("law", "formats", "unknown"),
    [
        ("qat", ["fp16", "int8", "int4"], ["int8"]),
        ("qat", ["int4", "w4a16"], []),
        ("kumar", ["q4_k_m", "q8_0", "mxfp4"], ["q4_k_m", "q8_0", "mxfp4"]),
        ("kumar", ["int8", "int4_kv8", "nvfp4_kv4"], []),
        ("qat", ["fp16", "fp32", "nvfp4_down8"], []),
        ("qat", ["int4_kv8", "fp16_kv4"], ["int4_kv8", "fp16_kv4"]),
        ("post_training", ["fp16", "int8", "int4", "w4a16", "q4_0", "q4_k_m", "q5_k_m", "q6_k", "q8_0"], []),
        ("post_training", ["mxfp4", "q4_k_s", "iq4_xs", "fp8", "mlx_4bit", "mlx_6bit", "mlx_8bit"], []),
        ("post_training", ["q2_k", "nvfp4", "q8_0_kv8", "q4_k_s_kv8"], ["q2_k", "nvfp4", "q8_0_kv8", "q4_k_s_kv8"]),
    ],
)
def test_what_a_law_has_no_constants_for_is_unknown(law: Any, formats: list[str], unknown: list[str]) -> None:
    assert unpriced_formats(law, formats) == unknown


def test_rounding_in_groups_larger_than_were_measured_is_unknown() -> None:
    assert unpriced_formats("post_training", ["int4", "w4a16"], 256) == ["int4"]
    assert unpriced_formats("post_training", ["int4"], 32) == []


@pytest.mark.parametrize(("law", "said"), [("kumar", True), ("qat", False)])
def test_what_is_priced_as_a_format_that_costs_more_is_said(law: Any, said: bool) -> None:
    words = ["nvfp4_down8: taken as nvfp4, which costs more"] if said else []
    assert taken_as_another(law, ["nvfp4", "nvfp4_down8"]) == words


def test_down_projections_with_inputs_of_8_bits_cost_what_the_paper_says() -> None:
    k, gamma_n, gamma_d, gamma_g = 0.3519, 0.2637, 0.0964, 0.3407
    found, all_at_4 = (FewBits("qat", name, 10e9, 128).penalty("") for name in ("nvfp4_down8", "nvfp4"))
    assert found is not None
    assert all_at_4 is not None
    assert found.nats(AT)[0] == pytest.approx(k * 10e9**gamma_d * 4**gamma_g / 358e6**gamma_n, rel=1e-12)
    assert found.nats(AT)[0] < all_at_4.nats(AT)[0]
    assert FewBits("kumar", "nvfp4_down8", 10e9, 128).penalty("") == FewBits("kumar", "nvfp4", 10e9, 128).penalty("")


@pytest.mark.parametrize(
    ("name", "pair"),
    [("q4_k_s", ("q4_0", "q4_k_m")), ("iq4_xs", ("w4a16", "q4_k_m")), ("mxfp4", ("w4a16", "q4_k_m"))],
)
def test_a_format_that_nobody_measured_lies_between_those_next_to_it(name: str, pair: tuple[str, str]) -> None:
    words = f"{name}: nobody measured it, taken as {pair[0]} or {pair[1]}"
    assert taken_as_another("post_training", [name, *pair]) == [words]
    dear, own, cheap = (FewBits("post_training", each, 10e9, 128) for each in (pair[0], name, pair[1]))
    nats = [float(each.nats(designs(precision=each.precision))[0]) for each in (dear, own, cheap)]
    assert nats == sorted(nats, reverse=True)
    assert nats[1] == pytest.approx(math.sqrt(nats[0] * nats[2]))
    (_, most), (low, high), (least, _) = (
        each.interval(designs(precision=each.precision)[:1]) or (0.0, 0.0) for each in (dear, own, cheap)
    )
    assert least * 0.99 <= low < nats[1] < high <= most * 1.01
    assert high / low > 4.0


@pytest.mark.parametrize(("bits", "nats"), [(8, 2.9e-5), (4, 0.0019)])
def test_kumar_alone_prices_a_kv_cache_of_few_bits(bits: int, nats: float) -> None:
    a, alpha = KUMAR
    left = 1 - math.exp(-bits / 0.96)
    found = FewBits("kumar", f"fp16_kv{bits}", 10e9, 128).penalty("")
    assert found is not None
    assert found.nats(AT)[0] == pytest.approx(a * 358e6**-alpha * (left**-alpha - 1), rel=1e-9)
    assert found.nats(AT)[0] == pytest.approx(nats, rel=0.01)
    both = FewBits("kumar", f"int4_kv{bits}", 10e9, 128).penalty("")
    assert both is not None
    assert both.nats(AT)[0] == pytest.approx(a * 358e6**-alpha * ((left * (1 - math.exp(-4 / 2.6745))) ** -alpha - 1))
    assert FewBits("qat", f"fp16_kv{bits}", 10e9, 128).penalty("") is None
    plain, cached = (FewBits("qat", name, 10e9, 128).penalty("") for name in ("int4", f"int4_kv{bits}"))
    assert plain == cached


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("precision_law", ["qat", "kumar"])
def test_a_law_adds_what_the_format_of_each_design_costs(name: str, precision_law: str) -> None:
    plain, law = load_law(name), beside(name, precision_law)
    rows = Architectures.concatenate([designs(precision=p) for p in ("fp16", "int4", "nvfp4")])
    added = law.loss(rows) - plain.loss(rows)
    np.testing.assert_array_equal(added[:3], 0.0)
    expected = FewBits(law.precision_law or "qat", "", law.tokens or 10e9, 128).nats(rows)
    np.testing.assert_allclose(added, expected, rtol=0, atol=1e-12)
    assert (added[6:] > added[3:6]).all()
    assert (added[3:6] > 0).all()
    np.testing.assert_allclose(sum(law.terms(rows).values()), law.loss(rows), rtol=1e-12)
    np.testing.assert_array_equal(
        beside(name, precision_law, "int4").loss(designs()), law.loss(designs(precision="int4"))
    )


def test_what_a_law_prices_is_said_with_and_without_limits() -> None:
    dense, every = load_law("chinchilla"), load_law("hw_codesign")
    for law, said in ((dense, "designs of n_experts 1 alone"), (every, "every design")):
        assert law.priced_designs == said
        assert law.model_copy(update={"precision_law": "qat"}).priced_designs == said


def test_few_bits_cost_experts_what_they_cost_dense_models_of_as_many_active_parameters_and_a_range_is_marked() -> None:
    law, bare = beside("hw_codesign", "qat"), load_law("hw_codesign")
    sparse = designs(8, "int4")
    assert law.few_bits is not None
    cost = law.few_bits.penalty("int4")
    assert cost is not None
    assert law.loss(designs(8, "fp16")) == pytest.approx(bare.loss(designs(8, "fp16")), rel=1e-15)
    assert law.loss(sparse) - bare.loss(sparse) == pytest.approx(
        cost.nats(feature(sparse, "active_parameters")), rel=1e-9
    )
    sizes = feature(designs(), "parameters")
    assert law.few_bits is not None
    assert law.few_bits.extrapolates(designs(precision="int4")).tolist() == ((sizes < 74e6) | (sizes > 595e6)).tolist()
    assert not law.few_bits.extrapolates(designs(precision="fp16")).any()


def value_of(law: Law, quantity: Quantity, rows: Architectures) -> FloatArray:
    """A quantity of a composition, (n,): what a term multiplies is the sum of its parts."""
    if isinstance(quantity, str):
        return law.feature(rows, quantity)
    parts = [quantity.of_part(rows, part) for part in ("base", "attention", "ffn")]
    return np.asarray(sum(part for part in parts if part is not None))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("precision_law", ["kumar", "post_training"])
def test_a_composition_is_the_law_of_its_own_format_and_bounds_a_range_of_ffns(name: str, precision_law: str) -> None:
    law = beside(name, precision_law, "int4")
    shape: dict[str, Any] = {"depth": 12, "width": 1024, "n_kv_heads": 4, "n_experts": 1, "top_k": 1}
    rows = Architectures.from_columns({**shape, "expert_size": [1024, 2048, 3072, 4096]})
    known = composition_of(law)
    of = {quantity: value_of(law, quantity, rows) for quantity in known.quantities}
    exact = [of[quantity] for quantity, sign in known.quantities.items() for _ in range(1 if sign else 2)]
    np.testing.assert_allclose(known.value(*exact), law.loss(rows), rtol=1e-12)
    ends = {quantity: [column.min(keepdims=True), column.max(keepdims=True)] for quantity, column in of.items()}
    sides = {1: slice(0, 1), -1: slice(1, 2), 0: slice(0, 2)}
    best = [end for quantity, sign in known.quantities.items() for end in ends[quantity][sides[sign]]]
    assert known.value(*best)[0] <= law.loss(rows).min() * (1 + 1e-15)  # but for the last bit
