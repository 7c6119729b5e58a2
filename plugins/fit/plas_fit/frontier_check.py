"""Whether a fit's uncertainty reaches the answer: the frontier and picks of a study under the law's draws."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.answer.design_words import describe
from nas.problem.evaluations import Evaluations, frontier_rows
from nas.problem.law_caveats import blind_axes
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import ENDS, Uncertainty, cost_among, uncertainty
from nas.search.assembly import Study
from objectives.loss_law.law import Law
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MOST = 50_000  # architectures, each under every draw
BUDGETS = 5


@dataclass(frozen=True, eq=False)
class Judged:
    """Every architecture of a study's space, evaluated under a law, and its losses under the law's draws."""

    study: Study
    law: Law
    found: Evaluations
    drawn: Uncertainty


def under_draws(study: Study, law: Law) -> Judged | str:
    """A study's space under a law's draws, or why it cannot be had."""
    problem = study.problem
    if problem.space.size > MOST:
        return (
            f"not said for spaces of more than {MOST:,} architectures ({problem.space.size:,}); name a smaller --space"
        )
    found = problem.evaluate(np.concatenate(list(problem.space.enumerate())))
    drawn = uncertainty(law, lambda rows: problem.architectures(found.genotypes[rows]), found)
    if drawn is None or len(drawn.rows) == 0:
        why = "without draws (--bootstraps 0)" if not law.draws else "as nothing is feasible, or no objective is a loss"
        return f"not said {why}"
    return Judged(study, law, found, drawn)


def picks_asked(judged: Judged) -> dict[str, BoolArray]:
    """The study's picks by label, and which of the feasible rows are within each; what nothing meets is no pick."""
    metrics, rows = judged.found.metrics, judged.drawn.rows
    picks = {}
    for question in judged.study.problem.queries:
        budget = question.budget
        within = np.ones(len(rows), dtype=bool) if budget is None else (metrics[budget.metric] <= budget.limit)[rows]
        if not question.baseline and within.any():
            picks[question.label] = within
    return picks


def frontier_check(judged: Judged | str) -> dict[str, Any]:
    """How much of the frontier and of the picks along it stays the same under the draws; a `reason` where that is unknown.

    jaccard: members that two frontiers share over members of either, of each draw's against the
    fit's. Per pick: share of draws that pick the same, and what its loss exceeds the best by, nats.
    alike: every draw orders all feasible designs as the fit does, so that no two of them can disagree on a pick; sees: the form's quantities.
    blind: axes that the law does not see; boundary: share of members at an end of each axis; outside: beyond the range that was fitted.
    """
    if isinstance(judged, str):
        return {"reason": judged}
    problem, law, found, drawn = judged.study.problem, judged.law, judged.found, judged.drawn
    members = frontier_rows(found)
    shared = [len(np.intersect1d(rows, members)) / len(np.union1d(rows, members)) for rows in drawn.frontiers()]
    low, high = np.quantile(shared, ENDS)
    genotypes, sizes = found.genotypes[members], problem.space.gene_sizes
    at_end = (genotypes == 0) | (genotypes == sizes - 1)
    outside = law.outside(problem.architectures(genotypes))
    second = cost_among(found.objectives)
    return {
        "study": f"{problem.space.name} space on {problem.scenario.device.name}",
        "objectives": list(found.objectives),
        "members": len(members),
        "draws": len(drawn.losses),
        "jaccard": {"mean": float(np.mean(shared)), "low": float(low), "high": float(high)},
        "alike": drawn.alike,
        "sees": [name for name in law.law_form.features if name != "tokens"],
        "budget": second,
        "picks": [_pick(problem, found, drawn, Budget(second, limit)) for limit in _limits(found, members, second)],
        "blind": list(blind_axes(problem.space, law)),
        "boundary": {gene: float(at_end[:, i].mean()) for i, gene in enumerate(problem.space.genes) if sizes[i] > 2},
        "outside": {name: float(flags.mean()) for name, flags in outside.items()},
    }


def cannot_disagree(check: Mapping[str, Any]) -> str:
    """Why samples of a law that agree are no evidence, of a frontier check that found them `alike`."""
    sees = f", which sees {check['sees'][0]} alone," if len(check["sees"]) == 1 else ""
    why = f"each orders all designs of {check['study']} alike, since this form{sees} can give no other answer"
    return f"the law's samples cannot disagree: {why}; their agreement is no evidence, and a regret of 0 says nothing"


def _limits(found: Evaluations, members: IntArray, metric: str) -> list[float]:
    """Budgets spread over the frontier's members, (BUDGETS,)."""
    values = np.sort(found.metrics[metric][members])
    return [float(values[round(share * (len(values) - 1))]) for share in np.linspace(0.1, 0.9, BUDGETS)]


def _pick(problem: Problem, found: Evaluations, drawn: Uncertainty, budget: Budget) -> dict[str, Any]:
    """The fit's pick within a budget, how often draws pick it, and its regret under them."""
    row = PickRule(budget, margin=False).row(found)  # as draws pick
    assert row is not None  # a member of the frontier meets the budget
    within = (found.metrics[budget.metric] <= budget.limit)[drawn.rows]
    losses, place = drawn.losses[:, within], int(np.searchsorted(drawn.rows[within], row))
    lost = losses[:, place] - losses.min(axis=1)
    return {
        "limit": budget.limit,
        "pick": describe(problem.architectures(found.genotypes[[row]])),
        "same": float((lost == 0).mean()),
        "regret": float(lost.mean()),
        "regret_high": float(np.quantile(lost, ENDS[1])),
    }


def expected_regret(judged: Judged) -> float:
    """Expected regret of a study's picks under its law's draws, nats, mean over picks."""
    predicted, truths = judged.found.metrics["loss"][judged.drawn.rows], judged.drawn.losses
    return float(regrets_of(truths, np.broadcast_to(predicted, truths.shape), [*picks_asked(judged).values()]).mean())


def regrets_of(truths: FloatArray, told: FloatArray, asked: list[BoolArray]) -> FloatArray:
    """Loss of what is told to be the best within each budget minus that of the true best, nats, (draws, picks)."""
    found = np.empty((len(truths), len(asked)))
    draws = np.arange(len(truths))
    for i, within in enumerate(asked):
        true = truths[:, within]
        found[:, i] = true[draws, told[:, within].argmin(axis=1)] - true.min(axis=1)
    return found
