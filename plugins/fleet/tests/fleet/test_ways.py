"""Sums of parts against every design evaluated, and axes of training tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plas_fleet.answers import FleetAnswer
from plas_fleet.patterns import Patterns
from plas_fleet.question import FleetConfig
from plas_fleet.solution import solved

from nas.exact import solution as exact_solution

OWN = {"devices": ["raspberry_pi_5", "l4", "rtx_4090"], "precisions": ["fp16", "int8"]}
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"models": "1..3"},
    {"models": "1..3", "minimise": "regret"},
    {"models": "1..3", "minimise": "regret", "weights": "1,2,3,4,5,6"},
)


@pytest.fixture
def by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces of more than a hundred designs are covered by sums of parts."""
    monkeypatch.setattr(exact_solution, "SMALL", 100)


@pytest.mark.parametrize("asked", QUESTIONS)
def test_sums_of_parts_find_the_same_fleets(
    asked: dict[str, Any], fleet_of: Callable[..., FleetAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fleet_of(own=OWN, **asked)
    monkeypatch.setattr(exact_solution, "SMALL", 100)
    parts = fleet_of(own=OWN, **asked)
    assert "sums of parts" in parts.fleets.designs.how
    assert "evaluated in each" in whole.fleets.designs.how
    np.testing.assert_allclose(parts.fleets.best, whole.fleets.best, rtol=1e-12)
    for one, two in zip(parts.fleets.fleets, whole.fleets.fleets, strict=True):
        assert one.value == pytest.approx(two.value, abs=1e-12)


@pytest.mark.usefixtures("by_parts")
def test_designs_of_several_training_tokens_are_covered_setting_by_setting(
    fleet_of: Callable[..., FleetAnswer],
) -> None:
    asked = {"models": "1..2"}
    several = fleet_of(own=OWN, flags={"tokens": "2B,5B,10B", "law": "joint_moe"}, **asked)
    (tokens,) = several.fleets.problem.space.settings.values()
    assert tokens.tolist() == [2 * 10**9, 5 * 10**9, 10 * 10**9]
    alone = [fleet_of(own=OWN, flags={"tokens": text, "law": "joint_moe"}, **asked) for text in ("2B", "5B", "10B")]
    for most in (0, 1):
        best = min(each.fleets.fleets[min(most, len(each.fleets.fleets) - 1)].value for each in alone)
        assert several.fleets.fleets[most].value <= best + 1e-12
    designs = several.architectures([model.key for model in several.described[-1].models])
    assert set(designs.tokens.tolist()) <= set(tokens.tolist())


@pytest.mark.usefixtures("by_parts")
def test_every_architecture_is_accounted_for(fleet_of: Callable[..., FleetAnswer]) -> None:
    cases, settled = fleet_of(own=OWN, models=1).fleets.cases, list[int]()
    solved(cases, FleetConfig(models=(1, 2)), settled.append)
    assert sum(settled) == cases[0].problem.space.size == 13_120


def test_patterns_keep_those_alone_that_none_beats() -> None:
    masks = np.array([0b11, 0b01, 0b01, 0b10, 0b11, 0b00], dtype=np.uint64)
    loss = np.array([3.0, 2.0, 3.5, 3.0, 3.0, 1.0])
    found = Patterns(np.arange(6), masks, loss).reduced()
    assert sorted(found.keys.tolist()) == [0, 1]
    asked = np.array([0b01, 0b10, 0b11, 0b111], dtype=np.uint64)
    assert found.least(asked).tolist() == [2.0, 3.0, 3.0, np.inf]
    assert found.least(asked, strictly=True).tolist() == [3.0, 3.0, np.inf, np.inf]
