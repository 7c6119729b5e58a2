"""Sums of parts against every design evaluated, axes of training tokens, and answers when time is over."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice, pattern_search, slots
from plas_fleet.answers import FleetAnswer
from plas_fleet.patterns import Lookup, Patterns
from plas_fleet.question import FleetConfig
from plas_fleet.solution import solved

from nas.exact import solution as exact_solution

OWN = {"devices": ["raspberry_pi_5", "l4", "rtx_4090"], "precisions": ["fp16", "int8"]}
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"models": "1..3"},
    {"models": "1..3", "minimise": "regret"},
    {"models": "1..3", "training_budget": "4e19 FLOP"},
    {"models": "1..3", "training_budget": "3.5e19 FLOP", "minimise": "regret", "weights": "1,2,3,4,5,6"},
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
        assert one.proved
        assert one.value == pytest.approx(two.value, abs=1e-12)


@pytest.mark.usefixtures("by_parts")
def test_designs_of_several_training_tokens_are_covered_setting_by_setting(
    fleet_of: Callable[..., FleetAnswer],
) -> None:
    asked = {"models": "1..2", "training_budget": "3e19 FLOP"}
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


@pytest.mark.usefixtures("by_parts")
@pytest.mark.parametrize("minimise", ["loss", "regret"])
def test_a_gap_that_is_printed_when_time_is_over_holds(
    minimise: str, fleet_of: Callable[..., FleetAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fleet_of(own=OWN, models="1..3", minimise=minimise)
    monkeypatch.setattr(pattern_search.time, "monotonic", _ticking(1.0))
    cut = fleet_of(own=OWN, models="1..3", minimise=minimise, time_limit=0.5)
    assert len(cut.fleets.designs.unsettled) > 0
    assert not cut.fleets.fleets[0].proved
    for one, two in zip(cut.fleets.fleets, whole.fleets.fleets, strict=False):
        assert one.bound <= two.value + 1e-12
        assert one.value >= two.value - 1e-12


def _ticking(step: float) -> Callable[[], float]:
    """A clock that goes on by a step whenever it is read."""
    now = [0.0]

    def read() -> float:
        now[0] += step
        return now[0]

    return read


def test_a_search_within_a_budget_that_is_cut_short_has_a_bound_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    value, cost = np.where(rng.random((400, 7)) < 0.4, rng.random((400, 1)), np.inf), rng.random(400)
    value[0] = 1.0
    columns = choice.Columns(value + 0.2 * cost[:, None] ** -0.5, cost, 1.1)
    start = np.zeros(1, dtype=np.int64)
    best = choice.least_loss(columns, 4, start, np.inf)
    assert best.proved
    monkeypatch.setattr(slots, "MOST_PAIRS", 100)
    again = choice.least_loss(columns, 4, start, np.inf)
    assert again.value == pytest.approx(best.value, abs=1e-12)
    cut = choice.least_loss(columns, 4, start, 0.0)
    assert cut.bound <= best.value <= cut.value + 1e-12


def test_patterns_keep_those_alone_that_none_beats() -> None:
    masks = np.array([0b11, 0b01, 0b01, 0b10, 0b11, 0b00], dtype=np.uint64)
    loss, cost = np.array([3.0, 2.0, 3.5, 3.0, 3.0, 1.0]), np.array([5.0, 4.0, 1.0, 6.0, 5.0, 1.0])
    found = Patterns(np.arange(6), masks, loss, cost).reduced()
    assert sorted(found.keys.tolist()) == [0, 1, 2]
    lookup = Lookup(found)
    asked = np.array([0b01, 0b01, 0b10, 0b11], dtype=np.uint64)
    assert lookup.least(asked, np.array([4.5, 3.0, 9.0, 4.9])).tolist() == [2.0, 3.5, 3.0, np.inf]
