"""Runs as traces of evaluations, and their quality after so many distinct evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nas.compare.reference import Reference
from nas.problem.evaluations import non_dominated
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Trace:
    """Evaluations that were paid, in their order: of our runs distinct designs, of another tool's every row or, with keys, design.

    values (n, m): objectives, minimised; feasible (n,): finite and within the budgets; keys (n,): one
    number per design; seconds (n,): when each was known, of strategy and objectives together, or None;
    strategy_s: seconds of the strategy alone, or None; ended: why it holds no more, "" when it holds all that was asked;
    seed: pairs runs of different strategies, None where nothing does.
    """

    strategy: str
    run: str
    seed: int | None
    values: FloatArray
    feasible: BoolArray
    keys: IntArray
    ended: str = ""
    seconds: FloatArray | None = None
    strategy_s: float | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def failed(cls, strategy: str, run: str, seed: int | None, objectives: int) -> Self:
        """A run that holds nothing because it failed."""
        nothing = np.zeros((0, objectives))
        return cls(strategy, run, seed, nothing, np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), "failed")

    def merged(self, front: IntArray, start: int, end: int) -> IntArray:
        """The feasible frontier's rows after `end` designs, from those after `start`; ascending."""
        candidates = np.concatenate([front, start + np.flatnonzero(self.feasible[start:end])])
        return candidates[non_dominated(self.values[candidates])]


MEASURES = ("gap", "share", "igd_plus", "epsilon", "regret")
LARGER_IS_BETTER = ("share",)
TARGETS = tuple(float(f"{10.0 ** (-1 - k / 4):.4g}") for k in range(13))
SHOWN_TARGETS = TARGETS[::4]
FIRST = 10
LEAST_SHOWN = 50
START = 1000  # first designs of a run that are kept, to see which strategies begin alike


@dataclass(frozen=True, eq=False)
class Measured:
    """A run's measures at the comparison's checkpoints, values carried forward from where it ended.

    values: measure → (checkpoints,); reached: evaluations to each of `TARGETS`, NaN where never
    (targets,); front (f, m): what was found in the end; start: keys of its first designs, `START`
    at most, in order; strategy_ms, objectives_ms: per design; seconds: of both over the whole run.
    """

    strategy: str
    run: str
    seed: int | None
    ended: str
    evaluations: int
    values: dict[str, FloatArray]
    reached: FloatArray
    front: FloatArray
    start: IntArray
    seconds: float | None
    strategy_ms: float | None
    objectives_ms: float | None


def checkpoints(evaluations: int) -> IntArray:
    """Ten numbers per decade from 10 on, and the last one; the same for every comparison up to where it ends."""
    decades = np.arange(10, 10 * int(np.ceil(np.log10(max(evaluations, FIRST)))) + 10)
    points = np.rint(10 ** (decades / 10)).astype(np.int64)
    return np.unique([*points[points < evaluations], evaluations])


def shown(counts: IntArray) -> list[int]:
    """Which checkpoints (indices) a reader sees: about 50, 100, 200, 500, 1,000 … and the last."""
    last = len(counts) - 1
    decades = 10.0 * np.log10(counts)
    round_ones = np.isin(np.rint(decades).astype(np.int64) % 10, (0, 3, 7)) & (counts >= LEAST_SHOWN)
    return [*np.flatnonzero(round_ones & (counts < 0.9 * counts[last])).tolist(), last]


class Replay:
    """The frontier of a trace after any number of designs, known ones kept."""

    def __init__(self, trace: Trace, reference: Reference) -> None:
        self.trace, self.reference = trace, reference
        self.fronts: dict[int, IntArray] = {0: np.zeros(0, dtype=np.int64)}
        self.gaps: dict[int, float] = {0: 1.0}

    def front(self, count: int) -> IntArray:
        """Rows of the frontier after `count` designs, at most all."""
        count = min(count, len(self.trace))
        if count not in self.fronts:
            start = max(known for known in self.fronts if known < count)
            self.fronts[count] = self.trace.merged(self.fronts[start], start, count)
        return self.fronts[count]

    def gap(self, count: int) -> float:
        """Gap after `count` designs."""
        count = min(count, len(self.trace))
        if count not in self.gaps:
            self.gaps[count] = self.reference.gap(self.trace.values[self.front(count)])
        return self.gaps[count]

    def standing(self, count: int) -> tuple[float, ...]:
        """Every measure after `count` designs, in the order of `MEASURES`."""
        rows = self.front(count)
        values = self.trace.values[rows]
        d = self.reference.distance(values, self.trace.keys[rows])
        return d.gap, d.share, d.igd_plus, d.epsilon, self.reference.regret(values)

    def first_reaching(self, target: float, counts: Sequence[int]) -> float:
        """Designs after which the gap is at most `target`, found by bisection, NaN where never; the gap never grows."""
        above, below = 0, next((count for count in counts if self.gap(count) <= target), None)
        if below is None:
            return np.nan
        above = max((count for count in counts if count < below), default=0)
        below = min(below, len(self.trace))
        while below - above > 1:
            middle = (above + below) // 2
            above, below = (above, middle) if self.gap(middle) <= target else (middle, below)
        return float(below)


def measured(trace: Trace, reference: Reference | None, counts: IntArray) -> Measured:
    """A run's measures; without a reference (nothing is feasible at all) every value is NaN."""
    if reference is None or trace.ended == "failed":
        values = {name: np.full(len(counts), np.nan) for name in MEASURES}
        reached, front = np.full(len(TARGETS), np.nan), trace.values[:0]
    else:
        replay = Replay(trace, reference)
        table = np.array([replay.standing(int(count)) for count in counts])
        values = dict(zip(MEASURES, table.T, strict=True))
        reached = np.array([replay.first_reaching(target, counts.tolist()) for target in TARGETS])
        front = trace.values[replay.front(int(counts[-1]))]
    start, spent = trace.keys[:START].copy(), costs(trace)
    return Measured(
        trace.strategy, trace.run, trace.seed, trace.ended, len(trace), values, reached, front, start, *spent
    )


def costs(trace: Trace) -> tuple[float, float, float] | tuple[None, None, None]:
    """Seconds of a run, milliseconds of strategy and of objectives per design; None where a trace has no times."""
    if trace.seconds is None or trace.strategy_s is None:
        return None, None, None
    seconds, designs = float(trace.seconds[-1]) if len(trace) else 0.0, max(len(trace), 1)
    return seconds, 1e3 * trace.strategy_s / designs, 1e3 * (seconds - trace.strategy_s) / designs
