"""Choosing among evaluated architectures: frontier, best, knee, diverse:K, budget:EXPR."""

from collections.abc import Callable

import numpy as np

from nas.errors import UsageError
from nas.files.faults import unknown
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.indicators import Scale
from nas.problem.objective import Budget, costs, limit_on_cost, rate_of, unit_of
from nas.problem.picks import best_row
from nas.problem.uncertainty import cheapest, cost_among
from nas.study.budget_parser import split_budget
from nas.study.metrics import limit_of
from nas.terminal.program import command
from objectives.scenario import Workload
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.axes_schema import CAPABILITIES

Groups = Callable[[IntArray], IntArray]
FORMS = "frontier, best, knee, diverse:K or budget:metric=limit"


def select(
    evaluations: Evaluations, how: str, scale: Scale, workload: Workload, groups: Groups | None = None
) -> IntArray:
    """Rows chosen by `how`, in frontier order; none when nothing is feasible. `workload` is what the metrics are of.

    groups: of frontier rows, the group that each is not told apart in; then the choice is among the cheapest of each.

    Raises:
        UsageError: an unknown form.
    """
    check_form(how)
    kind, _, rest = how.partition(":")
    if groups is not None:
        limit = parse_budget(rest, tuple(evaluations.metrics), workload) if kind == "budget" else None
        rows = _of_each_step(evaluations, limit, groups)
        if limit is not None or how == "best":
            return rows[:1]
        frontier = frontier_rows(evaluations)
        return _among(evaluations, frontier[np.isin(frontier, rows)], how, scale)
    if kind == "budget":
        return _some(best_row(evaluations, parse_budget(rest, tuple(evaluations.metrics), workload)))
    if how == "best":
        return _some(best_row(evaluations, None))
    return _among(evaluations, frontier_rows(evaluations), how, scale)


def _of_each_step(evaluations: Evaluations, limit: Budget | None, groups: Groups) -> IntArray:
    """The cheapest frontier row of each group that is told apart, within a limit, from the lowest loss on."""
    rows = frontier_rows(evaluations)
    rows = rows if limit is None else rows[evaluations.metrics[limit.metric][rows] <= limit.limit]
    cost, loss = evaluations.metrics[cost_among(evaluations.objectives)], evaluations.metrics["loss"]
    return rows[cheapest(groups(rows), cost[rows], loss[rows])] if len(rows) else rows


def _among(evaluations: Evaluations, rows: IntArray, how: str, scale: Scale) -> IntArray:
    """All frontier rows, their knee or a diverse few."""
    if len(rows) == 0 or how == "frontier":
        return rows
    kind, _, rest = how.partition(":")
    points = scale.normalise(evaluations.values[rows])
    return rows[[knee(points)]] if kind == "knee" else rows[np.sort(diverse(points, int(rest)))]


def check_form(how: str) -> None:
    """Refuse an unknown form before anything is read.

    Raises:
        UsageError: with the known forms.
    """
    kind, _, rest = how.partition(":") if isinstance(how, str) else ("", "", "")
    counted = kind == "diverse" and rest.isascii() and rest.isdigit() and int(rest) > 0
    if how not in ("frontier", "best", "knee") and not (kind == "budget" and rest) and not counted:
        raise UsageError(f"select: expected {FORMS}, got {how!r}; choose one")


def parse_budget(text: str, metrics: tuple[str, ...], workload: Workload) -> Budget:
    """A budget from `metric=limit`, `metric<=limit` or `rate>=limit`, the limit with or without its unit.

    Of a rate it is the limit on the cost that a rate of this workload is over.

    Raises:
        UsageError: an unknown metric or a limit that is none.
    """
    try:
        metric, limit = split_budget(text)
        if metric in CAPABILITIES:
            raise ValueError(
                f"{metric}: expected a metric, got a limit that every design of a space is within; give it to {command('run')}"
            )
        rate = rate_of(metric, workload)
        if metric not in metrics and (rate is None or rate.cost not in metrics):
            known = (*metrics, *(name for name, cost in costs().items() if cost in metrics and name not in metrics))
            raise ValueError(f"{unknown('a metric', metric, known)}")
        number = limit_of(metric, unit_of(metric, workload.figures), limit)
        return limit_on_cost(metric, number, workload)
    except ValueError as error:
        raise UsageError(f"budget: {error}") from None


def _some(row: int | None) -> IntArray:
    return np.array([] if row is None else [row], dtype=np.int64)


def knee(points: FloatArray) -> int:
    """Row of (n, m) farthest below the plane through the points that are best in each objective.

    Ties, and a frontier without a plane, go to the row nearest the ideal, then to the first.
    """
    corners = points[[int(np.lexsort((points.sum(axis=1), points[:, i]))[0]) for i in range(points.shape[1])]]
    try:
        normal = np.linalg.solve(corners, np.ones(len(corners)))
    except np.linalg.LinAlgError:
        normal = np.ones(len(corners))
    if not np.isfinite(normal).all() or (normal < 0).any():
        normal = np.ones(len(corners))
    below = (1.0 - points @ normal) / np.linalg.norm(normal)
    return int(np.lexsort((points.sum(axis=1), -np.round(below, 12)))[0])


def diverse(points: FloatArray, k: int) -> IntArray:
    """k rows of (n, m): those best in each objective, then greedily the farthest from all chosen."""
    chosen: list[int] = []
    for i in range(points.shape[1]):
        end = int(np.lexsort((points.sum(axis=1), points[:, i]))[0])
        chosen += [end] if end not in chosen else []
    chosen = chosen[:k]
    nearest = np.min([np.linalg.norm(points - points[c], axis=1) for c in chosen], axis=0)
    while len(chosen) < min(k, len(points)):
        nearest[chosen] = -1.0
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, np.linalg.norm(points - points[farthest], axis=1))
    return np.array(chosen, dtype=np.int64)
