"""Fleets chosen among made-up designs, whose sets of cases are not nested, against every combination."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice
from plas_fleet.patterns import Patterns
from plas_fleet.question import FleetConfig
from plas_fleet.solution import best_fleets, least_of_each

CASES = 6


def drawn(seed: int) -> tuple[Patterns, Any]:
    """Random designs, weights of the cases."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 15))
    masks = rng.integers(1, 2**CASES, size=n).astype(np.uint64)
    if seed % 3:
        masks[0] = 2**CASES - 1
    else:
        masks = np.uint64(1) << rng.integers(CASES, size=n).astype(np.uint64) | masks & np.uint64(2 * CASES)
    loss = np.round(rng.random(n), 2 if seed % 2 else 6)
    weights = rng.random(CASES) + 0.05
    return Patterns(np.arange(n), masks, loss), weights / weights.sum()


def by_hand(of: Patterns, weights: Any, minimise: str, most: int) -> float:
    """The value of the best combination, ∞ where none serves all."""
    fits, best = of.fits(CASES), least_of_each(of, CASES)
    found = np.inf
    for size in range(1, most + 1):
        for rows in map(list, combinations(range(len(of)), size)):
            loss = np.where(fits[rows], of.loss[rows][:, None], np.inf).min(axis=0)
            found = min(found, float(loss @ weights if minimise == "loss" else (loss - best).max()))
    return found


@pytest.mark.parametrize("few", [choice.FEW, 0])
@pytest.mark.parametrize("seed", range(48))
def test_the_best_of_every_combination(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", few)
    of, weights = drawn(seed)
    if not np.isfinite(least_of_each(of, CASES)).all():
        return
    for minimise in ("loss", "regret"):
        found = list(best_fleets(of, weights, FleetConfig(models=(1, 4), minimise=minimise)))
        for most in (1, 2, 3, 4):
            fleet = found[min(most, len(found)) - 1]
            assert fleet.value == pytest.approx(by_hand(of, weights, minimise, most), abs=1e-9)
            assert fleet.found == np.isfinite(fleet.value)


def test_instances_without_a_fleet_are_among_them() -> None:
    values = [by_hand(*drawn(seed), "loss", 2) for seed in range(24)]
    assert 2 <= sum(np.isinf(values)) <= 22


@pytest.mark.parametrize("seed", range(4))
def test_many_designs_are_chosen_from_without_trying_all(seed: int) -> None:
    """Of 60 designs that fit eight cases at random, the search and every one of 34,220 triples have the same best."""
    rng = np.random.default_rng(seed)
    value = np.where(rng.random((60, 8)) < 0.6, rng.random((60, 1)) + 0.1 * rng.random(8), np.inf)
    value[0] = 2.0
    triples = np.array(list(combinations(range(60), 3)))
    best = float(value[triples].min(axis=1).sum(axis=1).min())
    found = choice.least_loss(value, 3, np.zeros(1, dtype=np.int64))
    assert choice.total(value, found) == pytest.approx(best, abs=1e-12)
