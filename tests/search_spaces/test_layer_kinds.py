"""Columns of layer kinds: what they are read from and written to, and what is no model."""

from typing import Any

import numpy as np
import pytest

from search_spaces.architectures import Architectures, architectures_of, one

BASE = {"depth": 8, "width": 768, "n_kv_heads": 2, "expert_size": 768, "n_experts": 8, "top_k": 2}
LOCAL = {"n_local": 4, "window": 512}
LINEAR = {
    "n_linear": 2, "linear_kind": "deltanet", "linear_heads": 8, "linear_key_heads": 4, "linear_key_dim": 64,
    "linear_value_dim": 96, "linear_kernel": 4,
}  # fmt: skip
ALL = {
    **BASE, **LOCAL, **LINEAR, "n_conv": 1, "conv_kernel": 3, "n_kv_shared": 3, "n_kv_shared_local": 3, "n_dense": 2,
    "dense_size": 2048, "attention_gate": True, "further_parameters": 12,
}  # fmt: skip


def test_what_is_written_reads_back_as_the_same_row() -> None:
    written = architectures_of([BASE, {**BASE, **LOCAL}, ALL, {**ALL, "linear_kind": "mamba2"}])
    again = Architectures.from_columns(written.columns())
    for name in Architectures.__dataclass_fields__:
        assert getattr(again, name).tolist() == getattr(written, name).tolist(), name
    assert written.columns()["linear_kind"].tolist() == ["no", "no", "deltanet", "mamba2"]
    assert written.n_full.tolist() == [8, 4, 1, 1]


def test_windows_can_be_taken_away() -> None:
    plain = one(ALL).with_full_attention()
    assert (plain.n_local[0], plain.window[0], plain.n_full[0]) == (0, 0, 5)
    assert (plain.n_kv_shared[0], plain.n_kv_shared_local[0]) == (3, 0)
    assert one(BASE).with_full_attention().further_columns() == {}


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"window": 0}, "window: expected a positive integer beside n_local 4, got 0; give the column"),
    ({"n_local": 0, "n_kv_shared": 0, "n_kv_shared_local": 0}, "n_local: expected at least 1 beside window, got 0"),
    ({"linear_kind": "no"}, "linear_kind: expected one of deltanet, mamba2 beside n_linear 2, got no"),
    ({"linear_kind": "rwkv"}, "linear_kind: expected one of no, deltanet, mamba2, got rwkv; choose one"),
    ({"linear_key_dim": 0}, "linear_key_dim: expected a positive integer beside n_linear 2, got 0"),
    ({"n_linear": 0}, "n_linear: expected at least 1 beside linear_kind, got 0; drop linear_kind or give n_linear"),
    ({"linear_key_heads": 3}, "linear_key_heads: expected a divisor of linear_heads 8, got 3; choose one"),
    ({"n_conv": 3}, "n_local, n_linear, n_conv: expected at most depth 8 together, got 9; lower one"),
    ({"n_kv_shared": 2}, "n_kv_shared_local: expected at most n_kv_shared 2, got 3; lower it"),
    ({"n_kv_shared_local": 4, "n_kv_shared": 4}, "n_kv_shared_local: expected fewer than n_local 4, got 4"),
    ({"n_kv_shared": 4}, "n_kv_shared: expected fewer than the full-attention layers, 1, got 1"),
    ({"n_dense": 8}, "n_dense: expected fewer than depth 8, got 8; lower it"),
    ({"dense_size": 0}, "dense_size: expected a positive integer beside n_dense 2, got 0"),
    ({"n_local": 1.5}, "n_local: expected a whole number of at least 0, got 1.5; correct it"),
]


@pytest.mark.parametrize(("change", "said"), FAULTS, ids=[said[:40] for _, said in FAULTS])
def test_what_is_no_model_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        one({**ALL, **change})
    assert any(line.startswith(said) for line in str(caught.value).splitlines()), caught.value


def test_the_fault_of_a_later_row_is_found() -> None:
    columns = {name: np.array([value, value]) for name, value in {**BASE, **LOCAL}.items()}
    with pytest.raises(ValueError, match="n_local: expected at most depth 3 together, got 4"):
        Architectures.from_columns(columns | {"depth": np.array([8, 3])})
