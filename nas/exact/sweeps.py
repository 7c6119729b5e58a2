"""Budget sweeps: the pick at every limit of a range, from one frontier of loss and the swept metric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.objective import Budget, cost_of, is_rate, unit_of
from nas.problem.picks import PickRule
from objectives.device_columns import NONE, Figure
from objectives.quantities import quantity_in
from search_spaces.arrays import FloatArray

MOST = 100_000
FORM = "metric=first:last:step"


@dataclass(frozen=True, eq=False)
class Sweep:
    """A metric and its limits, ascending, (n,)."""

    metric: str
    limits: FloatArray


def parse_sweep(text: str, metrics: tuple[str, ...], figures: Mapping[str, Figure] = NONE) -> Sweep:
    """Return a sweep from `total_ms=20:500:20`; limits with or without their unit.

    Raises:
        UsageError: another form, an unknown metric, limits that are none.
    """
    metric, _, rest = (part.strip() for part in text.partition("="))
    parts = rest.split(":")
    if is_rate(metric):
        raise UsageError(f"sweep: expected a metric with an upper limit, got {metric}; sweep {cost_of(metric)}")
    if metric not in metrics or len(parts) != 3:
        raise UsageError(
            f"sweep: expected {FORM} with one of {', '.join(metrics)}, got {text!r}; write total_ms=20:500:20"
        )
    try:
        first, last, step = (float(quantity_in(unit_of(metric, figures), part.strip())) for part in parts)
    except ValueError as error:
        raise UsageError(f"sweep: {error}") from None
    count = np.floor((last - first) / step + 1e-9) + 1
    if not 1 <= count <= MOST:
        raise UsageError(f"sweep: expected {FORM} with 1 to {MOST:,} limits, got {text!r}; change first, last or step")
    return Sweep(metric, first + step * np.arange(int(count), dtype=np.float64))


def swept(sweep: Sweep, evaluations: Evaluations) -> Iterator[tuple[float, int | None]]:
    """Return each limit with the row of its pick as times are predicted, None if nothing fits.

    Only rows that no other beats in both loss and the metric can be picks.
    """
    rivals = replace(evaluations, objectives=tuple(dict.fromkeys(["loss", sweep.metric])))
    rows = frontier_rows(rivals)
    front = evaluations[rows]
    for limit in sweep.limits.tolist():
        row = PickRule(Budget(sweep.metric, limit), margin=False).row(front)
        yield limit, None if row is None else int(rows[row])
