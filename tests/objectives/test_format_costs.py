"""What formats cost when they round a trained model: the published rows, the fit, models left out, and a law's draws."""

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.format_costs import cost_draws, left_out, published_costs
from nas.study.catalogue import load_law
from objectives.drawn_bounds import DrawByDraw
from objectives.loss_law.features import feature
from objectives.loss_law.law import Law
from objectives.loss_law.precision_cost import FewBits
from objectives.weight_formats.table import FormatCosts, format_costs
from search_spaces.architectures import Architectures
from search_spaces.formats import FORMATS

ORDER = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0")
SIZES = np.array([0.5e9, 1e9, 3e9, 8e9])


def designs(precision: str) -> Architectures:
    """Three sizes of one shape."""
    columns: dict[str, Any] = {"depth": [8, 12, 24], "width": 1024, "n_kv_heads": 4, "expert_size": 4096}
    return Architectures.from_columns({**columns, "n_experts": 1, "top_k": 1, "precision": precision})


def evidence(precision: str = "") -> Law:
    """The law with draws, beside what rounding costs."""
    return load_law("evidence").model_copy(update={"precision_law": "post_training", "precision": precision})


def test_every_row_names_a_format_of_ours_its_source_and_its_licence() -> None:
    rows = published_costs()
    assert {row.format for row in rows} == set(format_costs().nats) <= set(FORMATS)
    assert all(row.source and row.error > 0.0 and 5e7 < row.parameters < 1e11 for row in rows)
    llama = next(row for row in rows if row.model == "Llama-3-8B" and row.format == "q4_k_m")
    assert llama.nats == pytest.approx(math.log(6.407115 / 6.231634), rel=1e-12)
    assert llama.family == "llama"


def test_fewer_bits_cost_more_at_every_size_and_larger_models_lose_less() -> None:
    costs = []
    for name in ORDER:
        penalty = FewBits("post_training", name, 10e9, 128).penalty("")
        assert penalty is not None
        costs.append(penalty.nats(SIZES))
    assert (np.diff(costs, axis=0) > 0.0).all()
    assert (np.diff(costs, axis=1) < 0.0).all()
    published = {name: [row.nats for row in published_costs() if row.format == name] for name in ORDER}
    medians = [float(np.median(published[name])) for name in ORDER]
    assert medians == sorted(medians)


@pytest.mark.slow
def test_the_file_is_the_fit_of_the_rows() -> None:
    found, kept = cost_draws(published_costs(), sweeps=400), format_costs()
    levels, exponent = found.centre
    for name, level in zip(found.formats, levels.tolist(), strict=True):
        assert kept.nats[name] == pytest.approx(math.exp(level), rel=0.3), name
    assert kept.exponent == pytest.approx(exponent, abs=0.03)


@pytest.mark.slow
def test_intervals_hold_the_figures_of_families_left_out() -> None:
    """Whole families are left out, which is harder than one model; `benchmarks/format_costs.py --judge` does both at length."""
    found = left_out(published_costs(), lambda row: row.family, sweeps=150)
    inside = [low <= row.nats <= high for row, low, high in found]
    assert 0.8 <= np.mean(inside) <= 0.95


def test_draws_of_a_file_that_lacks_a_format_are_refused() -> None:
    content = format_costs().model_dump()
    with pytest.raises(ValueError, match="expected those of the formats of nats"):
        FormatCosts.model_validate({**content, "draws": ("0.1 0.2",)})


def test_a_laws_draws_hold_the_doubt_of_its_format_and_agree_between_formats() -> None:
    plain, law = load_law("evidence"), evidence()
    names = ("fp16", "q8_0", "q4_k_m", "q4_0")
    gaps = {n: law.drawn_losses(designs(n)) - plain.drawn_losses(designs("fp16")) for n in names}
    assert not gaps["fp16"].any()
    sizes = feature(designs("q4_0"), "parameters")
    for name in names[1:]:
        few = FewBits("post_training", name, 10e9, 128)
        ends = few.interval(designs(name)[:1])
        assert ends is not None
        scales, exponents = format_costs().drawn_terms((name, name))
        assert ends == pytest.approx(np.quantile(scales * sizes[0] ** -exponents, [0.05, 0.95]), rel=1e-12)
        low, high = ends
        assert np.quantile(gaps[name][:, 0], [0.05, 0.95]).tolist() == pytest.approx([low, high], rel=1e-9), name
        assert (np.diff(gaps[name], axis=1) <= 0.0).all()
    dear = gaps["q4_0"][:, 0] > np.median(gaps["q4_0"][:, 0])
    assert np.median(gaps["q4_k_m"][dear, 0]) > np.median(gaps["q4_k_m"][~dear, 0])
    assert (law.loss(designs("q4_0")) > law.loss(designs("q8_0"))).all()


def test_each_draw_is_a_law_of_its_own_with_its_own_cost_of_the_format() -> None:
    law, rows = evidence("q4_k_m"), designs("")
    bounds = DrawByDraw.of(law)
    columns = []
    for quantity, side in bounds.quantities.items():
        if isinstance(quantity, str):
            of = law.feature(rows, quantity)
        else:
            parts = (quantity.of_part(rows, part) for part in ("base", "attention", "ffn"))
            of = np.asarray(sum(part for part in parts if part is not None))
        columns += [of] if side else [of, of]
    np.testing.assert_allclose(bounds.losses(columns), law.drawn_losses(rows), rtol=1e-9)
