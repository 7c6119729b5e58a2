"""The evaluations of one run in order: the only thing that measures look at."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from nas.problem.dominance import non_dominated
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
        kept: IntArray = candidates[non_dominated(self.values[candidates])]
        return kept
