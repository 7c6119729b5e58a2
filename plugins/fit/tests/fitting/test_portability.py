"""A law given beforehand on a table of other models."""

from collections.abc import Callable

import numpy as np
import pytest

from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from plas_fit.fitting.model import compiled
from plas_fit.fitting.portability import predictions, stand_ins
from plas_fit.fitting.trained_models import Table

Simulate = Callable[..., Table]


def changed(table: Table, loss: np.ndarray, *without: str) -> Table:  # type: ignore[type-arg]
    """The table with other losses, some columns gone."""
    numbers = {name: column for name, column in table.numbers.items() if name not in without}
    return Table({**numbers, "loss": loss}, table.lines)


def test_a_law_on_its_own_losses_is_perfect(law: Law, simulated: Simulate) -> None:
    table = simulated(40, 0.0, 0)
    assert stand_ins(law, table) == {}
    np.testing.assert_allclose(predictions(law, table, {}), table.loss, rtol=1e-12)


def test_what_the_table_lacks_is_assumed_and_said(law: Law, simulated: Simulate) -> None:
    table = simulated(40, 0.0, 0)
    bare = changed(table, table.loss, "n_experts", "top_k", "expert_size", "n_kv_heads")
    assumed = stand_ins(law, bare)
    assert assumed == pytest.approx(
        {"activation_rate": 1.0, "ffn_ratio": np.sqrt(0.5 * 4), "kv_dim": np.sqrt(64 * 3072)}
    )
    assert np.isfinite(predictions(law, bare, assumed or {})).all()


def test_too_little_is_nothing(law: Law, simulated: Simulate) -> None:
    table = simulated(40, 0.0, 0)
    silent = law.model_copy(update={"fitted_on": {}})
    assert stand_ins(silent, changed(table, table.loss, "n_kv_heads", "n_heads")) is None


def test_counts_get_the_laws_own_embeddings_where_a_width_is_known(simulated: Simulate) -> None:
    dense, table = load_law("chinchilla"), simulated(30, 0.0, 0)
    plain = {"parameters": table.feature("parameters"), "tokens": np.full(len(table), 1e10)}
    known = Table({**plain, "width": table.feature("width"), "loss": table.loss}, table.lines)
    bare = Table({**plain, "loss": table.loss}, table.lines)
    told = known.feature("parameters") + 32_000 * known.feature("width")
    c = dense.coefficients
    expected = c["e"] + c["a"] * told ** -c["alpha"] + c["b"] * 1e10 ** -c["beta"]
    np.testing.assert_allclose(predictions(dense, known, {}), expected, rtol=1e-12)
    assert stand_ins(dense, bare) == {}
    np.testing.assert_array_less(predictions(dense, known, {}), predictions(dense, bare, {}))


def test_a_form_with_crossed_exponents_is_not_fitted(simulated: Simulate) -> None:
    with pytest.raises(ValueError, match="form: expected terms that are products of powers and logarithms"):
        compiled(load_law("joint_moe").law_form, simulated(30, 0.0, 0), {})
