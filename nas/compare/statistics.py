"""Statistics over runs: spread, intervals of medians, pairwise tests with Holm's correction, ranks over studies."""

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np
from scipy import stats

from search_spaces.arrays import FloatArray

LEVEL = 0.05
RESAMPLES = 2000
SEED = 20_240_601  # of the bootstrap, so that the same runs give the same intervals
EXACT = 80  # runs of both up to which the rank-sum test counts every division of the ranks; beyond it the normal curve is as good
UNPAIRED, PAIRED = "Mann-Whitney", "Wilcoxon"
BLOCKS = 10  # studies below which strategies are not ranked over them


def quantile(values: FloatArray, q: float) -> float:
    """Linear quantile of values that may be infinite; NaN of none."""
    if len(values) == 0:
        return np.nan
    ordered = np.sort(values)
    place = q * (len(ordered) - 1)
    low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
    return float(low if low == high else low + (high - low) * (place % 1))


def bootstrap_interval(values: FloatArray) -> tuple[float, float]:
    """95 % bootstrap interval of the median; NaN of fewer than two values.

    Percentiles (Efron 1979) expanded for small samples to Φ(−t √(n/(n−1))), t of n − 1 degrees of freedom
    (Hesterberg 2015): as they are they would cover 90 % at 15 runs.
    """
    n = len(values)
    if n < 2:
        return np.nan, np.nan
    tail = float(stats.norm.cdf(stats.t.ppf(LEVEL / 2, n - 1) * np.sqrt(n / (n - 1))))
    drawn = np.random.default_rng(SEED).integers(n, size=(RESAMPLES, n))
    ordered = np.sort(np.sort(values)[drawn], axis=1)
    middle = n // 2
    medians = ordered[:, middle] if n % 2 else (ordered[:, middle - 1] + ordered[:, middle]) / 2
    return quantile(medians, tail), quantile(medians, 1 - tail)


def holm(p: Sequence[float]) -> FloatArray:
    """Holm's step-down adjusted p values (Holm 1979), in the order given."""
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    steps = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def a12(first: FloatArray, second: FloatArray) -> float:
    """Vargha and Delaney's A12 (2000): how often a value of the first is smaller than one of the second, ties half."""
    smaller = (first[:, None] < second[None, :]).mean()
    return float(smaller + 0.5 * (first[:, None] == second[None, :]).mean())


def paired_p(first: FloatArray, second: FloatArray) -> float:
    """Two-sided Wilcoxon signed-rank p of paired values (Wilcoxon 1945), zeros kept in the ranking (Pratt 1959).

    Infinite values count as beyond every finite one, two infinite ones as equal; 1 when all are equal.
    """
    differences = np.subtract(*_finite(first, second))
    if len(differences) == 0 or not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="pratt").pvalue)


def paired_lead(first: FloatArray, second: FloatArray) -> float:
    """By how much the ranks of differences in favour of the first (its value smaller) outweigh the others; 0: neither."""
    differences = np.subtract(*_finite(second, first))
    return float((np.sign(differences) * stats.rankdata(np.abs(differences))).sum())


def unpaired_p(first: FloatArray, second: FloatArray) -> float:
    """Two-sided Mann-Whitney p (Mann and Whitney 1947), exact also with ties; infinite values are ranked as they are.

    The share of divisions of all midranks whose sum is as far from its mean; with more than `EXACT` values the normal approximation.
    """
    both = np.concatenate([first, second])
    if len(first) == 0 or len(second) == 0 or len(np.unique(both)) == 1:
        return 1.0
    if len(both) > EXACT:
        return float(stats.mannwhitneyu(first, second, method="asymptotic").pvalue)
    doubled = np.rint(2 * stats.rankdata(both)).astype(np.int64)
    off = np.abs(doubled[: len(first)].sum() - len(first) * (len(both) + 1))
    ways = rank_sums(tuple(np.sort(doubled).tolist()), len(first))
    far = np.abs(np.arange(len(ways)) - len(first) * (len(both) + 1)) >= off
    return float(ways[far].sum() / ways.sum())


@lru_cache(maxsize=4096)
def rank_sums(doubled: tuple[int, ...], n: int) -> FloatArray:
    """In how many ways n of the (doubled) ranks can be chosen with each sum, (1 + their sum,)."""
    ways = np.zeros((n + 1, sum(doubled) + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, :-rank]
    chosen: FloatArray = ways[n]
    return chosen


def _finite(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.concatenate([first, second])
    finite = both[np.isfinite(both)]
    beyond = 2 * finite.max() + 1 if len(finite) else 1.0
    return np.where(np.isinf(first), beyond, first), np.where(np.isinf(second), beyond, second)


def seeds_needed(comparisons: int) -> int:
    """Runs below which a paired test, corrected for so many comparisons, can show nothing whatever the data."""
    return int(np.ceil(np.log2(2 * max(comparisons, 1) / LEVEL)))


def runs_needed(comparisons: int) -> int:
    """Runs of each strategy below which an unpaired test, corrected for so many comparisons, can show nothing whatever the data."""
    runs = 1
    while 2.0 * max(comparisons, 1) / comb(2 * runs, runs) > LEVEL:
        runs += 1
    return runs


def mean_ranks(values: FloatArray) -> FloatArray:
    """Mean rank of each column over the rows (blocks, strategies), 1 is best, smaller values first."""
    ranks: FloatArray = stats.rankdata(values, axis=1).mean(axis=0)
    return ranks


def friedman(values: FloatArray) -> tuple[float, float]:
    """Friedman's statistic and p over blocks (blocks, strategies) (Friedman 1937); (0, 1) when all tie."""
    if (values == values[:, :1]).all():
        return 0.0, 1.0
    result = stats.friedmanchisquare(*values.T)
    return float(result.statistic), float(result.pvalue)


def critical_difference(strategies: int, blocks: int) -> float:
    """Nemenyi's critical difference of mean ranks at 5 % (Demšar 2006): q · √(k (k + 1) / (6 N)), q of infinite degrees."""
    q = float(stats.studentized_range.ppf(1 - LEVEL, strategies, 1e5)) / np.sqrt(2)
    return float(q * np.sqrt(strategies * (strategies + 1) / (6 * blocks)))
