"""A run's log: evaluations in order, the batch of each, and results of failed rows that were tried again."""

from dataclasses import dataclass, replace

import numpy as np

from nas.problem.evaluations import Evaluations
from search_spaces.arrays import IntArray
from search_spaces.space import SearchSpace

KNOWN = -1  # the batch of results from before a run, which nobody is charged for


@dataclass(frozen=True)
class BatchRecord:
    """One ask of the strategy: rows asked and seconds of strategy and objectives."""

    batch: int
    asked: int
    strategy_s: float
    objectives_s: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """The content of a store: evaluations in order, the batch of each, and the batches."""

    evaluations: Evaluations
    batches: IntArray
    retried: tuple[IntArray, Evaluations]

    @property
    def known(self) -> Evaluations:
        """The results known before the run, its first rows."""
        return self.evaluations[slice(0, known_in(self.batches))]

    @property
    def charged(self) -> int:
        """Evaluations of the run itself."""
        return len(self.evaluations) - known_in(self.batches)


def known_in(batches: IntArray) -> int:
    """How many rows of a log, by the batch of each, were known before the run."""
    return int((batches == KNOWN).sum())


def final(told: Evaluations, retried: tuple[IntArray, Evaluations]) -> Evaluations:
    """The current values: the rows given to the strategy, failed ones replaced by their retries."""
    rows, found = retried
    if len(rows) == 0:
        return told
    reasons = list(told.reasons or ("",) * len(told))
    for row, reason in zip(rows.tolist(), found.reasons or ("",) * len(found), strict=True):
        reasons[row] = reason
    metrics = {name: column.copy() for name, column in told.metrics.items()}
    for name, column in metrics.items():
        column[rows] = found.metrics[name]
    return replace(told, metrics=metrics, reasons=tuple(reasons) if any(reasons) else None)


def holds(space: SearchSpace, found: Evaluations) -> bool:
    """Whether every genotype is one of the space, under its own key."""
    genes = found.genotypes.astype(np.int64)
    return bool(space.is_canonical(genes).all()) and np.array_equal(space.keys(genes), found.keys)
