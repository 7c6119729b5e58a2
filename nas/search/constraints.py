"""Constraint handling: which a strategy gets, and what it is shown of violations, with the same numbers for all."""

from dataclasses import replace
from typing import Literal

import numpy as np

from nas.errors import UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.search.discovery import able_to
from nas.search.strategy import Traits
from nas.study.configuration import StudyConfig

ConstraintHandling = Literal["native", "penalty", "reject"]


def handling_of(config: StudyConfig, traits: Traits, problem: Problem, notices: list[str]) -> ConstraintHandling:
    """Native where the strategy can, else penalty, with a notice; an explicit native that cannot be is refused."""
    able = traits.constraints or not problem.budgets
    if not traits.takes_evaluations and config.constraints not in (None, "native"):
        raise UsageError(
            f"constraints: expected native with {config.algo}, which covers the whole space, got {config.constraints}; drop it"
        )
    if config.constraints is not None and (able or config.constraints != "native"):
        return config.constraints
    if able:
        return "native"
    if config.constraints == "native":
        raise UsageError(
            f"constraints: expected penalty or reject with {config.algo}, which has no constraints of its own, got native; "
            f"choose one, or a strategy that has: {', '.join(able_to('constraints'))}"
        )
    notices.append(
        f"{config.algo} has no constraints of its own: budgets become a penalty of weight {config.penalty_weight:g}; "
        "--constraints reject is the alternative"
    )
    return "penalty"


def penalised_problem(problem: Problem, handling: ConstraintHandling) -> Problem:
    """The problem that a strategy is built on: without budgets unless it handles them itself."""
    return problem if handling == "native" else replace(problem, budgets=())


def penalised(evaluations: Evaluations, handling: ConstraintHandling, weight: float) -> Evaluations:
    """Evaluations as the strategy receives them.

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
