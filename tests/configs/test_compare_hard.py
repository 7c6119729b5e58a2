"""The hard studies are hard in the way that they say."""

import numpy as np
import pytest

from configs import compare_hard
from nas.files import yaml_source
from nas.search.assembly import assemble
from objectives.plugins import documents
from search_spaces.arrays import FloatArray, IntArray

NAMES = ("smooth", "parity", "tiles", "cliffs", "ridge", "trap", "rugged", "plateau", "levels", "noise")


def values(name: str, keys: IntArray) -> FloatArray:
    """An objective of designs by their keys."""
    found: FloatArray = getattr(compare_hard, name)(
        compare_hard.paper().architectures(compare_hard.paper().genotypes(keys))
    )
    return found


@pytest.fixture(scope="module")
def everything() -> IntArray:
    """Keys of the paper's space."""
    return np.arange(compare_hard.paper().size)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_is_the_design_s_own(name: str, everything: IntArray) -> None:
    found, some = values(name, everything), np.array([77, 3, 12_000, 3])
    assert found.shape == everything.shape
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert values(name, some).tolist() == found[some].tolist()


@pytest.mark.parametrize("name", ["parity", "tiles"])
def test_a_budget_of_one_leaves_half_of_the_designs(name: str, everything: IntArray) -> None:
    within = values(name, everything) <= 1
    assert 0.4 < within.mean() < 0.6


def share_of_steps_that_stay(name: str, everything: IntArray) -> float:
    """Of the single steps from designs within the budget, how many end at one."""
    within = values(name, everything) <= 1
    chosen = np.random.default_rng(0).choice(np.flatnonzero(within), 300, replace=False)
    _, near = compare_hard.paper().neighbours_of_each(compare_hard.paper().genotypes(chosen))
    return float(within[compare_hard.paper().keys(near)].mean())


def test_hardly_any_step_keeps_parity_and_tiles_let_about_half_through(everything: IntArray) -> None:
    assert share_of_steps_that_stay("parity", everything) < 0.1
    assert 0.3 < share_of_steps_that_stay("tiles", everything) < 0.7


def test_off_the_grid_lie_cliffs_and_along_the_ridge_no_single_step(everything: IntArray) -> None:
    for name in ("cliffs", "ridge"):
        best = int(np.argmin(values(name, everything)))
        assert values(name, everything).min() < values(name, everything).mean() - 0.3
        near = compare_hard.paper().keys(
            compare_hard.paper().neighbours(compare_hard.paper().genotypes(np.array([best])))
        )
        assert (values(name, near) > values(name, everything)[best]).all()


def test_a_trap_leads_away_from_its_best(everything: IntArray) -> None:
    found, genes = values("trap", everything), compare_hard.paper().genotypes(everything)
    assert (genes[np.argmin(found)] == compare_hard.paper().gene_sizes - 1).all()
    inner = (genes[:, 0] > 0) & (genes[:, 0] < compare_hard.paper().gene_sizes[0] - 1)
    lower = genes[inner] - np.eye(6, dtype=np.int64)[0]
    assert (values("trap", compare_hard.paper().keys(compare_hard.paper().repair(lower))) < found[inner]).mean() > 0.95


def test_a_plateau_has_few_levels_and_noise_is_beyond_the_smooth(everything: IntArray) -> None:
    assert len(np.unique(values("plateau", everything))) <= compare_hard.LEVELS + 1
    assert len(np.unique(values("levels", everything))) < 16
    ratio = values("noise", everything) / values("smooth", everything)
    assert abs(ratio.std() - 0.1) < 0.01


def test_the_shipped_comparison_asks_for_all_of_them() -> None:
    content = yaml_source.read(documents("configs")["compare_hard"])[0]
    groups = {name: study.pop("group") for name, study in content["studies"].items()}
    assert sorted(set(groups.values())) == ["chosen on", "confirmed on"]
    assert set(groups) == set(NAMES) - {"smooth", "levels"}
    for name, study in content["studies"].items():
        problem = assemble({**content["study"], **study}, {}).problem
        named = [metric.name for metric in problem.functions]
        assert f"configs.compare_hard:{name}" in named
        assert problem.space.fingerprint == compare_hard.paper().fingerprint


@pytest.mark.parametrize("place", ["nas.comparison.hard", "nas.compare.hard", "nas.compare.synthetic_problems"])
def test_names_from_before_still_hold(place: str) -> None:
    """Run folders and studies hold them."""
    old, new = (
        assemble({"objectives": [f"{module}:smooth", "total_ms"]}, {}).problem
        for module in (place, "configs.compare_hard")
    )
    keys = np.arange(20)
    np.testing.assert_array_equal(
        *(p.evaluate(p.space.genotypes(keys)).metrics[p.functions[0].name] for p in (old, new))
    )
