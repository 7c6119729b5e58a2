"""Designs that a law cannot tell apart: groups as defined, however many a group holds, and the cheapest of each."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas.files.yaml_source import dump
from nas.problem.uncertainty import NORMAL, cost_among, tied
from nas.search.assembly import assemble
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

Same = Callable[[int, IntArray], BoolArray]


@pytest.fixture(scope="module")
def designs() -> Architectures:
    """Two thousand designs of the default space."""
    space = assemble({}, {}).problem.space
    return space.architectures(space.sample(2000, np.random.default_rng(3)))


def grouped(loss: FloatArray, same: Same) -> list[int]:
    """Groups by the definition: each led by the lowest loss that no group before it holds."""
    group = np.full(len(loss), -1)
    for number in range(len(loss)):
        free = np.flatnonzero(group < 0)
        if not len(free):
            break
        leader = int(free[np.argmin(loss[free])])
        group[free[same(leader, free)]] = number
        group[leader] = number
    found: list[int] = group.tolist()
    return found


@pytest.mark.parametrize("sd", [0.0, 1e-4, 0.01, 0.06, 10.0])
def test_groups_of_a_residual_sd(sd: float, designs: Architectures) -> None:
    law = assemble({"residual_sd": sd}, {}).problem.scenario.law
    loss = law.loss(designs)
    found = tied(law, designs)
    assert found is not None
    assert found.tolist() == grouped(loss, lambda leader, rows: loss[rows] - loss[leader] < NORMAL * np.sqrt(2) * sd)
    assert sd < 0.06 or np.bincount(found).max() > 300


@pytest.mark.parametrize("spread", [pytest.param(1e-4, marks=pytest.mark.slow), 0.02, 0.3])
def test_groups_of_draws(spread: float, designs: Architectures) -> None:
    base = assemble({}, {}).problem.scenario.law.mapping()
    values = np.array(list(base["coefficients"].values()))
    drawn = values * (1 + spread * np.random.default_rng(5).standard_normal((60, len(values))))
    law = Law.model_validate({**base, "draws": [" ".join(map(repr, row)) for row in drawn.tolist()]})
    assert list(base["coefficients"]) == list(law.law_form.coefficients)
    losses, loss = law.drawn_losses(designs), law.loss(designs)
    found = tied(law, designs)
    assert found is not None
    assert found.tolist() == grouped(
        loss, lambda leader, rows: np.quantile(losses[:, rows] - losses[:, [leader]], 0.05, axis=0) <= 0
    )
    place = np.argsort(np.argsort(loss))
    widest = max(int(np.ptp(place[found == number])) for number in range(int(found.max()) + 1))
    assert spread < 0.3 or widest > 300


@pytest.mark.parametrize(
    ("objectives", "cost"),
    [
        (["loss", "memory_gb", "total_ms"], "memory_gb"),
        (["loss@q90", "perplexity", "decode_ms"], "decode_ms"),
        (["loss"], "total_ms"),
    ],
)
def test_the_cost_by_which_tied_designs_differ(objectives: list[str], cost: str) -> None:
    assert cost_among(objectives) == cost


def test_select_shows_the_cheapest_of_each_group(
    inside: Callable[..., Any], tmp_path: Path, tiny: dict[str, Any]
) -> None:
    study = {"space": tiny, "name": "tiny", "baselines": [], "residual_sd": 0.06, "algo": "exact"}
    (tmp_path / "study.yaml").write_text(dump(study))
    assert inside("run", "--config", "study.yaml", "--out", "run", "--quiet").code == 0
    said = inside("select", "run", "--out", "chosen.csv", "--quiet").out
    groups: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader((tmp_path / "chosen.csv").open()):
        groups.setdefault(row["tied_group"], []).append(row)
    shown = said[said.index("Cheapest of each group: lowest total_ms") :].splitlines()[2:]
    assert len(shown) == len(groups) > 1
    for line, (number, rows) in zip(shown, groups.items(), strict=True):
        cheapest = min(rows, key=lambda row: float(row["total_ms"]))
        assert line.split()[:2] == [number, str(len(rows))]
        assert f"{float(cheapest['total_ms']):.5g}" in line.split()
    few = inside("select", "run", "--rows", "2").out
    assert f"2 of {len(groups)} groups shown, evenly spaced; --rows shows more" in few
