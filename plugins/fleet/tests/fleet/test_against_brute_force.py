"""Fleets against every partition of the cases and every combination of a family, over designs evaluated case by case."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plas_fleet import choice
from plas_fleet.answers import FleetAnswer
from tests.plas_fleet.oracle import best_value, instance, write_table

from nas.exact import solution as exact_solution

QUESTIONS: tuple[tuple[str, str | None, bool], ...] = (
    ("loss", None, False),
    ("regret", None, False),
    ("loss", None, True),
    ("regret", None, True),
    ("loss", "depth", False),
    ("regret", "depth", True),
    ("loss", "experts", True),
    ("regret", "experts", False),
)


def check(
    seed: int, question: tuple[str, str | None, bool], fleet_of: Callable[..., FleetAnswer], folder: Path
) -> None:
    """The value of one, two and three models, what a fleet says of itself, and that it is proved."""
    of, (minimise, family, budgeted) = instance(seed), question
    rng = np.random.default_rng(seed)
    fitting = of.flops[of.fits.any(axis=1)]
    if len(of.weights) == 0:
        return
    budget = float(np.quantile(fitting, rng.uniform(0.1, 1.0)) * rng.uniform(1.0, 2.0)) if budgeted else np.inf
    asked: dict[str, Any] = {"models": "1..3", "minimise": minimise, "family": family}
    asked |= {"training_budget": f"{budget!r} FLOP"} if budgeted else {}
    found = fleet_of(table=write_table(of, folder), flags={"space": deepcopy(of.space)}, **asked)
    values = {fleet.most: fleet for fleet in found.fleets.fleets}
    for most in (1, 2, 3):
        fleet = values.get(most, found.fleets.fleets[-1])
        expected = best_value(of, most, minimise, family, budget)
        assert fleet.proved
        assert fleet.value == pytest.approx(expected, abs=1e-9, rel=1e-9), (most, asked)
        if fleet.found:
            rows = fleet.keys
            assert of.fits[rows[fleet.serves], np.arange(len(fleet.serves))].all()
            np.testing.assert_allclose(of.loss[rows[fleet.serves]], fleet.loss, rtol=1e-12)
            assert len(rows) <= most
            spent = of.flops[rows].max() if family else of.flops[rows].sum()
            assert spent <= budget * (1 + 1e-12)


@pytest.mark.parametrize("few", [choice.FEW, 0])
@pytest.mark.parametrize("seed", range(12))
def test_a_random_fleet_is_the_best(
    seed: int, few: int, fleet_of: Callable[..., FleetAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FEW", few)
    monkeypatch.setattr(exact_solution, "SMALL", 50 if few == 0 else exact_solution.SMALL)
    check(seed, QUESTIONS[seed % len(QUESTIONS)], fleet_of, tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(200))
def test_200_random_fleets_are_the_best_by_every_objective(
    seed: int, fleet_of: Callable[..., FleetAnswer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FEW", choice.FEW if seed % 2 else 0)
    monkeypatch.setattr(exact_solution, "SMALL", exact_solution.SMALL if seed % 4 < 2 else 50)
    for question in QUESTIONS:
        check(1000 + seed, question, fleet_of, tmp_path)
