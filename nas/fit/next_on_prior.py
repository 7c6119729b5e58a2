"""Chooses trainings that make the expected regret of a study's picks small, under a normal belief in the joint form's coordinates.

Of each pick, every design that a draw finds best stands against it: the difference of their losses is linear in the coordinates about their mean, and
trainings shrink its variance, whatever their losses turn out to be. Trainings are chosen one by one, then exchanged, so that the least of these
variances is left, each in the proportion of the regret that the draws lose to that design. Source: V-optimality (Fedorov 1972) of contrasts.
"""

from collections.abc import Callable

import numpy as np

from nas.errors import UsageError
from nas.fit.frontier_check import Judged
from nas.fit.next_designs import Asked, Proposal, affordable, candidates_of, proposal_of, trainable
from nas.fit.trainings import Trainings, counts_of, on_counts
from nas.fit.worth import picks_asked
from nas.search.assembly import Study
from objectives.evidence.joint_form import Quantities, trainings
from objectives.evidence.posterior import Belief
from objectives.fitting.design import Plan, optimal, table_of
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

PRIOR_GOALS = ("regret", "cost")  # of the study's picks, or that per training FLOP
LEAST = 1e-12  # nats² of a difference


def proposed(
    asked: Asked, study: Study, law: Law, belief: Belief, judged: Judged | str, trained: FloatArray | None
) -> Proposal:
    """What to train next: for the picks, or for the coordinates where these cannot be judged; `trained` are token counts of a table.

    Raises:
        UsageError: more designs than there are, or none within the budgets.
    """
    candidates = candidates_of(study.problem.space, np.random.default_rng(asked.seed))
    every = on_counts(trainable(asked, study, law, candidates), counts_of(law, trained))
    if asked.n > len(every):
        raise UsageError(
            f"next: expected at most {len(every):,} designs, as many as there are, got {asked.n}; ask for fewer"
        )
    plan_of = _planner(asked, belief, None if isinstance(judged, str) else contrasts(judged, belief))
    if asked.flops is None:
        found = plan_of(every)
        return proposal_of(every[found.rows], found, law)
    try:
        plans = affordable(every, asked.flops, asked.n, plan_of)
    except ValueError as error:
        raise UsageError(str(error)) from None
    within, found = min(plans, key=lambda pair: pair[1].shrink)
    return proposal_of(within[found.rows], found, law)


def contrasts(judged: Judged, belief: Belief) -> FloatArray:
    """Differences between each pick and what a draw finds best, as slopes in whitened coordinates, (m, k + 1).

    Their squares add up to the regret that the draws lose to these designs; none where no draw loses anything.
    """
    losses, told = judged.drawn.losses, judged.found.metrics["loss"][judged.drawn.rows]
    found = [np.zeros((0, len(belief.mean)))]
    for within in picks_asked(judged).values():
        rows = np.flatnonzero(within)
        pick, best = int(rows[told[rows].argmin()]), rows[losses[:, rows].argmin(axis=1)]
        lost = losses[:, pick] - losses[np.arange(len(losses)), best]
        others, place = np.unique(best, return_inverse=True)
        share = np.bincount(place, np.maximum(lost, 0.0)) / len(losses)
        found.append(_contrasts(judged, belief, pick, others[share > 0], share[share > 0]))
    return np.concatenate(found)


def _contrasts(judged: Judged, belief: Belief, pick: int, others: IntArray, share: FloatArray) -> FloatArray:
    rows = judged.drawn.rows[np.append(pick, others)]
    designs = judged.study.problem.architectures(judged.found.genotypes[rows])
    slopes = whitened(belief, quantities(designs, judged.law.tokens_of(designs)))
    apart = slopes[1:] - slopes[0]
    variance = (apart**2).sum(axis=1)
    return np.asarray(apart * np.sqrt(share / np.maximum(variance, LEAST))[:, None])


def whitened(belief: Belief, of: Quantities) -> FloatArray:
    """Derivatives of losses by coordinates of unit covariance, (n, k + 1)."""
    return np.asarray(belief.slopes(of) @ np.linalg.cholesky(belief.covariance))


def quantities(architectures: Architectures, tokens: float | FloatArray) -> Quantities:
    """What the joint form reads of architectures trained on tokens."""
    table = table_of(architectures, tokens)
    return trainings("", "", table, np.zeros(len(table))).of


def _planner(asked: Asked, belief: Belief, aims: FloatArray | None) -> Callable[[Trainings], Plan]:
    """Plans of `asked.n` trainings; `shrink` is what is left of the aims' variances, or of the coordinates' sds, relative to now."""
    size = len(belief.mean)
    aimed = aims is not None and len(aims) > 0
    targets = np.linalg.qr(aims)[1] if aimed and aims is not None else None

    def plan_of(within: Trainings) -> Plan:
        assert within.tokens is not None  # a law of the joint form has tokens
        rows = whitened(belief, quantities(within.architectures, within.tokens)) / belief.scale
        cost = within.flops if asked.goal == "cost" else None
        chosen = optimal(rows, asked.n, np.eye(size), targets, cost)
        after = np.linalg.inv(np.eye(size) + rows[chosen].T @ rows[chosen])
        left = after.trace() / size if targets is None else np.trace(targets @ after @ targets.T) / (targets**2).sum()
        return Plan(chosen, (asked.goal,) * asked.n, np.zeros(asked.n, dtype=np.int64), float(left))

    return plan_of
