"""Fidelity steps: every design is evaluated cheaply first, and the best of each step alone go on to the next."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from moocore import pareto_rank

from nas.problem.evaluations import crowding_distance
from nas.problem.objective import Objective
from nas.record.database import Step, Steps
from search_spaces.arrays import BoolArray, FloatArray, IntArray

STOPPED = "stopped: "  # how the reason of a design begins that was not among the best of a step


class SuccessiveHalving:
    """Who goes on, of the designs that end a step of a metric.

    Of all that have ended it in this run so far, those judged now included, the best share `keep`: within budgets first, then by
    Pareto rank over all objectives, of one rank the least crowded first. Whoever is stopped stays so.

    Source: Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", in its stopping form; Schmucker et al.
    2021, "Multi-objective Asynchronous Successive Halving", for the order under several objectives.
    """

    def __init__(self, metric: Objective, steps: Steps, logged: Collection[int]) -> None:
        self.metric, self.steps = metric, steps
        self.ended: dict[float, list[Step]] = {fidelity: [] for fidelity in metric.fidelities[:-1]}
        self.reached: dict[int, int] = {}  # place of the fidelity that a design under way is evaluated at
        self.stopped: dict[int, str] = {}
        for step in steps.read():
            if step.key in logged and step.fidelity in self.ended:
                self.ended[step.fidelity].append(step)

    def at(self, key: int) -> Objective:
        """The metric at the fidelity that a design has come to."""
        return self.metric.at(self.metric.fidelities[self.reached.get(key, 0)])

    def last(self, key: int) -> bool:
        """Whether a design is not judged any more: stopped, or at the full fidelity."""
        return key in self.stopped or self.reached.get(key, 0) == len(self.metric.fidelities) - 1

    def judge(self, keys: Sequence[int], values: FloatArray, points: FloatArray, within: BoolArray) -> list[int]:
        """Those of designs that have ended the same step that go on; the others are stopped from now on.

        Args:
            keys: of the designs, (n,).
            values: of the metric, (n,).
            points: of all objectives on their scales, (n, m), less is better.
            within: whether a design holds the budgets that can be told, (n,).
        """
        fidelity = self.at(keys[0]).fidelity
        assert fidelity is not None
        before = [step for step in self.ended[fidelity] if step.key not in keys]
        every = np.concatenate(
            [np.array([step.point for step in before]).reshape(len(before), points.shape[1]), points]
        )
        held = np.concatenate([np.array([step.within for step in before], dtype=bool), within])
        places = best_first(every, held)[len(before) :]
        most = math.ceil(round(self.metric.keep * len(every), 9))
        judged = [
            Step(key, fidelity, float(value), tuple(point), bool(holds), int(place) + 1, len(every), bool(place < most))
            for key, value, point, holds, place in zip(keys, values, points.tolist(), within, places, strict=True)
        ]
        self.steps.add(judged)
        self.ended[fidelity] = before + judged
        for step in judged:
            if step.goes_on:
                self.reached[step.key] = self.reached.get(step.key, 0) + 1
            else:
                self.stopped[step.key] = self._reason(step)
        return [step.key for step in judged if step.goes_on]

    def _reason(self, step: Step) -> str:
        reached = f"{self.metric.name} {step.value:.6g} at {step.fidelity:.12g}"
        return f"{STOPPED}{reached} (place {step.place} of {step.designs})"

    def leave(self, key: int) -> None:
        """Forget how far a design is that is evaluated now."""
        self.reached.pop(key, None)
        self.stopped.pop(key, None)


def best_first(points: FloatArray, within: BoolArray) -> IntArray:
    """The place of each design, 0 the best, (n,): within budgets first, by Pareto rank, of one rank the least crowded first, then the earliest."""
    order: list[int] = []
    for rows in (np.flatnonzero(within), np.flatnonzero(~within)):
        ranks = pareto_rank(points[rows]) if len(rows) else rows
        for rank in np.unique(ranks):
            front = rows[ranks == rank]
            order += front[np.argsort(-crowding_distance(points[front]), kind="stable")].tolist()
    places = np.empty(len(points), dtype=np.int64)
    places[order] = np.arange(len(points))
    return places
