"""The best architectures known so far, evaluated whole."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from nas.exact.decomposition.dominance_lookup import Table
from nas.problem.dominance import frontier_rows
from nas.problem.evaluations import Evaluations, distinct
from search_spaces.arrays import BoolArray, FloatArray


class Incumbents:
    """Feasible non-dominated architectures; ties are all kept.

    New ones wait until there are enough to renew the table or, rarer, the frontier. `elsewhere` are objective values,
    (k, m), of feasible architectures of another space: they are not among the known, but whoever is behind them is behind.
    """

    def __init__(self, elsewhere: FloatArray | None = None) -> None:
        self.front: Evaluations | None = None
        self.waiting: list[Evaluations] = []
        self.unseen = 0
        self.elsewhere = elsewhere
        self.table = None if elsewhere is None else Table(elsewhere)

    def add(self, evaluations: Evaluations) -> None:
        """Take in evaluated architectures."""
        kept = evaluations[frontier_rows(evaluations)]
        if len(kept) == 0:
            return
        self.waiting.append(kept)
        self.unseen += len(kept)
        known = 0 if self.front is None else len(self.front)
        if self.table is None or self.front is None or sum(map(len, self.waiting)) > max(2000, known // 2):
            self.settle()
        elif self.unseen > max(200, known // 50):
            self.table.add(np.concatenate([part.values for part in self.waiting]))
            self.unseen = 0

    def settle(self) -> Evaluations | None:
        """The frontier of all that was taken in, in file order; None when nothing was feasible."""
        if self.waiting:
            rows = distinct([*([] if self.front is None else [self.front]), *self.waiting])
            self.front = rows[frontier_rows(rows)]
            self.table = self._table_of(self.front)
        self.waiting, self.unseen = [], 0
        return self.front

    def _table_of(self, front: Evaluations) -> Table:
        return Table(front.values if self.elsewhere is None else np.concatenate([front.values, self.elsewhere]))

    def noted(self) -> dict[str, Any]:
        """The state that `restored` needs, as plain content."""
        waiting = [key for part in self.waiting for key in part.keys.tolist()]
        return {
            "front": [] if self.front is None else self.front.keys.tolist(),
            "waiting": waiting,
            "unseen": self.unseen,
        }

    @classmethod
    def restored(
        cls,
        note: Mapping[str, Any],
        evaluated: Callable[[list[int]], Evaluations],
        elsewhere: FloatArray | None = None,
    ) -> Self:
        """The incumbents as they were noted, besides what is known elsewhere; `evaluated` gives the architectures of keys."""
        known = cls(elsewhere)
        if note["front"]:
            known.front = evaluated(note["front"])
            known.table = known._table_of(known.front)
        if note["waiting"] and known.table is not None:
            known.waiting, known.unseen = [evaluated(note["waiting"])], note["unseen"]
            known.table.add(known.waiting[0].values[: len(note["waiting"]) - known.unseen])
        return known

    def behind(self, values: list[FloatArray]) -> BoolArray:
        """Which points (objective by objective, each (n,)) an incumbent beats in every objective."""
        if self.table is None:
            return np.zeros(len(values[0]), dtype=bool)
        return self.table.behind(values)
