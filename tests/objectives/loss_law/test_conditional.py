"""The law that sees attention size, and the quantities that it is made of."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.study.baselines import baseline
from objectives.composition import composition_of
from objectives.loss_law.features import feature
from objectives.loss_law.form import named_form
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import FORM as JOINED
from plas_fit.fitting.estimate import Method, fitted
from plas_fit.fitting.portability import predictions
from plas_fit.fitting.trained_models import Table
from search_spaces.architectures import Architectures, architectures_of, one
from search_spaces.space import SearchSpace
from tests.objectives.loss_law.bian import bian

PANDA = {"depth": 16, "width": 2560, "expert_size": 4096, "n_heads": 72, "head_dim": 64, "n_kv_heads": 18}
CONSTANTS = {
    "conditional": (2.697, 0.0974, 0.0078, 0.3870, 0.0063, 0.0065),
    "conditional_1b": (2.319, 0.238, 0.0176, 0.5104, 0.0051, 0.0062),
}


@pytest.fixture(params=sorted(CONSTANTS))
def law(request: pytest.FixtureRequest, shipped: Any) -> Law:
    """Both fits of the paper."""
    return Law.model_validate(shipped("objectives.laws", request.param))


def test_the_loss_is_the_papers_formula(law: Law) -> None:
    a0, a1, a2, b0, b1, b2 = CONSTANTS[law.name]
    attention, ffn = 2 * 2560 * 72 * 64 + 2 * 2560 * 18 * 64, 3 * 2560 * 4096
    n = 16 * (attention + ffn + 2 * 2560) + 2560
    u, r = 2560 / math.sqrt(n), ffn / attention
    best = 482.01 / n**0.3478 + 2085.43 / (law.tokens or 0) ** 0.3658 + 1.8172
    expected = (a0 + a1 * math.log(u) + a2 / u) * (b0 + b1 * math.log(r) + b2 / r) * best
    row = one({**PANDA, "qk_norm": "no"})
    assert law.loss(row)[0] == pytest.approx(expected, rel=1e-12)
    assert sum(law.terms(row).values())[0] == law.loss(row)[0]
    assert feature(row, "ffn_attention_ratio")[0] == r


@pytest.mark.parametrize(
    ("changed", "sees"), [("n_heads", True), ("depth", True), ("vocabulary", False), ("tied", False)]
)
def test_it_sees_attention_size_and_no_vocabulary(law: Law, changed: str, sees: bool) -> None:
    value = {"n_heads": 36, "depth": 17, "vocabulary": 32_000, "tied": False}[changed]
    assert (law.loss(one(PANDA))[0] != law.loss(one({**PANDA, changed: value}))[0]) == sees


def test_an_extreme_shape_is_worse_at_equal_parameters(law: Law) -> None:
    """U-shaped in r: as many parameters, moved to either side, cost loss."""
    width, losses = 2048, []
    for size, heads in ((3072, 134), (4096, 110), (7168, 38)):  # 3 m + 128 (n_h + n_kv) = 26,624
        losses.append(
            law.loss(one({"depth": 16, "width": width, "expert_size": size, "n_heads": heads, "n_kv_heads": 2}))[0]
        )
    assert losses[1] < min(losses[0], losses[2])


def test_a_ratio_follows_from_counts_that_a_table_holds() -> None:
    counts = {"width": np.array([512.0, 1024.0]), "active_parameters": np.array([4e6, 9e6]), "loss": np.ones(2)}
    table = Table(counts, np.arange(2))
    np.testing.assert_allclose(table.feature("normalised_width"), [512 / 2e3, 1024 / 3e3])
    assert not table.has("ffn_attention_ratio")


def test_parts_make_up_the_ratio_and_bound_it(law: Law) -> None:
    """Of one design the composition is the loss; of a range of FFNs it is at most the loss of every one of them."""
    rows = architectures_of([{**PANDA, "expert_size": size} for size in range(512, 8192, 256)])
    known = composition_of(law)
    columns = {name: feature(rows, name) for name in known.quantities}
    exact = [column for name, sign in known.quantities.items() for column in [columns[name]] * (1 if sign else 2)]
    np.testing.assert_allclose(known.value(*exact), law.loss(rows), rtol=1e-12)
    ends = {name: (column.min(keepdims=True), column.max(keepdims=True)) for name, column in columns.items()}
    sides = [end for name, sign in known.quantities.items() for end in (ends[name][:1] if sign else ends[name])]
    bound = known.value(*sides)[0]
    assert bound <= law.loss(rows).min()
    assert bound > 0.9 * law.loss(rows).min()


def test_of_the_measured_shapes_it_puts_the_best_1b_first_and_the_worst_3b_last(
    law: Law, law_of_the_paper: Law, external_data: Path
) -> None:
    shapes, sizes = bian(external_data / "loss" / "bian_shapes.csv")
    for size, extreme, of in ((0, "Panda-1B", np.argmin), (1, "LLaMA-3.2-3B shape", np.argmax)):
        table = shapes[np.flatnonzero(sizes == size)]
        assert table.names is not None
        predicted, papers = predictions(law, table, {}), predictions(law_of_the_paper, table, {})
        assert table.names[of(predicted)] == table.names[of(table.loss)] == extreme
        assert table.names[of(-papers)] == extreme


@pytest.fixture
def law_of_the_paper(shipped: Any) -> Law:
    """`hw_codesign`, which has no term for attention size."""
    return Law.model_validate(shipped("objectives.laws", "hw_codesign"))


def test_qwen3_and_pandas_shapes_are_in_the_shipped_space(shipped: Any) -> None:
    space = SearchSpace.from_mapping(shipped("search_spaces.spaces", "heads"))
    pandas = [
        PANDA,
        {"depth": 28, "width": 4096, "expert_size": 4096, "n_heads": 36, "head_dim": 128, "n_kv_heads": 12},
    ]
    known = [baseline(name).architecture for name in ("qwen3_0.6b", "qwen3_4b", "qwen3_30b_a3b")]
    for shape in (*known, *map(one, pandas)):
        (key,) = space.find(shape)
        assert key >= 0
        assert (
            space.architectures(space.genotypes(np.array([key]))).query_dim[0] == shape.query_dim[0] != shape.width[0]
        )


def trained(shares: list[float]) -> Table:
    """Made-up models whose loss falls with ln d_q by 0.05, in a design with d_q / d among `shares`."""
    generator, n = np.random.default_rng(5), 120
    columns: dict[str, Any] = {
        "depth": generator.choice([4, 8, 16, 32], n),
        "width": generator.choice([512, 1024, 2048], n),
        "n_experts": generator.choice([1, 8], n),
    }
    columns["top_k"] = np.ones(n)
    columns["expert_size"] = columns["width"] * generator.choice([1, 2, 4], n)
    columns["n_heads"] = (columns["width"] / 64 * generator.choice(shares, n)).astype(int)
    columns["n_kv_heads"] = columns["n_heads"] // generator.choice([1, 2, 4], n)
    shape = Architectures.from_columns(columns)
    d, r, rate = shape.width, shape.ffn_ratio, shape.activation_rate
    loss = 10 / shape.depth**1.6 + 500 / (r**0.17 * d**0.97) + 0.03 * rate**1.1 * d**0.33 / r**0.17 + 2.9
    loss = loss - 0.02 * np.log(shape.kv_dim / 512) - 0.05 * np.log(shape.query_dim / 1024)
    numbers = {name: np.asarray(column, dtype=float) for name, column in columns.items()}
    return Table({**numbers, "loss": loss + generator.normal(0, 0.002, n)}, np.arange(n))


def test_a_fit_finds_what_attention_size_is_worth() -> None:
    form = named_form("hw_codesign_queries")
    found = fitted("hw_codesign_queries", form, trained([0.5, 1, 2]), Method(starts=4))
    assert found.coefficients["kappa_q"] == pytest.approx(0.05, abs=0.004)
    with pytest.raises(ValueError, match="query_dim: expected rows that differ in n_heads"):
        fitted("hw_codesign_queries", form, trained([1]), Method(starts=4))


def test_a_form_with_factors_is_used_not_fitted() -> None:
    with pytest.raises(ValueError, match="it can be used as a law, not fitted"):
        fitted("conditional", named_form("conditional"), trained([1]), Method(starts=4))


def test_a_form_that_joins_terms_is_used_not_fitted() -> None:
    with pytest.raises(ValueError, match=r"^form: .*joined terms.*it can be used as a law, not fitted"):
        fitted("evidence", JOINED, trained([1]), Method(starts=4))
