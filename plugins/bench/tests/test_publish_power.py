"""Power of the tests of a comparison: against their own simulation, their exact limits and what the page says."""

import re

import numpy as np
import pytest
from core_tests import ROOT, loaded
from plas_bench.publish.power import MOST, power, power_rows, rounded_up, strength
from scipy import stats

from nas.compare.statistics import LEVEL, PAIRED, UNPAIRED, paired_p, runs_needed, seeds_needed, unpaired_p

PAGE = ROOT / "docs" / "compare.md"
RANKING = loaded("nas/compare/test_ranking.py")


@pytest.mark.parametrize(
    ("runs", "comparisons", "effect"), [(8, 1, 0.85), (15, 10, 0.85), (15, 120, 0.9), (45, 3, 0.7)]
)
def test_the_power_is_the_share_of_samples_that_the_test_shows(runs: int, comparisons: int, effect: float) -> None:
    draw, trials = np.random.default_rng(1), 800
    shift = np.sqrt(2) * stats.norm.ppf(effect)
    shown = [
        unpaired_p(draw.normal(size=runs) - shift, draw.normal(size=runs)) <= LEVEL / comparisons for _ in range(trials)
    ]
    assert power(UNPAIRED, runs, comparisons).shown(effect) == pytest.approx(np.mean(shown), abs=0.05)
    shift = stats.norm.ppf(effect)
    shown = [paired_p(draw.normal(size=runs) - shift, np.zeros(runs)) <= LEVEL / comparisons for _ in range(trials)]
    assert power(PAIRED, runs, comparisons).shown(effect) == pytest.approx(np.mean(shown), abs=0.05)


@pytest.mark.parametrize("comparisons", [1, 10, 120])
def test_power_ends_where_no_data_show_anything(comparisons: int) -> None:
    for test, needed in ((UNPAIRED, runs_needed(comparisons)), (PAIRED, seeds_needed(comparisons))):
        assert power(test, needed, comparisons).shown(1.0) == 1.0
        assert power(test, needed - 1, comparisons).shown(1.0) == 0.0
        assert np.isnan(power(test, needed - 1, comparisons).least)


def test_the_least_effect_is_shown_in_four_of_five() -> None:
    for test in (UNPAIRED, PAIRED):
        least = [power(test, runs, 10).least for runs in (11, 15, 30, MOST, 4 * MOST)]
        assert least == sorted(least, reverse=True)
        for runs, effect in zip((11, 15, 30), least, strict=False):
            assert power(test, runs, 10).shown(effect + 1e-9) == pytest.approx(0.8, abs=0.001)


def test_of_many_runs_the_least_effect_is_noethers() -> None:
    """Noether (1987): n = (z_{α/2} + z_β)² / (6 (A12 − 1/2)²) runs of each."""
    for runs in (60, 400):
        z = stats.norm.isf(LEVEL / 2) + stats.norm.isf(0.2)
        assert power(UNPAIRED, runs, 1).least - 0.5 == pytest.approx(z / np.sqrt(6 * runs), rel=0.06)


def test_the_page_gives_the_least_effects() -> None:
    """Its table of seeds by strategies."""
    rows = re.findall(r"^  \| (\d+) seeds \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(seeds) for seeds, _ in rows] == [10, 15, 20, 30]
    for seeds, cells in rows:
        found = [power(UNPAIRED, int(seeds), k * (k - 1) // 2).least for k in (2, 3, 5, 10, 16)]
        assert cells.split(" | ") == [f"{np.ceil(100 * each) / 100:.2f}" for each in found]


def test_the_power_of_each_test_is_said_and_in_the_rows() -> None:
    result = RANKING.of_samples(15, RANKING.separated(6), frozenset({"b", "d"}))
    said = strength(result)
    assert [line.split(":")[0] for line in said] == [
        "Power (Mann-Whitney, 15 runs each, Holm over 15 pairs)",
        "Power (Wilcoxon, 15 runs each, Holm over 15 pairs)",
    ]
    rows = power_rows([result])
    assert [(row["test"], row["runs"], row["comparisons"]) for row in rows] == [
        ("Mann-Whitney", 15, 15),
        ("Wilcoxon", 15, 15),
    ]
    assert f"{rounded_up(rows[0]['least'])} or more" in said[0]
    few = RANKING.of_samples(3, RANKING.separated(6), frozenset())
    assert strength(few) == []
    assert np.isnan(power_rows([few])[0]["least"])
