"""Fleets chosen among made-up designs, whose sets of cases are not nested, against every combination."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice, slots
from plas_fleet.patterns import Patterns
from plas_fleet.pools import Pools
from plas_fleet.question import FleetConfig
from plas_fleet.setting import Fleet, Setting
from plas_fleet.solution import least_of_each

CASES = 6


def drawn(seed: int) -> tuple[Patterns, Any, float]:
    """Random designs, weights of the cases, and what a fleet may cost."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 15))
    masks = rng.integers(1, 2**CASES, size=n).astype(np.uint64)
    if seed % 3:
        masks[0] = 2**CASES - 1
    loss, cost = np.round(rng.random(n), 2 if seed % 2 else 6), np.round(rng.random(n), 3) + 0.01
    weights = rng.random(CASES) + 0.05
    return Patterns(np.arange(n), masks, loss, cost), weights / weights.sum(), float(rng.uniform(0.3, 2.5))


def fleets(of: Patterns, weights: Any, minimise: str, budget: float, deadline: float = np.inf) -> list[Fleet]:
    """The best fleets of one to four of them."""
    asked = FleetConfig(models=(1, 4), minimise=minimise)
    best = least_of_each(of, CASES)
    kept = of[of.cost <= budget]
    pools = Pools(kept, Patterns.none(), np.zeros(1, dtype=np.int64), CASES, budget)
    return list(Setting(pools, weights, best, best, asked, deadline).fleets())


def by_hand(of: Patterns, weights: Any, minimise: str, budget: float, most: int) -> float:
    """The value of the best combination, ∞ where none serves all."""
    fits, best = of.fits(CASES), least_of_each(of, CASES)
    found = np.inf
    for size in range(1, most + 1):
        for rows in map(list, combinations(range(len(of)), size)):
            if of.cost[rows].sum() <= budget:
                loss = np.where(fits[rows], of.loss[rows][:, None], np.inf).min(axis=0)
                found = min(found, float(loss @ weights if minimise == "loss" else (loss - best).max()))
    return found


@pytest.mark.parametrize("few", [choice.FEW, 0])
@pytest.mark.parametrize("seed", range(24))
def test_the_best_of_every_combination(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", few)
    monkeypatch.setattr(slots, "MOST_PAIRS", 30)
    of, weights, budget = drawn(seed)
    if not np.isfinite(least_of_each(of, CASES)).all():
        return
    for minimise in ("loss", "regret"):
        for limit in (np.inf, budget):
            found = fleets(of, weights, minimise, limit)
            for most in (1, 2, 3, 4):
                fleet = found[min(most, len(found)) - 1]
                assert fleet.proved
                assert fleet.value == pytest.approx(by_hand(of, weights, minimise, limit, most), abs=1e-9)
                assert fleet.found == np.isfinite(fleet.value)


def test_instances_without_a_fleet_are_among_them() -> None:
    values = [by_hand(*drawn(seed)[:2], "loss", drawn(seed)[2], 2) for seed in range(24)]
    assert 2 <= sum(np.isinf(values)) <= 22


@pytest.mark.parametrize("seed", range(8))
def test_what_is_bounded_when_no_time_is_left_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", 0)
    of, weights, budget = drawn(3 * seed + 1)
    for minimise in ("loss", "regret"):
        for limit in (np.inf, budget):
            for fleet in fleets(of, weights, minimise, limit, deadline=0.0):
                best = by_hand(of, weights, minimise, limit, fleet.most)
                assert fleet.bound <= best + 1e-12
                assert fleet.value >= best - 1e-12
