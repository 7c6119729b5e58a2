"""Everything that a study's runs came to, and strategies ranked over the studies of a group (Friedman, from ten studies on)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from nas.compare.anytime import FIRST, LARGER_IS_BETTER, TARGETS, Measured, shown
from nas.compare.reference import EXACT, Reference
from nas.compare.statistics import (
    BLOCKS,
    LEVEL,
    PAIRED,
    UNPAIRED,
    a12,
    critical_difference,
    friedman,
    holm,
    mean_ranks,
    paired_lead,
    paired_p,
    unpaired_p,
)
from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray, IntArray

NONE_SHOWN = "no difference shown"


@dataclass(frozen=True)
class Pair:
    """Two strategies on one measure: p corrected by Holm over the family, and what it shows at 5 %.

    a12: how often the first's run is better than the second's, ties half; lead: above 0 where the test
    speaks for the first; shared_start: first designs that both evaluate for every seed that both have.
    """

    first: str
    second: str
    test: str
    runs: int
    shared_start: int
    a12: float
    lead: float
    p: float
    p_holm: float

    @property
    def better(self) -> str:
        """The strategy shown to be better, or `NONE_SHOWN`."""
        if not self.p_holm <= LEVEL or self.lead == 0:
            return NONE_SHOWN
        return self.first if self.lead > 0 else self.second


@dataclass(frozen=True, eq=False)
class StudyResult:
    """A study's runs, measured at the same checkpoints against the same reference (None: nothing feasible).

    chosen: what `auto` took, and why, by the name that it has here.
    """

    name: str
    group: str
    what: str
    objectives: tuple[Objective, ...]
    reference: Reference | None
    counts: IntArray
    runs: tuple[Measured, ...]
    skipped: dict[str, str]
    failures: dict[str, str]
    chosen: Mapping[str, str] = field(default_factory=dict)

    def lost(self) -> list[str]:
        """Strategies none of whose runs could be measured, each with the first reason."""
        names = sorted({run.strategy for run in self.runs} - set(self.strategies))
        reasons = {name: [why for run, why in self.failures.items() if run.startswith(f"{name} s")] for name in names}
        return [
            f"every run of {name} on {self.name} failed: {next(iter(why), 'no reason known')}"
            for name, why in reasons.items()
        ]

    @property
    def exact(self) -> bool:
        """Whether the reference is an exact frontier."""
        return self.reference is not None and self.reference.source == EXACT

    @cached_property
    def strategies(self) -> list[str]:
        """Strategies with a run that did not fail, by name."""
        return sorted({run.strategy for run in self.runs if run.ended != "failed"})

    @property
    def drawn(self) -> bool:
        """Whether there is anything to draw of the study."""
        return self.reference is not None and bool(self.strategies)

    def runs_of(self, strategy: str) -> list[Measured]:
        """A strategy's runs that did not fail, in order."""
        return [run for run in self.runs if run.strategy == strategy and run.ended != "failed"]

    def failed(self, strategy: str) -> int:
        """How many of a strategy's runs failed."""
        return sum(run.strategy == strategy and run.ended == "failed" for run in self.runs)

    def ended(self, strategy: str) -> str:
        """Why runs of a strategy hold fewer designs than asked, with how many; "" when none does."""
        marks = [run.ended for run in self.runs_of(strategy) if run.ended]
        counted = [(mark, marks.count(mark)) for mark in sorted(set(marks))]
        every = len(self.runs_of(strategy))
        return ", ".join(mark if count == every else f"{mark} {count} of {every}" for mark, count in counted)

    def carried(self, strategy: str, count: int) -> bool:
        """Whether most runs of a strategy hold fewer designs than that, so that its values are carried forward."""
        return float(np.median([run.evaluations for run in self.runs_of(strategy)])) < count

    def matrix(self, strategy: str, measure: str) -> FloatArray:
        """A measure of a strategy's runs at every checkpoint, (runs, checkpoints)."""
        return np.array([run.values[measure] for run in self.runs_of(strategy)]).reshape(-1, len(self.counts))

    def last(self, strategy: str, measure: str) -> FloatArray:
        """A measure of a strategy's runs at the last checkpoint, (runs,)."""
        return self.matrix(strategy, measure)[:, -1]

    def reached(self, strategy: str) -> FloatArray:
        """Designs to each target, NaN where never, (runs, targets)."""
        return np.array([run.reached for run in self.runs_of(strategy)]).reshape(-1, len(TARGETS))

    def median_front(self, strategy: str) -> FloatArray:
        """The front of a strategy's run whose gap is the (upper) median, (f, m)."""
        order = np.argsort(self.last(strategy, "gap"), kind="stable")
        return self.runs_of(strategy)[int(order[len(order) // 2])].front

    def starts(self, strategy: str) -> dict[int | str, IntArray]:
        """Keys of the first designs of a strategy's runs, by seed, or by name where a run has none."""
        return {_own(run): run.start for run in self.runs_of(strategy)}

    def level(self, strategy: str, count: int) -> bool:
        """Whether another strategy has evaluated the same designs for every seed until then, so that both are level by construction."""
        return any(shared_start(self, strategy, other) >= count for other in self.strategies if other != strategy)

    def ranking(self) -> list[str]:
        """Strategies from the smallest median gap to the largest, then by name."""
        return sorted(self.strategies, key=lambda name: (float(np.median(self.last(name, "gap"))), name))


@lru_cache
def pairs(result: StudyResult, measure: str) -> list[Pair]:
    """Every pair of strategies; Holm's correction is over all of them."""
    names = result.strategies
    compared_pairs = [compared(result, measure, a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return corrected(compared_pairs)


def against(result: StudyResult, measure: str, baseline: str) -> list[Pair]:
    """Every strategy with a baseline; Holm's correction is over these alone."""
    if baseline not in result.strategies:
        return []
    return corrected([compared(result, measure, name, baseline) for name in result.strategies if name != baseline])


def compared(result: StudyResult, measure: str, first: str, second: str) -> Pair:
    """Mann and Whitney's test, of independent runs; Wilcoxon's, on the seeds that both have, where a seed begins both alike."""
    sign = -1.0 if measure in LARGER_IS_BETTER else 1.0
    a, b = (sign * result.last(name, measure) for name in (first, second))
    alike = shared_start(result, first, second)
    if not dependent(result, first, second):
        effect, runs = a12(a, b), min(len(a), len(b))
        return Pair(first, second, UNPAIRED, runs, alike, effect, effect - 0.5, unpaired_p(a, b), np.nan)
    seeds, others = (list(map(_own, result.runs_of(name))) for name in (first, second))
    shared = sorted(set(seeds) & set(others), key=str)
    a, b = a[[seeds.index(seed) for seed in shared]], b[[others.index(seed) for seed in shared]]
    return Pair(first, second, PAIRED, len(shared), alike, a12(a, b), paired_lead(a, b), paired_p(a, b), np.nan)


def _own(run: Measured) -> int | str:
    """What runs of two strategies are paired by."""
    return run.run if run.seed is None else run.seed


@lru_cache(maxsize=4096)
def shared_start(result: StudyResult, first: str, second: str) -> int:
    """How many first designs two strategies evaluate alike, in order, for each seed that both have; 0 without such seeds."""
    one, two = result.starts(first), result.starts(second)
    return min((prefix([one[seed], two[seed]]) for seed in one.keys() & two.keys()), default=0)


def dependent(result: StudyResult, first: str, second: str) -> bool:
    """Whether runs of one seed are no independent samples: both begin alike, to the first checkpoint at least, and otherwise for another seed."""
    shared = shared_start(result, first, second)
    return shared >= FIRST and prefix(list(result.starts(first).values())) < shared


def same_starts(result: StudyResult) -> list[tuple[list[str], int]]:
    """Strategies that begin with the same designs for every seed, and with how many (`START` at most)."""
    groups: list[list[str]] = []
    for name in result.strategies:
        group_of_name = next((group for group in groups if shared_start(result, group[0], name) >= FIRST), None)
        groups.append([name]) if group_of_name is None else group_of_name.append(name)
    return [(group, min(shared_start(result, group[0], name) for name in group[1:])) for group in groups if group[1:]]


def prefix(sequences: Sequence[IntArray]) -> int:
    """How many first elements are the same in all sequences."""
    length = min(map(len, sequences))
    same = (np.array([each[:length] for each in sequences]) == sequences[0][:length]).all(axis=0)
    return int(length if same.all() else same.argmin())


def corrected(pairs: list[Pair]) -> list[Pair]:
    """Pairs with Holm's correction over all of them."""
    adjusted = holm([pair.p for pair in pairs])
    return [replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Median gaps (studies, strategies) of a group's studies after some distinct evaluations.

    Strategies missing in a study are left out; of those in `ended` most runs hold fewer, and their last value counts;
    those in `level` had evaluated the same designs as another one.
    """

    group: str
    strategies: tuple[str, ...]
    gaps: FloatArray
    left_out: tuple[str, ...]
    evaluations: int
    ended: frozenset[str]
    level: frozenset[str] = frozenset()

    @property
    def shown(self) -> bool:
        """Whether there are studies and strategies enough to rank at all."""
        return len(self.gaps) >= BLOCKS and len(self.strategies) >= 3

    def ordered(self) -> list[tuple[str, float]]:
        """Strategies with their mean rank, best first."""
        ranks = mean_ranks(self.gaps)
        return sorted(zip(self.strategies, map(float, ranks), strict=True), key=lambda item: (item[1], item[0]))

    @property
    def critical(self) -> float:
        """Difference of mean ranks below which none is shown."""
        return critical_difference(len(self.strategies), len(self.gaps))

    def title(self) -> str:
        """The test in words."""
        statistic, p = friedman(self.gaps)
        of = f" of group {self.group}" if self.group else ""
        return (
            f"Mean rank of the median gap over {len(self.gaps)} studies{of}: Friedman {statistic:.3g}, p {p:.2g}; "
            f"critical difference {self.critical:.2f} at {100 * LEVEL:.0f} %"
        )

    def sentence(self) -> str:
        """Sentence on the ranks, or why there are none."""
        if not self.shown:
            return (
                f"Ranks over studies need at least {BLOCKS} studies and 3 strategies; this group has {len(self.gaps)} "
                f"and {len(self.strategies)}, so none are given."
            )
        if friedman(self.gaps)[1] > LEVEL:
            return "No difference shown over the studies."
        ordered = self.ordered()
        close = [name for name, rank in ordered[1:] if rank - ordered[0][1] <= self.critical]
        tied = f"No difference shown from it: {', '.join(close)}." if close else "Every other one is shown to be worse."
        if self.left_out:
            tied += f" Not ranked, since they did not take part in every study: {', '.join(self.left_out)}."
        return f"Best: {ordered[0][0]} ({ordered[0][1]:.2f}). {tied}"

    def rows(self) -> list[dict[str, Any]]:
        """The table's rows; none below ten studies."""
        if not self.shown:
            return []
        statistic, p = friedman(self.gaps)
        return [
            {
                "group": self.group,
                "evaluations": self.evaluations,
                "strategy": name,
                "ended": name in self.ended,
                "level": name in self.level,
                "mean_rank": rank,
                "studies": len(self.gaps),
                "friedman": statistic,
                "p": p,
                "critical_difference": self.critical,
            }
            for name, rank in self.ordered()
        ]


def rankings(results: Sequence[StudyResult]) -> list[Ranking]:
    """One ranking per group, after all evaluations, of its studies that have something feasible."""
    groups = dict.fromkeys(result.group for result in results)
    return [found[-1] for group in groups if (found := course(results, group))]


def course(results: Sequence[StudyResult], group: str) -> list[Ranking]:
    """A group's rankings at the checkpoints that a reader sees, the last one last; none with nothing feasible."""
    members = [result for result in results if result.group == group and result.reference is not None]
    if not members:
        return []
    counts = members[0].counts
    columns = shown(counts) if all(np.array_equal(member.counts, counts) for member in members) else [-1]
    return [_ranking(members, column) for column in columns]


def _ranking(members: Sequence[StudyResult], column: int) -> Ranking:
    everywhere = sorted(set.intersection(*(set(member.strategies) for member in members)))
    anywhere = set().union(*(set(member.strategies) for member in members))
    gaps = np.array([[np.median(member.matrix(name, "gap")[:, column]) for name in everywhere] for member in members])
    count = int(members[0].counts[column])
    ended = frozenset(name for name in everywhere if all(member.carried(name, count) for member in members))
    level = frozenset(name for name in everywhere if all(member.level(name, count) for member in members))
    left_out = tuple(sorted(anywhere - set(everywhere)))
    return Ranking(members[0].group, tuple(everywhere), gaps.reshape(len(members), -1), left_out, count, ended, level)


def named(what: str, group: str) -> str:
    """A file name for a group's picture."""
    kept = "".join(c if c.isalnum() else "-" for c in group)
    return f"{what}-{kept}" if kept else what
