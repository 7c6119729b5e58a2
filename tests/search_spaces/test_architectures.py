"""Architectures as columns: derived quantities, reading, refusing, selecting."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces.architectures import Architectures, architectures_of, one
from search_spaces.columns import DEFAULTS, QK_NORMS, SHAPE

SHAPED = {"depth": 16, "width": 2048, "n_kv_heads": 4, "n_experts": 16, "top_k": 1, "expert_ffn_ratio": 0.5}
QWEN3 = {"depth": 28, "width": 1024, "head_dim": 128, "n_heads": 16, "n_kv_heads": 8, "expert_size": 3072}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Columns of any architecture, in or out of a search space."""
    n_kv, gqa = draw(st.integers(1, 16)), draw(st.integers(1, 16))
    experts = draw(st.integers(1, 600))
    return {
        "depth": draw(st.integers(1, 200)),
        "width": draw(st.integers(1, 20_000)),
        "head_dim": draw(st.integers(1, 512)),
        "n_heads": n_kv * gqa,
        "n_kv_heads": n_kv,
        "n_experts": experts,
        "top_k": 1 if experts == 1 else draw(st.integers(1, experts - 1)),
        "expert_size": draw(st.integers(1, 100_000)),
        "shared_expert_size": draw(st.integers(0, 9000)),
        "shared_gate": draw(st.booleans()),
        "qk_norm": draw(st.sampled_from(QK_NORMS)),
        "qkv_bias": draw(st.booleans()),
        "norms_per_layer": draw(st.integers(1, 5)),
        "tied": draw(st.booleans()),
        "vocabulary": draw(st.integers(0, 300_000)),
    }


def stored(architectures: Architectures) -> dict[str, list[Any]]:
    """Every stored column as plain values."""
    return {field.name: getattr(architectures, field.name).tolist() for field in fields(architectures)}


@given(row=rows())
def test_what_is_read_is_what_was_written(row: dict[str, Any]) -> None:
    found = one(row)
    for name, value in row.items():
        expected = QK_NORMS.index(value) if name == "qk_norm" else value
        assert getattr(found, name).tolist() == [expected]


@given(row=rows())
def test_derived_columns_follow_their_definitions(row: dict[str, Any]) -> None:
    found = one(row)
    assert found.query_dim.tolist() == [row["n_heads"] * row["head_dim"]]
    assert found.kv_dim.tolist() == [row["head_dim"] * row["n_kv_heads"]]
    assert found.gqa.tolist() == [row["n_heads"] / row["n_kv_heads"]]
    assert found.activation_rate.tolist() == [row["top_k"] / row["n_experts"]]
    assert found.expert_ffn_ratio.tolist() == [row["expert_size"] / row["width"]]
    assert found.ffn_ratio == pytest.approx(row["top_k"] * row["expert_size"] / row["width"], rel=1e-15)


@given(content=st.lists(rows(), min_size=1, max_size=5))
def test_columns_read_back_to_the_same_architectures(content: list[dict[str, Any]]) -> None:
    written = architectures_of(content)
    assert stored(Architectures.from_columns(written.columns())) == stored(written)


@given(content=st.lists(rows(), min_size=2, max_size=6), data=st.data())
def test_selection_keeps_rows_whole_and_in_the_order_asked(content: list[dict[str, Any]], data: st.DataObject) -> None:
    together = architectures_of(content)
    singles = [one(row) for row in content]
    chosen = data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8))
    mask = data.draw(st.lists(st.booleans(), min_size=len(content), max_size=len(content)))
    cut = slice(data.draw(st.integers(0, len(content))), None, data.draw(st.sampled_from([1, 2, -1])))
    for picked, order in [
        (together[np.array(chosen, dtype=np.int64)], chosen),
        (together[np.array(mask)], [i for i, kept in enumerate(mask) if kept]),
        (together[cut], list(range(len(content)))[cut]),
    ]:
        assert isinstance(picked, Architectures)
        assert len(picked) == len(order)
        assert [stored(picked[i : i + 1]) for i in range(len(picked))] == [stored(singles[i]) for i in order]


def test_rows_at_their_defaults_select_and_join_like_others() -> None:
    """Columns at their default are kept without memory; that must not show."""
    shape = {name: np.arange(1, 6, dtype=np.int64) for name in SHAPE}
    plain = Architectures.from_shape(shape)
    with_head = plain.with_vocabulary(7, tied=False)
    joined = Architectures.concatenate([plain[1:3], with_head[np.array([4, 0])], plain[:0]])
    assert joined.depth.tolist() == [2, 3, 5, 1]
    assert joined.vocabulary.tolist() == [0, 0, 7, 7]
    assert joined.tied.tolist() == [True, True, False, False]
    assert joined.norms_per_layer.tolist() == [2, 2, 2, 2]
    repeated = plain[np.array([4] * 9)]
    assert repeated.depth.tolist() == [5] * 9
    assert repeated.norms_per_layer.tolist() == [2] * 9


def test_every_column_is_read_only_and_frozen() -> None:
    found = architectures_of([SHAPED, QWEN3])
    for each in (found, found[:1], found[np.array([1])], found.with_vocabulary(9), Architectures.concatenate([found])):
        for field in fields(each):
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, field.name)[0] = 1
    with pytest.raises(AttributeError):
        found.depth = found.width  # type: ignore[misc]


def test_reading_leaves_the_callers_arrays_alone() -> None:
    columns = {"depth": np.array([4, 8]), "width": np.array([768, 1024]), "n_kv_heads": np.array([1, 2])}
    columns["expert_size"] = np.array([512, 256])
    before = {name: column.copy() for name, column in columns.items()}
    found = Architectures.from_columns(columns)
    for name, column in columns.items():
        assert column.flags.writeable
        assert np.array_equal(column, before[name])
        column[:] = 3
        assert np.array_equal(getattr(found, name), before[name])


def test_defaults_are_the_model_pages() -> None:
    found = one({"depth": 2, "width": 128, "n_kv_heads": 2, "expert_size": 64})
    assert found.head_dim.tolist() == [64]
    assert found.n_heads.tolist() == [2]
    assert (found.n_experts.tolist(), found.top_k.tolist()) == ([1], [1])
    assert DEFAULTS == {
        "shared_expert_size": 0,
        "shared_gate": False,
        "qk_norm": "head",
        "precision": "",
        "speculation": "",
        "experts_in": "",
        "device": "",
        "qkv_bias": False,
        "norms_per_layer": 2,
        "tied": True,
        "vocabulary": 0,
        "tokens": 0,
        "n_local": 0,
        "window": 0,
        "n_kv_shared": 0,
        "n_kv_shared_local": 0,
        "n_linear": 0,
        "linear_kind": "no",
        "linear_heads": 0,
        "linear_key_heads": 0,
        "linear_key_dim": 0,
        "linear_value_dim": 0,
        "linear_kernel": 0,
        "n_conv": 0,
        "conv_kernel": 0,
        "n_dense": 0,
        "dense_size": 0,
        "attention_gate": False,
        "full_head_dim": 0,
        "full_kv_heads": 0,
        "keys_are_values": False,
        "latent_size": 0,
        "latent_rope": 0,
        "latent_queries": 0,
        "value_dim": 0,
        "further_parameters": 0,
        "table_parameters": 0,
        "index_heads": 0,
        "index_dim": 0,
        "ungated_ffn": False,
        "layers": "",
    }
    assert found.further_columns() == {}


def test_shape_may_be_given_by_the_papers_ratios() -> None:
    given_sizes = one({"depth": 2, "width": 1024, "n_kv_heads": 4, "n_experts": 8, "top_k": 2, "expert_size": 512})
    by_single = {"depth": 2, "width": 1024, "gqa": 4, "n_experts": 8, "top_k": 2, "expert_ffn_ratio": 0.5}
    by_total = {"depth": 2, "width": 1024, "gqa": 4.0, "n_experts": 8, "top_k": 2, "ffn_ratio": 1}
    assert stored(one(by_single)) == stored(given_sizes) == stored(one(by_total))


def test_equal_activated_ratios_are_equal_numbers() -> None:
    """K · m = r · d in one order of operations: 2 experts of m tie with 1 of 2m bit by bit."""
    widths, sizes = (axis.ravel() for axis in np.meshgrid(np.arange(64, 4097, 64), np.arange(1, 400)))
    common = {"depth": 1, "width": widths, "n_kv_heads": 1, "n_experts": 8}
    pairs = Architectures.from_columns(common | {"top_k": 2, "expert_size": sizes})
    singles = Architectures.from_columns(common | {"top_k": 1, "expert_size": 2 * sizes})
    assert np.array_equal(pairs.ffn_ratio, singles.ffn_ratio)


def test_further_columns_show_only_what_differs_from_its_default() -> None:
    found = architectures_of([QWEN3, {**QWEN3, "qk_norm": "full", "qkv_bias": True}])
    further = found.further_columns()
    assert set(further) == {"qk_norm", "qkv_bias"}
    assert further["qk_norm"].tolist() == ["head", "full"]
    assert list(found.columns())[-2:] == ["qk_norm", "qkv_bias"]
    assert "qkv_bias" not in found[:1].columns()


def test_vocabulary_is_the_only_thing_that_with_vocabulary_changes() -> None:
    found = architectures_of([SHAPED, {**QWEN3, "tied": False, "vocabulary": 5}])
    with_head = stored(found.with_vocabulary(151_936))
    assert with_head.pop("vocabulary") == [151_936, 151_936]
    assert with_head == {name: column for name, column in stored(found).items() if name != "vocabulary"}
    assert found.with_vocabulary(1, tied=True).tied.tolist() == [True, True]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n_kv_heads": 5}, "n_kv_heads: expected a divisor of n_heads 32, got 5; choose one"),
    ({"n_kv_heads": 0}, "n_kv_heads: expected a positive integer, got 0; correct the architecture"),
    ({"depth": 1.5}, "depth: expected a positive integer, got 1.5; correct the architecture"),
    ({"depth": float("nan")}, "depth: expected a positive integer, got nan; correct the architecture"),
    ({"depth": float("inf")}, "depth: expected a positive integer, got inf; correct the architecture"),
    ({"depth": "deep"}, "depth: expected a positive integer, got deep; correct the architecture"),
    ({"depth": None}, "depth: expected a positive integer, got None; correct the architecture"),
    ({"depth": 10**400}, "depth: expected a positive integer, got 1000000"),
    ({"width": 2000}, "n_heads: expected a positive integer, got 31.25 from the other columns"),
    ({"top_k": 16}, "top_k: expected fewer than n_experts 16 (or 1 of 1, dense), got 16; lower top_k"),
    ({"n_experts": 1, "top_k": 2}, "top_k: expected fewer than n_experts 1 (or 1 of 1, dense), got 2; lower top_k"),
    ({"expert_ffn_ratio": 0.3333}, "expert_size: expected a positive integer, got 682.5984 from the other columns"),
    ({"gqa": 4}, "gqa: expected 8 from the other columns, got 4; drop one"),
    ({"gqa": 8 * (1 + 4e-6)}, "gqa: expected 8 from the other columns, got 8.00003; drop one"),
    ({"activation_rate": 1}, "activation_rate: expected 0.0625 from the other columns, got 1; drop one"),
    ({"qk_norm": "layer"}, "qk_norm: expected one of no, head, full, got layer; choose one"),
    ({"tied": "maybe"}, "tied: expected true or false, got maybe; choose one"),
    ({"vocabulary": -1}, "vocabulary: expected a whole number of at least 0, got -1; correct it"),
    ({"vocabulary": 2.5}, "vocabulary: expected a whole number of at least 0, got 2.5; correct it"),
    ({"norms_per_layer": 0}, "norms_per_layer: expected a whole number of at least 1, got 0; correct it"),
    ({"shared_expert_size": "big"}, "shared_expert_size: expected a whole number of at least 0, got big; correct it"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_what_is_no_architecture_is_refused_with_its_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        one({**SHAPED, **change})
    assert any(line.startswith(message) for line in str(caught.value).splitlines()), caught.value


def test_all_faults_come_at_once() -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        one({"width": 100.5, "n_kv_heads": 1, "n_experts": 4, "top_k": 4, "expert_size": 8, "tied": "x"})
    named = {line.split(":")[0] for line in str(caught.value).splitlines()}
    assert {"depth", "width", "tied", "top_k"} <= named


@pytest.mark.parametrize("width", [{}, {"width": "abc"}, {"width": 0.5}])
def test_what_follows_from_a_wrong_column_is_no_fault_of_its_own(width: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        one({"depth": 4, **width, "gqa": 4, "ffn_ratio": 2, "top_k": 9})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["width", "top_k"]


def test_the_message_shows_the_row_that_is_wrong() -> None:
    columns = {"depth": [1, 2, 3], "width": [128, 256, 384], "n_kv_heads": [1, 2, 4], "expert_size": 8}
    with pytest.raises(ValueError, match="expected a divisor of n_heads 6, got 4"):
        Architectures.from_columns(columns)


def test_columns_of_different_lengths_are_refused() -> None:
    columns = {"depth": [1, 2], "width": [64, 64, 64], "n_kv_heads": [1, 1], "expert_size": [8, 8]}
    with pytest.raises(ValueError, match=r"expected columns of one length, got lengths \[2, 3\]"):
        Architectures.from_columns(columns)


def test_scalars_stand_for_every_row_and_nothing_for_none() -> None:
    found = Architectures.from_columns({"depth": [1, 2, 3], "width": 64, "n_kv_heads": 1, "expert_size": 8})
    assert found.width.tolist() == [64, 64, 64]
    assert len(found[:0]) == 0
    assert len(found[np.zeros(3, dtype=bool)].ffn_ratio) == 0


@pytest.mark.parametrize("written", ["yes", "true", True, 1, "1", 1.0, "True"])
def test_truth_is_read_as_tables_write_it(written: Any) -> None:
    assert one({**QWEN3, "qkv_bias": written}).qkv_bias.tolist() == [True]


def test_no_qk_norm_is_also_what_yaml_makes_of_the_word_no() -> None:
    assert one({**QWEN3, "qk_norm": False}).qk_norm.tolist() == one({**QWEN3, "qk_norm": "no"}).qk_norm.tolist() == [0]


@pytest.mark.parametrize(
    ("word", "value"), [("true", True), ("yes", True), ("1", True), ("false", False), ("no", False), ("0", False)]
)
def test_yes_and_no_are_read_as_people_write_them(word: str, value: bool) -> None:
    shape = {"depth": 4, "width": 512, "n_kv_heads": 2, "expert_size": 1024}
    assert one(shape | {"tied": word}).tied.tolist() == [value]
