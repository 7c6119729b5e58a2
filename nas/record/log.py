"""What a run's log says: evaluations in order, the batch of each, and what failed rows gave when tried again."""

from dataclasses import dataclass, replace

from nas.problem.evaluations import Evaluations
from search_spaces.arrays import IntArray


@dataclass(frozen=True)
class BatchRecord:
    """One ask of the strategy: rows asked and seconds of strategy and objectives."""

    batch: int
    asked: int
    strategy_s: float
    objectives_s: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """What a store holds: evaluations in order, the batch of each, and the batches."""

    evaluations: Evaluations
    batches: IntArray
    retried: tuple[IntArray, Evaluations]


def final(told: Evaluations, retried: tuple[IntArray, Evaluations]) -> Evaluations:
    """What is true now: the rows that the strategy was told, failed ones replaced by their retries."""
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
