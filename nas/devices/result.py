"""A device study as a whole: cases, exact answers, transfers, optima, published models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.devices.answers import Answer, Answers, answered
from nas.devices.binding_constraints import reasons
from nas.devices.cases import Cases
from nas.devices.minimax_design import Optimum, Universal, best_for_all, optima, universal
from nas.devices.models import ModelRow
from nas.devices.transfer import Transfer, transferred
from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class DeviceStudy:
    """Everything that is derived from the cases; `reasons` has a sentence per optimum, in their order."""

    cases: Cases
    answers: Answers
    transfer: Transfer
    optima: tuple[Optimum, ...]
    universal: Universal | None
    reasons: tuple[str, ...]

    @property
    def rows(self) -> tuple[Answer, ...]:
        """The answers, in the order of the cases."""
        return self.answers.answers

    def design_of(self) -> dict[int, int]:
        """The number, from 1, of each case's optimum; none for a case without a pick."""
        return {case: number for number, optimum in enumerate(self.optima, 1) for case in optimum.cases}


def studied(cases: Cases, report: Callable[[int], None]) -> DeviceStudy:
    """Solve every case and compare; `report` receives how many more architectures are settled.

    Raises:
        UsageError: a space that cannot be covered.
    """
    answers = answered(cases.cases, report)
    known = best_for_all(answers)
    transfer = transferred(answers.answers, [] if known is None else [known])
    found = optima(answers.answers)
    sentences = reasons(answers.answers, found, transfer)
    return DeviceStudy(cases, answers, transfer, found, universal(answers, transfer, known), tuple(sentences))


def perplexity_percent(nats: FloatArray | float) -> Any:
    """A difference of losses as the change of perplexity, %: 100·(exp(Δ) − 1)."""
    return 100.0 * np.expm1(nats)


def spread(study: DeviceStudy) -> dict[str, Any]:
    """How far the optima are from one another: over all ordered pairs of cases with picks, other devices' designs alone."""
    picked = np.array([answer.pick is not None for answer in study.rows])
    pairs = np.outer(picked, picked) & ~np.eye(len(picked), dtype=bool)
    within, t = study.transfer.within & pairs, study.transfer
    over = pairs & ~within
    design = study.design_of()
    same = sum(design[a] == design[b] for a, b in np.argwhere(pairs).tolist())
    return {
        "cases": len(picked),
        "answered": int(picked.sum()),
        "optima": len(study.optima),
        "pairs": int(pairs.sum()),
        "pairs_with_the_same_design": same,
        "pairs_over_a_limit": int(over.sum()),
        "median_percent_over": _statistic(np.median, 100 * t.violation[over]),
        "largest_percent_over": _statistic(np.max, 100 * t.violation[over]),
        "mean_regret_within_nats": _statistic(np.mean, t.regret[within]),
        "worst_regret_within_nats": _statistic(np.max, t.regret[within]),
        "cost": t.cost,
        "worst_pick_at_equal_cost_nats": _statistic(np.max, t.at_equal_cost[pairs]),
        "least_frontier_shared": _statistic(np.min, t.shared[pairs]),
        "mean_frontier_shared": _statistic(np.mean, t.shared[pairs]),
        "mean_frontier_at_equal_cost_nats": _statistic(np.mean, t.mean[pairs]),
        "worst_frontier_at_equal_cost_nats": _statistic(np.max, t.worst[pairs]),
    }


def _statistic(function: Callable[[Any], Any], values: FloatArray) -> float | None:
    known = values[np.isfinite(values)]
    return float(function(known)) if len(known) else None


Models = tuple[tuple[ModelRow, ...], ...]
