"""What a user measured of kinds of layers: added to any law in proportion to the layers, in whole and by parts."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from nas.study.catalogue import load_law
from objectives.composition import composition_of, composition_of_all
from objectives.loss_law.law import Law
from objectives.loss_law.layer_deltas import QUANTITIES, Kind, LayerCosts, nats
from search_spaces.architectures import Architectures

DELTAS: dict[Kind, float] = {
    "local": 0.01,
    "window": 0.015,
    "kv_shared": -0.02,
    "conv": 0.3,
    "deltanet": 0.05,
    "mamba2": 0.07,
}
Draw = Callable[..., Architectures]


@pytest.mark.parametrize("name", ["hw_codesign", "conditional", "chinchilla_epoch"])
@pytest.mark.parametrize("context", [64, 4096, 32_768])
def test_a_law_with_deltas_adds_each_layer_by_layer(
    name: str, context: int, random_architectures: Draw, as_reference: Any, reference: ModuleType
) -> None:
    law, a = load_law(name), random_architectures(300, 4, kinds=True)
    told = law.model_copy(update={"layer_deltas": DELTAS, "layer_context": context})
    expected = law.loss(a) + np.array([reference.layers_nats(arch, DELTAS, context) for arch in as_reference(a)])
    np.testing.assert_allclose(told.loss(a), expected, rtol=1e-12)


def test_a_window_of_half_the_context_costs_its_delta_and_one_as_long_as_it_nothing() -> None:
    a = Architectures.from_columns(
        {"depth": 4, "width": 256, "n_kv_heads": 2, "expert_size": 512, "n_local": 4, "window": 2048}
    )
    deltas: dict[Kind, float] = {"window": 0.02}
    assert [nats(a, deltas, context)[0] for context in (1024, 2048, 4096, 8192)] == pytest.approx([0, 0, 0.02, 0.04])


def test_without_layers_of_a_kind_nothing_changes_to_the_last_bit(random_architectures: Draw) -> None:
    law, a = load_law("hw_codesign"), random_architectures(100, 5)
    np.testing.assert_array_equal(law.model_copy(update={"layer_deltas": DELTAS}).loss(a), law.loss(a))


def test_every_kind_is_a_quantity_of_the_mixers() -> None:
    assert sorted(QUANTITIES.values()) == sorted(DELTAS)


def test_kinds_of_layers_are_a_term_of_a_sum_and_one_quantity_of_other_laws() -> None:
    of_a_sum, joined = (
        load_law(name).model_copy(update={"layer_deltas": DELTAS}) for name in ("hw_codesign", "evidence")
    )
    assert dict(composition_of(of_a_sum).quantities) == {"loss": 1}
    kinds = [name for name in composition_of(joined).quantities if isinstance(name, LayerCosts)]
    assert kinds == [LayerCosts(tuple(DELTAS.items()), joined.layer_context)]
    other = joined.model_copy(update={"layer_deltas": {"conv": 0.1}})
    of_both = composition_of_all((joined, other), lambda losses: losses[0])
    assert set(QUANTITIES) <= set(of_both.quantities)


@pytest.mark.parametrize("deltas", [{"full": 0.1}, {"conv": float("nan")}, {"conv": 11}])
def test_deltas_that_are_none_are_refused(deltas: dict[str, Any]) -> None:
    content = load_law("hw_codesign").mapping()
    with pytest.raises(ValidationError, match="layer_deltas"):
        Law.model_validate({**content, "layer_deltas": deltas})
