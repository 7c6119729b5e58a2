"""Designs that a law cannot tell apart: groups as defined, however many a group holds, and the cheapest of each."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from nas.files.yaml_source import dump
from nas.problem.uncertainty import cost_among, differences, tied
from nas.search.assembly import assemble
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

NORMAL = norm.ppf(0.95)
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
    widest = NORMAL * np.sqrt(2) * sd
    assert found.tolist() == grouped(loss, lambda leader, rows: loss[rows] - loss[leader] <= widest)
    assert sd < 0.06 or np.bincount(found).max() > 300


def drawn(spread: float, count: int = 60, **fields: Any) -> Law:
    """The default law with draws about its coefficients."""
    base = assemble({}, {}).problem.scenario.law.mapping()
    values = np.array(list(base["coefficients"].values()))
    rows = values * (1 + spread * np.random.default_rng(5).standard_normal((count, len(values))))
    law = Law.model_validate({**base, "draws": [" ".join(map(repr, row)) for row in rows.tolist()], **fields})
    assert list(base["coefficients"]) == list(law.law_form.coefficients)
    return law


@pytest.mark.parametrize("sd", [0.0, 0.01])
@pytest.mark.parametrize("spread", [pytest.param(1e-4, marks=pytest.mark.slow), 0.02, 0.3])
def test_groups_of_draws_and_misfit(spread: float, sd: float, designs: Architectures) -> None:
    """Against the definition: not above the leader with at least 5 %, over the draws and a normal misfit of each design."""
    law, few = drawn(spread, residual_sd=sd), designs[:700]
    losses, loss = law.drawn_losses(few), law.loss(few)
    found = tied(law, few)
    assert found is not None

    def same(leader: int, rows: IntArray) -> BoolArray:
        gaps = losses[:, rows] - losses[:, [leader]]
        below = norm.cdf(-gaps, scale=np.sqrt(2) * sd) if sd else (gaps < 0) + 0.5 * (gaps == 0)
        return np.asarray(below.mean(axis=0) >= 0.05)

    assert found.tolist() == grouped(loss, same)
    place = np.argsort(np.argsort(loss))
    widest = max(int(np.ptp(place[found == number])) for number in range(int(found.max()) + 1))
    assert spread < 0.3 or widest > 100


def test_differences_hold_draws_and_misfit(designs: Architectures) -> None:
    """Against pairs of designs that are trained: a draw, and a misfit of each."""
    law, few, other = drawn(0.02, residual_sd=0.02), designs[:6], designs[6:7]
    rng, losses = np.random.default_rng(1), law.drawn_losses(designs[:7])
    trained = losses[rng.integers(0, len(losses), 200_000)] + rng.normal(0, 0.02, (200_000, 7))
    sampled = trained[:, :6] - trained[:, 6:]
    for at, (found,) in enumerate(differences(law, few, other)):
        low, high = np.quantile(sampled[:, at], [0.05, 0.95])
        assert found.nats == pytest.approx(float(law.loss(few)[at] - law.loss(other)[0]))
        assert (found.low, found.high) == pytest.approx((low, high), abs=2e-3)
        assert found.better == pytest.approx((sampled[:, at] < 0).mean(), abs=5e-3)
    swapped = differences(law, other, few)[0]
    back = [row[0] for row in differences(law, few, other)]
    assert [d.low for d in swapped] == pytest.approx([-d.high for d in back])
    assert [d.better for d in swapped] == pytest.approx([1 - d.better for d in back])


def test_a_level_that_draws_disagree_on_is_no_doubt_of_a_difference(designs: Architectures) -> None:
    law = drawn(0.0)
    place = list(law.law_form.coefficients).index("l_inf")
    rows = [row.split() for row in law.draws]
    for row, level in zip(rows, np.linspace(-1, 1, len(rows)), strict=True):
        row[place] = repr(float(row[place]) + float(level))
    shifted = law.model_copy(update={"draws": tuple(map(" ".join, rows))})
    assert np.ptp(shifted.drawn_losses(designs[:1])) == pytest.approx(2.0)
    ((found,),) = differences(shifted, designs[:1], designs[1:2])
    assert found.high - found.low == pytest.approx(0.0, abs=1e-9)


def test_nothing_is_claimed_outside_of_the_evidence(designs: Architectures) -> None:
    inside = drawn(0.02, fitted_on={"depth": (1.0, float(np.median(designs.depth)))})
    outside = inside.extrapolates(designs)
    assert 0 < outside.sum() < len(designs)
    groups = tied(inside, designs)
    assert groups is not None
    np.testing.assert_array_equal(groups == -1, outside)
    at = np.flatnonzero(~outside)[:1]
    found = [row[0] for row in differences(inside, designs, designs[at])]
    np.testing.assert_array_equal([not each.known for each in found], outside)
    assert all(np.isnan(each.low) and np.isfinite(each.nats) for each in found if not each.known)


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
    shown = said[said.index("Cheapest of each group: lowest total_ms") :].splitlines()[3:]
    assert len(shown) == len(groups) > 1
    for line, (number, rows) in zip(shown, groups.items(), strict=True):
        cheapest = min(rows, key=lambda row: float(row["total_ms"]))
        assert line.split()[:2] == [number, str(len(rows))]
        assert f"{float(cheapest['total_ms']):.5g}" in line.split()
    few = inside("select", "run", "--rows", "2").out
    assert f"2 of {len(groups)} groups shown, evenly spaced; --rows shows more" in few
