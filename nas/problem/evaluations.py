"""Evaluated architectures as columns, and the rule of dominance applied to them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from nas.problem.objective import Budget
from search_spaces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Genotypes with their metrics; a failed row has a reason and NaN metrics.

    genotypes (n, g), keys (n,), metrics name → (n,), reasons (n,) of str ("" is evaluated).
    """

    genotypes: IntArray
    keys: IntArray
    metrics: dict[str, FloatArray]
    reasons: tuple[str, ...] | None
    objectives: tuple[str, ...]
    budgets: tuple[Budget, ...]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def values(self) -> FloatArray:
        """Objective values, (n, m), all minimised; NaN where failed."""
        return np.stack([self.metrics[name] for name in self.objectives], axis=1)

    @property
    def violations(self) -> FloatArray:
        """value/limit − 1 per budget, (n, budgets); feasible at ≤ 0."""
        columns = [budget.violation(self.metrics[budget.metric]) for budget in self.budgets]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0))

    @property
    def ok(self) -> BoolArray:
        """Which rows were evaluated without failing."""
        if self.reasons is None:
            return np.ones(len(self), dtype=bool)
        return np.fromiter((not reason for reason in self.reasons), dtype=bool, count=len(self))

    @property
    def feasible(self) -> BoolArray:
        """Evaluated and within every budget."""
        within: BoolArray = (self.violations <= 0.0).all(axis=1) & self.ok
        return within

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Self:
        metrics = {name: column[rows] for name, column in self.metrics.items()}
        reasons = self.reasons
        if reasons is not None:
            reasons = reasons[rows] if isinstance(rows, slice) else tuple(np.asarray(reasons, dtype=object)[rows])
        return type(self)(self.genotypes[rows], self.keys[rows], metrics, reasons, self.objectives, self.budgets)


def distinct(parts: Iterable[Evaluations]) -> Evaluations:
    """The rows of all parts, in order, each architecture once; of one part at least."""
    rows = reduce(joined, parts)
    return rows[np.sort(np.unique(rows.keys, return_index=True)[1])]


def joined(first: Evaluations, second: Evaluations) -> Evaluations:
    """The rows of both."""
    metrics = {name: np.concatenate([first.metrics[name], second.metrics[name]]) for name in first.metrics}
    genotypes, keys = (
        np.concatenate(pair) for pair in ((first.genotypes, second.genotypes), (first.keys, second.keys))
    )
    reasons = None
    if first.reasons is not None or second.reasons is not None:
        reasons = (first.reasons or ("",) * len(first)) + (second.reasons or ("",) * len(second))
    return Evaluations(genotypes, keys, metrics, reasons, first.objectives, first.budgets)
