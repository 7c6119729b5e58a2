"""Tokens until a design is level with a model: what curves of known shape give, and what a law gives of a design beside itself."""

from dataclasses import replace

import numpy as np
import pytest

from nas.problem.parity import FEWEST, MOST, LossCurve
from nas.problem.settings import trained_on
from nas.problem.uncertainty import possible_losses
from nas.study.catalogue import load_law
from search_spaces.architectures import one

TOKENS = np.geomspace(FEWEST, MOST, 74)


def falling(floors: list[float], power: float = 0.3) -> LossCurve:
    """A curve a draw, floor + 1000 / tokens^power."""
    return LossCurve(TOKENS, np.array(floors)[:, None] + 1000.0 * TOKENS**-power, 0.0)


@pytest.mark.parametrize("tokens", [1e9, 3.3e10, 7e12])
def test_one_curve_is_inverted(tokens: float) -> None:
    found = falling([2.0]).level_with(np.array([[2.0 + 1000.0 * tokens**-0.3]]))
    assert found.low == found.middle == found.high
    assert found.middle == pytest.approx(tokens, rel=0.01)


def test_ends_are_quantiles_over_the_draws() -> None:
    floors = np.linspace(1.9, 2.1, 201)
    level = np.full((201, 1), 2.2)
    found = falling(floors.tolist()).level_with(level)
    wanted = [((2.2 - float(np.quantile(floors, share))) / 1000.0) ** (-1 / 0.3) for share in (0.05, 0.5, 0.95)]
    assert (found.low, found.middle, found.high) == pytest.approx(wanted, rel=0.03)


def test_a_level_below_every_floor_is_never_reached_and_one_above_at_once() -> None:
    assert falling([2.0]).level_with(np.array([[1.99]])).low == np.inf
    assert falling([2.0]).level_with(np.array([[100.0]])).high == pytest.approx(FEWEST)
    half = falling([2.0, 2.0, 2.5]).level_with(np.full((3, 1), 2.3))
    assert (half.middle < MOST, half.high) == (True, np.inf)


def test_what_else_is_unknown_widens_both_ends() -> None:
    level = np.array([[2.2]])
    sure, unsure = falling([2.0]).level_with(level), falling([2.0]).level_with(level, 0.05)
    assert unsure.low < sure.low < unsure.high
    assert unsure.middle == pytest.approx(sure.middle)


@pytest.mark.parametrize("tokens", [2e10, 1e12])
def test_a_design_is_level_with_itself_after_its_own_tokens(tokens: float) -> None:
    law = load_law("evidence")
    design = one({"depth": 16, "width": 1024, "head_dim": 64, "n_heads": 16, "n_kv_heads": 4, "expert_size": 2816})
    found = LossCurve.of(law, design).level_with(possible_losses(trained_on(law, tokens), design))
    assert found.middle == pytest.approx(tokens, rel=0.05)
    assert found.low < tokens < found.high


@pytest.mark.parametrize("own", [0, 2_000_000_000])
def test_a_curve_is_what_the_law_says_after_each_number_of_tokens_whatever_the_design_itself_has(own: int) -> None:
    law = load_law("evidence").at("int4")
    design = one({"depth": 16, "width": 1024, "head_dim": 64, "n_heads": 16, "n_kv_heads": 4, "expert_size": 2816})
    curve = LossCurve.of(law, replace(design, tokens=np.array([own])))
    each = [possible_losses(trained_on(law, number), design) for number in curve.tokens]
    np.testing.assert_array_equal(curve.losses, np.concatenate(each, axis=1))
