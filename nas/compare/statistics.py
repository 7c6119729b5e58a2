"""Statistics over runs: spread, intervals of medians, pairwise tests with Holm's correction, their power, ranks over studies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


DRAWS = 4000  # simulated comparisons
SIMULATION_SEED = 20_241_126  # of the simulation, so that the same numbers of runs give the same figures
AT_ONCE = 2_000_000  # numbers that are simulated together
WANTED = 0.8
EFFECTS = (0.6, 0.7, 0.8, 0.9, 1.0)
MOST = 60  # runs that are simulated; of more, shifts shrink with the root of their number (Pitman 1948)
EXACT_PAIRS = 50  # pairs up to which the signed-rank test counts every pattern of signs


@dataclass(frozen=True, eq=False)
class Power:
    """Power of a two-sided test at a level of 5 % over the number of comparisons, for normal values of equal spread.

    That level is what Holm's correction asks of a difference that is the only one; where others are shown too it asks less.
    needed: the shift, in standard deviations, from which each simulated comparison shows the difference, ascending, (draws,);
    infinite where no data could. Source: Noether 1987 gives the same for large samples.
    """

    test: str
    runs: int
    comparisons: int
    needed: FloatArray

    def shown(self, effect: float) -> float:
        """Share of comparisons that show a difference of this effect (`effect_of`)."""
        shift = stats.norm.ppf(effect) * _scale(self.test)
        return float((self.needed <= shift).mean()) if np.isfinite(shift) else float(np.isfinite(self.needed).mean())

    @property
    def least(self) -> float:
        """The least effect that is shown in `WANTED` of comparisons; NaN where none is."""
        shift = self.needed[int(np.ceil(WANTED * len(self.needed))) - 1]
        return float(stats.norm.cdf(shift / _scale(self.test))) if np.isfinite(shift) else np.nan


def _scale(test: str) -> float:
    """Shift in standard deviations per unit of Φ⁻¹(effect): A12 = Φ(shift / √2) of two samples, a share of seeds Φ(shift) of differences."""
    return float(np.sqrt(2)) if test == UNPAIRED else 1.0


@lru_cache(maxsize=256)
def power(test: str, runs: int, comparisons: int) -> Power:
    """Power of Mann and Whitney's test of `runs` against `runs`, or of Wilcoxon's on `runs` pairs.

    Both statistics count numbers above zero: differences of two values, or means of two differences (Walsh). So a shift shows as
    soon as the critical one of these, from the largest, is above zero (Hodges and Lehmann 1963); the other side is left out.
    """
    if runs > MOST:
        simulated = power(test, MOST, comparisons)
        return Power(test, runs, comparisons, simulated.needed * np.sqrt(MOST / runs))
    level = LEVEL / max(comparisons, 1)
    critical = (_critical_unpaired if test == UNPAIRED else _critical_paired)(runs, level)
    drawn = _differences if test == UNPAIRED else _walsh
    count = runs * runs if test == UNPAIRED else runs * (runs + 1) // 2
    if critical is None or critical > count:
        return Power(test, runs, comparisons, np.full(DRAWS, np.inf))
    return Power(test, runs, comparisons, np.sort(-_order_statistic(drawn, runs, count, critical)))


def _order_statistic(drawn: Callable[..., FloatArray], runs: int, count: int, critical: int) -> FloatArray:
    """The critical one from the largest of what each simulated comparison counts, (draws,)."""
    generator, block = np.random.default_rng(SIMULATION_SEED), max(AT_ONCE // count, 1)
    blocks = [
        np.partition(drawn(generator, min(block, DRAWS - start), runs), count - critical, axis=1)[:, count - critical]
        for start in range(0, DRAWS, block)
    ]
    return np.concatenate(blocks)


def _differences(generator: np.random.Generator, draws: int, runs: int) -> FloatArray:
    values = generator.normal(size=(2, draws, runs))
    return (values[0, :, :, None] - values[1, :, None, :]).reshape(draws, -1)


def _walsh(generator: np.random.Generator, draws: int, runs: int) -> FloatArray:
    differences, (i, j) = generator.normal(size=(draws, runs)), np.triu_indices(runs)
    return (differences[:, i] + differences[:, j]) / 2


def _critical_unpaired(runs: int, level: float) -> int | None:
    """The least count that is significant, of two samples of so many runs; None where none is."""
    if 2 * runs > EXACT:
        sd = np.sqrt(runs * runs * (2 * runs + 1) / 12)
        return int(np.ceil(runs * runs / 2 + sd * stats.norm.isf(level / 2)))
    ways = rank_sums(tuple(range(2, 4 * runs + 1, 2)), runs)[::2][runs * (runs + 1) // 2 :]
    return _critical(ways, level)


def _critical_paired(runs: int, level: float) -> int | None:
    """The least count that is significant, of so many pairs; None where none is."""
    most = runs * (runs + 1) // 2
    if runs > EXACT_PAIRS:
        return int(np.ceil(most / 2 + np.sqrt(most * (2 * runs + 1) / 12) * stats.norm.isf(level / 2)))
    ways = np.zeros(most + 1)
    ways[0] = 1.0
    for rank in range(1, runs + 1):
        ways[rank:] += ways[:-rank].copy()
    return _critical(ways, level)


def _critical(ways: FloatArray, level: float) -> int | None:
    """From which count on two tails hold at most that share of the ways, symmetric."""
    above = 2 * np.cumsum(ways[::-1])[::-1] / ways.sum()
    return int(np.argmax(above <= level)) if (above <= level).any() else None
