"""Constraint handling: what a strategy is shown of violations, with the same numbers for all."""

from dataclasses import replace
from typing import Literal

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem

Handling = Literal["native", "penalty", "reject"]


def problem_as_seen(problem: Problem, handling: Handling) -> Problem:
    """The problem that a strategy is built on: without budgets unless it handles them itself."""
    return problem if handling == "native" else replace(problem, budgets=())


def as_seen(evaluations: Evaluations, handling: Handling, weight: float) -> Evaluations:
    """Evaluations as a strategy is told them.

    native: unchanged. penalty: every objective f becomes f + weight · V · max(|f|, 1), where
    V = Σ max(violation, 0). reject: an infeasible row is a failed one.
    """
    if handling == "native" or not evaluations.budgets:
        return evaluations
    violations = evaluations.violations
    if handling == "reject":
        over = np.flatnonzero((violations > 0).any(axis=1))
        told = list(evaluations.reasons or ("",) * len(evaluations))
        for row in over.tolist():
            told[row] = told[row] or "infeasible"
        return replace(evaluations, reasons=tuple(told), budgets=())
    excess = weight * np.maximum(violations, 0).sum(axis=1)
    metrics = dict(evaluations.metrics)
    for name in evaluations.objectives:
        metrics[name] = metrics[name] + excess * np.maximum(np.abs(metrics[name]), 1.0)
    return replace(evaluations, metrics=metrics, budgets=())
