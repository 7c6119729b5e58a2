"""Picks: the architecture of lowest loss within the study's budgets and one more."""

from dataclasses import dataclass, replace

import numpy as np

from nas.dominance import rounded
from nas.evaluations import Evaluations, joined
from nas.objective import Budget
from nas.problem import Problem
from nas.questions import Question

BLOCK = 131_072


def best_row(evaluations: Evaluations, budget: Budget | None) -> int | None:
    """Row of the pick, or None when nothing is feasible.

    Ties, at 12 digits, go to the lower budgeted metric, the lower total_ms, the smaller genotype.
    """
    feasible = evaluations.feasible
    if budget is not None:
        feasible = feasible & (evaluations.metrics[budget.metric] <= budget.limit)
    rows = np.flatnonzero(feasible)
    if len(rows) == 0:
        return None
    loss = rounded(evaluations.metrics["loss"][rows])
    rows = rows[loss == loss.min()]
    keys = [evaluations.keys[rows], rounded(evaluations.metrics["total_ms"][rows])]
    if budget is not None:
        keys.append(rounded(evaluations.metrics[budget.metric][rows]))
    return int(rows[np.lexsort(tuple(keys))[0]])


@dataclass(frozen=True)
class PickRule:
    """A pick that can be kept while a space is enumerated block by block."""

    budget: Budget | None

    def better(self, old: Evaluations | None, block: Evaluations) -> Evaluations | None:
        """The pick among the old one and a block, as one row."""
        row = best_row(block, self.budget)
        if row is None:
            return old
        new = block[row : row + 1]
        if old is None:
            return new
        both = joined(old, new)
        chosen = best_row(both, self.budget)
        assert chosen is not None
        return both[chosen : chosen + 1]


@dataclass(frozen=True, eq=False)
class Pick:
    """A question with its answer, one row evaluated in the question's own conditions, or None."""

    question: Question
    answer: Evaluations | None


def answer(problem: Problem, evaluations: Evaluations, question: Question) -> Pick:
    """The pick among everything evaluated; under another vocabulary the shipped metrics are computed anew."""
    variant = problem.with_vocabulary(question.vocabulary)
    if variant.vocabulary == problem.vocabulary:
        row = best_row(evaluations, question.budget)
        return Pick(question, None if row is None else evaluations[row : row + 1])
    rule, best, usable = PickRule(question.budget), None, np.flatnonzero(evaluations.ok)
    own = {function.name for function in problem.functions}
    shipped = tuple(name for name in problem.metric_names if name not in own)
    for start in range(0, len(usable), BLOCK):
        block = evaluations[usable[start : start + BLOCK]]
        anew = variant.evaluate(block.genotypes, shipped).metrics
        best = rule.better(best, replace(block, metrics={**block.metrics, **anew}))
    return Pick(question, best)
