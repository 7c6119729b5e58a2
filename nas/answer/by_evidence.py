"""What published trainings say of a pick of a law that does not say how sure it is: the law `evidence` on it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.answer.parts_of_gain import dense_twin
from nas.answer.witness import evidence_beside
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Baseline
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS, Difference, differences, has_doubt
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures


@dataclass(frozen=True, eq=False)
class ByEvidence:
    """A pick under the law `evidence`: how its loss differs from a published model's, or from that of the law's own best.

    baseline: the model that the pick is as fast as, "" for the law's own best; best and difference: that design and the
    difference from it, None where it is the pick; experts: from the dense design of as many active parameters,
    None of a dense pick; more_active: of the same design with 2K from it, None where there is none.
    """

    baseline: str
    best: Architectures | None
    design: Architectures
    difference: Difference | None
    experts: Difference | None
    more_active: Difference | None


def by_evidence(
    problem: Problem, baselines: Sequence[Baseline], picks: Sequence[Pick], found: Evaluations
) -> ByEvidence | None:
    """The pick as fast as the first published model with one, else that of your budgets; None of a law that says itself how sure it is."""
    law, own = problem.scenario.law, {metric.name for metric in problem.functions}
    if has_doubt(law) or not set(found.objectives) & set(FROM_LOSS) - own:
        return None
    evidence = evidence_beside(law)
    for known in baselines:
        for pick in picks:
            if pick.question.baseline == known.label and pick.answer is not None:
                design = problem.architectures(pick.answer.genotypes)
                return ByEvidence(known.label, None, design, *_differences(evidence, design, known.architecture))
    if not picks or picks[0].answer is None:
        return None
    answer, row = picks[0].answer, _own_best(problem, evidence, found)
    design, best = (problem.architectures(each) for each in (answer.genotypes, found.genotypes[[row]]))
    difference, *of_experts = _differences(evidence, design, best)
    if int(answer.keys[0]) == int(found.keys[row]):
        return ByEvidence("", None, design, None, *of_experts)
    return ByEvidence("", best, design, difference, *of_experts)


def _own_best(problem: Problem, evidence: Law, found: Evaluations) -> int:
    """The row of its own pick within the budgets, among what was evaluated."""
    loss, rows = np.full(len(found), np.inf), np.flatnonzero(found.feasible)
    loss[rows] = evidence.loss(problem.architectures(found.genotypes[rows]))
    row = PickRule(None).row(replace(found, metrics={**found.metrics, "loss": loss}))
    assert row is not None
    return row


def _differences(
    evidence: Law, design: Architectures, other: Architectures
) -> tuple[Difference | None, Difference | None, Difference | None]:
    """From another design, from the dense one of as many active parameters, and with 2K from K."""
    k, e = design.top_k, int(design.n_experts[0])
    dense = dense_twin(design)
    more = replace(design, top_k=np.minimum(2 * k, e))
    found = differences(
        evidence, Architectures.concatenate([design, more]), Architectures.concatenate([other, dense, design])
    )
    return found[0][0], found[0][1] if e > 1 else None, found[1][2] if 2 * int(k[0]) < e else None
