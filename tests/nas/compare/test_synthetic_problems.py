"""The hard studies are hard in the way that they say."""

import numpy as np
import pytest

from nas.compare import synthetic_problems
from nas.files import yaml_source
from nas.search.assembly import assemble
from objectives.plugins import documents
from search_spaces.arrays import FloatArray, IntArray

NAMES = ("smooth", "parity", "tiles", "cliffs", "ridge", "trap", "rugged", "plateau", "levels", "noise")


def values(name: str, keys: IntArray) -> FloatArray:
    """An objective of designs by their keys."""
    found: FloatArray = getattr(synthetic_problems, name)(
        synthetic_problems.paper().architectures(synthetic_problems.paper().genotypes(keys))
    )
    return found


@pytest.fixture(scope="module")
def everything() -> IntArray:
    """Keys of the paper's space."""
    return np.arange(synthetic_problems.paper().size)


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
    _, near = synthetic_problems.paper().neighbours_of_each(synthetic_problems.paper().genotypes(chosen))
    return float(within[synthetic_problems.paper().keys(near)].mean())


def test_hardly_any_step_keeps_parity_and_tiles_let_about_half_through(everything: IntArray) -> None:
    assert share_of_steps_that_stay("parity", everything) < 0.1
    assert 0.3 < share_of_steps_that_stay("tiles", everything) < 0.7


def test_off_the_grid_lie_cliffs_and_along_the_ridge_no_single_step(everything: IntArray) -> None:
    for name in ("cliffs", "ridge"):
        best = int(np.argmin(values(name, everything)))
        assert values(name, everything).min() < values(name, everything).mean() - 0.3
        near = synthetic_problems.paper().keys(
            synthetic_problems.paper().neighbours(synthetic_problems.paper().genotypes(np.array([best])))
        )
        assert (values(name, near) > values(name, everything)[best]).all()


def test_a_trap_leads_away_from_its_best(everything: IntArray) -> None:
    found, genes = values("trap", everything), synthetic_problems.paper().genotypes(everything)
    assert (genes[np.argmin(found)] == synthetic_problems.paper().gene_sizes - 1).all()
    inner = (genes[:, 0] > 0) & (genes[:, 0] < synthetic_problems.paper().gene_sizes[0] - 1)
    lower = genes[inner] - np.eye(6, dtype=np.int64)[0]
    assert (
        values("trap", synthetic_problems.paper().keys(synthetic_problems.paper().repair(lower))) < found[inner]
    ).mean() > 0.95


def test_a_plateau_has_few_levels_and_noise_is_beyond_the_smooth(everything: IntArray) -> None:
    assert len(np.unique(values("plateau", everything))) <= synthetic_problems.LEVELS + 1
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
        assert f"nas.compare.synthetic_problems:{name}" in named
        assert problem.space.fingerprint == synthetic_problems.paper().fingerprint


def test_their_names_from_before_the_room_was_called_compare_still_hold() -> None:
    """Run folders and studies hold the name `nas.comparison.hard:smooth`."""
    old, new = (
        assemble({"objectives": [f"nas.{room}.hard:smooth", "total_ms"]}, {}).problem
        for room in ("comparison", "compare")
    )
    keys = np.arange(20)
    np.testing.assert_array_equal(
        *(p.evaluate(p.space.genotypes(keys)).metrics[p.functions[0].name] for p in (old, new))
    )
