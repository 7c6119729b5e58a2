"""The outcome of a device study: answers, transfers, optima, why they differ, how far they are from one another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.problem.diagnosis import at_least
from plas_range.answers import Answer, Answers, answered
from plas_range.cases import Cases
from plas_range.models import ModelRow
from plas_range.transfer import Optimum, Transfer, Universal, best_for_all, optima, transferred, universal
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

CHANGES = {
    "depth": ("shallower", "deeper"),
    "n_full": ("fewer full layers", "more full layers"),
    "width": ("narrower", "wider"),
    "n_experts": ("fewer experts", "more experts"),
    "top_k": ("fewer experts per token", "more experts per token"),
    "expert_ffn_ratio": ("smaller FFN", "larger FFN"),
    "head_dim": ("narrower heads", "wider heads"),
    "query_dim": ("narrower queries", "wider queries"),
    "n_kv_heads": ("fewer KV heads", "more KV heads"),
}


def architecture(answer: Answer) -> Architectures:
    """The architecture of a case's pick."""
    assert answer.pick is not None
    return answer.case.problem.architectures(answer.pick.genotypes)


def changed(before: Architectures, after: Architectures) -> list[str]:
    """Axes on which two designs differ, in words with both values: `wider (2048 → 2304)`."""
    lines = []
    free = any(int(design.query_dim[0]) != int(design.width[0]) for design in (before, after))
    mixed = any(int(design.n_full[0]) != int(design.depth[0]) for design in (before, after))
    for axis, words in CHANGES.items():
        if (axis == "query_dim" and not free) or (axis == "n_full" and not mixed):
            continue
        old, new = (float(getattr(design, axis)[0]) for design in (before, after))
        if old != new:
            lines.append(f"{words[new > old]} ({old:.4g} → {new:.4g})")
    return lines


def reasons(answers: Sequence[Answer], optima: Sequence[Optimum], transfer: Transfer) -> list[str]:
    """A sentence per distinct optimum: the circumstances of its cases, and what differs from the commonest one."""
    several = len({answer.binding for answer in answers if answer.pick is not None}) > 1
    lines = [_circumstances(answers, optimum, binding=several) for optimum in optima]
    for i, other in enumerate(optima[1:], 1):
        axes = changed(architecture(answers[optima[0].cases[0]]), architecture(answers[other.cases[0]]))
        lines[i] = f"{', '.join(axes)}; {lines[i]}; {_moved(answers, transfer, optima[0].cases[0], other.cases)}"
    return lines


def _circumstances(answers: Sequence[Answer], optimum: Optimum, *, binding: bool) -> str:
    """The binding constraint, the ridge point, and the share of time in prefill, over the cases of an optimum."""
    members = [answers[i] for i in optimum.cases]
    limits = list(dict.fromkeys(" and ".join(answer.binding) or "no limit" for answer in members))
    verb = "binds" if len(limits) == 1 and " and " not in limits[0] else "bind"
    ridges = _range([answer.case.device.flop_per_byte for answer in members])
    times = [answer.case.problem.assess(architecture(answer)) for answer in members]
    shares = _range([100 * float(time["prefill_ms"][0] / time["total_ms"][0]) for time in times])
    what = f"{' or '.join(limits)} {verb}; " if binding else ""
    return f"{what}{ridges} FLOP/byte; prefill {shares} % of the time"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def _moved(answers: Sequence[Answer], transfer: Transfer, row: int, columns: Sequence[int]) -> str:
    """The other design in these cases: how far over which limit, or how much loss."""
    violation = transfer.violation[row, columns]
    if (violation > 0.0).all():
        metrics = dict.fromkeys(answers[i].case.budgets[int(transfer.missed[row, i])].metric for i in columns)
        return f"design 1 is {_percent(violation)} over {' or '.join(metrics)}"
    lost = transfer.regret[row, columns][violation <= 0.0]
    over = int((violation > 0.0).sum())
    missing = f", and misses a limit in {over} of {len(columns)}" if over else ""
    return f"design 1 loses {_nats(lost)} nats{missing}"


def _percent(shares: FloatArray) -> str:
    low, high = percent(float(shares.min())), percent(float(shares.max()))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _nats(values: FloatArray) -> str:
    low, high = f"{values.min():.3f}", f"{values.max():.3f}"
    return low if low == high else f"{low} to {high}"


def shortage(answer: Answer) -> str:
    """Why nothing fits a case: the limit whose least relaxation opens it, and by how much; or all of them together."""
    why = answer.diagnosis
    assert why is not None
    open_ = [r for r in why.relaxations if r.limit is not None and r.limit > r.budget.limit]
    if open_:
        least = min(open_, key=lambda r: (r.limit or 0.0) / r.budget.limit)
        assert least.limit is not None
        return f"{least.budget}, the least is {at_least(least.limit, 4)} ({percent(least.limit / least.budget.limit - 1)} % more)"
    if np.isfinite(why.together):
        limits = ", ".join(map(str, answer.case.budgets))
        return f"no single limit opens it: all need {percent(why.together)} % more: {limits}"
    return "no architecture can be evaluated"


def percent(share: float) -> str:
    """A share in per cent: whole from 10 on."""
    return f"{100 * share:,.0f}" if share >= 0.0995 else f"{100 * share:.2g}"


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
    best = best_for_all(answers)
    transfer = transferred(answers.answers, [] if best is None else [best])
    distinct = optima(answers.answers)
    sentences = reasons(answers.answers, distinct, transfer)
    return DeviceStudy(cases, answers, transfer, distinct, universal(answers, transfer, best), tuple(sentences))


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
    finite = values[np.isfinite(values)]
    return float(function(finite)) if len(finite) else None


Models = tuple[tuple[ModelRow, ...], ...]
