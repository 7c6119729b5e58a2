"""Strategies ranked over the studies of a group: Friedman's test, from ten studies on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.compare.anytime import shown
from nas.compare.result import StudyResult
from nas.compare.statistics import BLOCKS, LEVEL, critical_difference, friedman, mean_ranks
from search_spaces.arrays import FloatArray


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
