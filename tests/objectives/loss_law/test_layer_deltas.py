"""What a user measured of kinds of layers: added to any law in proportion to the layers, in whole and by parts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from nas.study.catalogue import load_law
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import SHARES
from search_spaces.architectures import Architectures

DELTAS = {"local": 0.01, "kv_shared": -0.02, "conv": 0.3, "deltanet": 0.05, "mamba2": 0.07}
Draw = Callable[..., Architectures]


@pytest.mark.parametrize("name", ["hw_codesign", "conditional", "chinchilla_epoch"])
def test_a_law_with_deltas_adds_each_in_proportion_to_the_layers(name: str, random_architectures: Draw) -> None:
    law, a = load_law(name), random_architectures(300, 4, kinds=True)
    told = law.model_copy(update={"layer_deltas": DELTAS})
    linear = a.linear_kind[:, None] == np.array([1, 2])
    counts = np.stack([a.n_local, a.n_kv_shared, a.n_conv, *(a.n_linear[:, None] * linear).T], axis=1)
    expected = law.loss(a) + (counts / a.depth[:, None]) @ np.array([*DELTAS.values()])
    np.testing.assert_allclose(told.loss(a), expected, rtol=1e-12)


def test_without_layers_of_a_kind_nothing_changes_to_the_last_bit(random_architectures: Draw) -> None:
    law, a = load_law("hw_codesign"), random_architectures(100, 5)
    np.testing.assert_array_equal(law.model_copy(update={"layer_deltas": DELTAS}).loss(a), law.loss(a))


def test_every_kind_is_a_quantity_of_the_mixers() -> None:
    assert sorted(SHARES.values()) == sorted(DELTAS)


@pytest.mark.parametrize("deltas", [{"full": 0.1}, {"conv": float("nan")}, {"conv": 11}])
def test_deltas_that_are_none_are_refused(deltas: dict[str, Any]) -> None:
    content = load_law("hw_codesign").mapping()
    with pytest.raises(ValidationError, match="layer_deltas"):
        Law.model_validate({**content, "layer_deltas": deltas})
