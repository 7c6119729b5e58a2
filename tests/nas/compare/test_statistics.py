"""Statistics against their definitions; their size and power on synthetic samples (extended)."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from nas.compare.statistics import (
    LEVEL,
    RESAMPLES,
    SEED,
    a12,
    bootstrap_interval,
    critical_difference,
    friedman,
    holm,
    mean_ranks,
    paired_lead,
    paired_p,
    quantile,
    runs_needed,
    seeds_needed,
    unpaired_p,
)


def test_holm_steps_down_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert len(holm([])) == 0


def test_a12_counts_pairs_and_halves_ties() -> None:
    first, second = np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0, np.inf])
    pairs = [1.0 if a < b else 0.5 if a == b else 0.0 for a, b in product(first, second)]
    assert a12(first, second) == pytest.approx(np.mean(pairs))
    assert a12(first, second) + a12(second, first) == pytest.approx(1.0)


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_quantiles_are_numpys_and_take_infinity(q: float) -> None:
    values = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
    assert quantile(values, q) == pytest.approx(np.quantile(values, q))
    assert quantile(np.array([1.0, np.inf, np.inf]), 0.75) == np.inf
    assert np.isnan(quantile(np.zeros(0), q))


def test_the_interval_of_the_median_holds_it_and_repeats() -> None:
    values = np.random.default_rng(3).normal(size=25)
    low, high = bootstrap_interval(values)
    assert low <= np.median(values) <= high
    assert (low, high) == bootstrap_interval(values[::-1])
    two = bootstrap_interval(np.array([0.0, 1.0]))
    assert two == (0.0, 1.0)
    assert bootstrap_interval(np.full(5, 0.25)) == (0.25, 0.25)
    assert np.isnan(bootstrap_interval(np.ones(1))).all()
    assert bootstrap_interval(np.array([0.1, np.inf, np.inf]))[1] == np.inf


@pytest.mark.parametrize(("runs", "tail"), [(15, 0.0132072), (14, 0.0124832)])
def test_the_interval_is_hesterbergs(runs: int, tail: float) -> None:
    """At 15 runs the tails are Φ(−2.1448 √(15/14)) = 0.0132 instead of 0.025."""
    values = np.random.default_rng(3).normal(size=runs)
    drawn = np.random.default_rng(SEED).integers(runs, size=(RESAMPLES, runs))
    medians = np.median(np.sort(values)[drawn], axis=1)
    assert bootstrap_interval(values) == pytest.approx(np.quantile(medians, [tail, 1 - tail]), abs=1e-4)


def test_the_paired_test_is_exact_without_ties() -> None:
    """Five pairs, all differences positive: two of the 2^5 sign patterns are as extreme."""
    assert paired_p(np.array([2.0, 3.0, 5.0, 7.0, 11.0]), np.array([1.0, 1.0, 1.0, 1.0, 1.0])) == pytest.approx(2 / 32)


def test_zeros_are_ranked_in_the_paired_test() -> None:
    """Pratt (1959): zeros take the lowest ranks and no side; p is the share of sign patterns as extreme."""
    differences = np.array([0.0, 0.0, 1.0, 2.0, -3.0, 4.0, 5.0, 6.0])
    ranks = np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])  # of those that are not zero
    sums = [abs(np.dot(signs, ranks)) for signs in product((-1, 1), repeat=6)]
    expected = np.mean(np.array(sums) >= 3 + 4 - 5 + 6 + 7 + 8)
    without = np.mean([abs(np.dot(signs, ranks - 2)) >= 1 + 2 - 3 + 4 + 5 + 6 for signs in product((-1, 1), repeat=6)])
    assert expected != without
    assert paired_p(differences + 1.0, np.ones(8)) == pytest.approx(expected)
    assert paired_lead(np.ones(8), differences + 1.0) == 3 + 4 - 5 + 6 + 7 + 8
    assert paired_lead(differences + 1.0, np.ones(8)) == -(3 + 4 - 5 + 6 + 7 + 8)


def test_the_unpaired_test_is_exact_without_ties() -> None:
    """Three below four: two of the 35 orders are as extreme."""
    assert unpaired_p(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0, 7.0])) == pytest.approx(2 / 35)


def test_the_unpaired_test_is_exact_with_ties() -> None:
    """The share of all divisions of the midranks whose sum is as far from its mean."""
    for seed in range(6):
        both = np.random.default_rng(seed).integers(0, 4, size=10).astype(float)
        both[0] = np.inf
        ranks, n = stats.rankdata(both), 4
        sums = [sum(ranks[list(chosen)]) for chosen in combinations(range(10), n)]
        off = np.abs(np.array(sums) - np.mean(sums)) >= abs(ranks[:n].sum() - np.mean(sums)) - 1e-9
        assert unpaired_p(both[:n], both[n:]) == pytest.approx(off.mean())


@pytest.mark.parametrize("runs", [(8, 8), (15, 15), (40, 40), (5, 30)])
def test_without_ties_the_unpaired_test_is_scipys_exact_one(runs: tuple[int, int]) -> None:
    draw = np.random.default_rng(3)
    first, second = draw.normal(size=runs[0]), 0.6 + draw.normal(size=runs[1])
    assert unpaired_p(first, second) == pytest.approx(stats.mannwhitneyu(first, second, method="exact").pvalue)


def test_of_many_runs_the_normal_curve_is_near_the_exact_test() -> None:
    draw = np.random.default_rng(4)
    first, second = draw.normal(size=60), 0.3 + draw.normal(size=60)
    assert unpaired_p(first, second) == pytest.approx(
        stats.mannwhitneyu(first, second, method="exact").pvalue, rel=0.02
    )


def test_equal_and_infinite_values_are_no_evidence() -> None:
    infinite = np.full(6, np.inf)
    assert paired_p(infinite, infinite) == 1.0
    assert paired_p(np.zeros(6), np.zeros(6)) == 1.0
    assert unpaired_p(infinite, infinite) == 1.0
    assert unpaired_p(np.zeros(0), np.zeros(3)) == 1.0
    assert paired_p(infinite, np.arange(1.0, 7.0)) == pytest.approx(2 / 64)


@pytest.mark.parametrize("comparisons", [1, 3, 28, 105])
def test_below_the_seeds_needed_nothing_can_be_shown(comparisons: int) -> None:
    """All differences of one sign, no ties: the smallest p that a paired test can give."""
    needed = seeds_needed(comparisons)
    for runs, enough in ((needed, True), (needed - 1, False)):
        smallest = paired_p(np.arange(1.0, runs + 1), np.zeros(runs))
        assert bool(holm([smallest] * comparisons)[0] <= LEVEL) is enough


def test_the_critical_difference_is_demsars() -> None:
    """q 2.343 of three and 2.728 of five classifiers (Demšar 2006, table 5a)."""
    assert critical_difference(3, 20) == pytest.approx(2.343 * np.sqrt(3 * 4 / 120), rel=1e-3)
    assert critical_difference(5, 30) == pytest.approx(2.728 * np.sqrt(5 * 6 / 180), rel=1e-3)


def test_friedman_ranks_within_blocks() -> None:
    values = np.array([[1.0, 2.0, 3.0], [10.0, 30.0, 20.0], [0.1, 0.2, 0.2]])
    assert mean_ranks(values) == pytest.approx([1.0, (2 + 3 + 2.5) / 3, (3 + 2 + 2.5) / 3])
    assert friedman(np.ones((10, 3))) == (0.0, 1.0)


# Size and power

RUNS, STRATEGIES, TRIALS = 15, 6, 400


def rejections(effect: float, generator: np.random.Generator, *, paired: bool) -> tuple[float, float]:
    """Share of trials with any rejection among strategies that are equal, and with the one other found.

    Log-normal gaps; seeds share a part of their luck; the last strategy's log gap is lower by `effect`
    standard deviations.
    """
    false = found = 0
    pairs = [(i, j) for i in range(STRATEGIES) for j in range(i + 1, STRATEGIES)]
    for _ in range(TRIALS):
        luck = 0.5 * generator.normal(size=(RUNS, 1))
        gaps = np.exp(
            luck + generator.normal(size=(RUNS, STRATEGIES)) - effect * (np.arange(STRATEGIES) == STRATEGIES - 1)
        )
        test = paired_p if paired else unpaired_p
        adjusted = holm([test(gaps[:, i], gaps[:, j]) for i, j in pairs])
        shown = {pair for pair, p in zip(pairs, adjusted, strict=True) if p <= LEVEL}
        false += any(STRATEGIES - 1 not in pair for pair in shown) if effect else bool(shown)
        found += (0, STRATEGIES - 1) in shown
    return false / TRIALS, found / TRIALS


@pytest.mark.extended
@pytest.mark.parametrize("paired", [True, False])
def test_equal_strategies_are_found_to_differ_in_at_most_five_percent(paired: bool) -> None:
    false, _ = rejections(0.0, np.random.default_rng(11), paired=paired)
    assert false <= LEVEL + 1.64 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)


@pytest.mark.extended
@pytest.mark.parametrize("paired", [True, False])
def test_two_standard_deviations_are_found_in_ninety_percent(paired: bool) -> None:
    false, found = rejections(2.0, np.random.default_rng(12), paired=paired)
    assert found >= 0.9
    assert false <= LEVEL + 1.64 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)


@pytest.mark.extended
def test_the_interval_of_the_median_covers_it() -> None:
    generator = np.random.default_rng(13)
    for runs in (10, 15, 20):
        held = [
            low <= 1.0 <= high
            for low, high in (bootstrap_interval(np.exp(generator.normal(size=runs))) for _ in range(600))
        ]
        assert np.mean(held) >= 0.93, runs


@pytest.mark.extended
def test_friedman_holds_its_level_and_finds_a_shift() -> None:
    generator = np.random.default_rng(14)
    null = [friedman(generator.normal(size=(12, 5)))[1] <= LEVEL for _ in range(TRIALS)]
    assert np.mean(null) <= LEVEL + 1.64 * np.sqrt(LEVEL * (1 - LEVEL) / TRIALS)
    shift = np.array([0.0, 0.0, 0.0, 0.0, 1.5])
    assert np.mean([friedman(generator.normal(size=(12, 5)) - shift)[1] <= LEVEL for _ in range(TRIALS)]) >= 0.8


@pytest.mark.parametrize("comparisons", [1, 3, 10])
def test_fewer_unpaired_runs_can_show_nothing(comparisons: int) -> None:
    n = runs_needed(comparisons)
    for runs, shown in ((n, True), (n - 1, False)):
        p = stats.mannwhitneyu(np.arange(runs), np.arange(runs) + 100, method="exact").pvalue
        assert (p * comparisons <= LEVEL) == shown
