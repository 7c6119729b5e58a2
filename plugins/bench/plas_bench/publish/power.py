"""Power of the tests of a comparison: how large a difference must be to be shown."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from nas.compare.result import StudyResult, pairs
from nas.compare.statistics import EXACT, LEVEL, PAIRED, UNPAIRED, rank_sums
from search_spaces.arrays import FloatArray

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


def powers(result: StudyResult) -> list[Power]:
    """Power of each test that some pair of strategies takes, of the pair that has the most runs."""
    compared_pairs = pairs(result, "gap")
    tests = sorted({pair.test for pair in compared_pairs})
    return [
        power(test, max(pair.runs for pair in compared_pairs if pair.test == test), len(compared_pairs))
        for test in tests
    ]


def power_rows(results: Iterable[StudyResult]) -> list[dict[str, Any]]:
    """Of each study and test the least effect that is shown in 80 % of comparisons, empty where none is, and how often others are.

    The effect is A12 for Mann and Whitney's test, the share of seeds on which one is ahead for Wilcoxon's.
    """
    return [
        {
            "study": r.name,
            **{name: getattr(power, name) for name in ("test", "runs", "comparisons", "least")},
            **{f"shown_at_{effect:g}": power.shown(effect) for effect in EFFECTS},
        }
        for r in results
        if r.reference is not None
        for power in powers(r)
    ]


SIZES = {
    UNPAIRED: "a probability that one's run is ahead (A12) of",
    PAIRED: "of two that begin alike, one ahead on a share of seeds of",
}


def strength(r: StudyResult) -> list[str]:
    """How large a difference must be to be shown, of each test that can show one."""
    return [] if r.reference is None else [_strength(power) for power in powers(r) if not np.isnan(power.least)]


def _strength(power: Power) -> str:
    family = f", Holm over {power.comparisons} pairs" if power.comparisons > 1 else ""
    least = f"{SIZES[power.test]} {rounded_up(power.least)} or more is shown in {100 * WANTED:.0f} % of comparisons"
    return f"Power ({power.test}, {power.runs} runs each{family}): {least}{below(power)}."


def rounded_up(effect: float) -> str:
    """An effect, rounded up, so that what is said of it holds."""
    return f"{np.ceil(100 * effect) / 100:.2f}"


def below(power: Power) -> str:
    """How often a lesser difference is shown."""
    lesser = [effect for effect in EFFECTS if effect < power.least]
    return f"; {lesser[-1]:g} in {100 * power.shown(lesser[-1]):.0f} %" if lesser else ""
