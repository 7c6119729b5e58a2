"""Why nothing fits: closest misses, the budgets that bind, and what relaxing each would open."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import EXTRAPOLATION, Budget

MISSES = 3  # shown as the closest
MEMORY = ("memory_gb", "resident_gb")


@dataclass(frozen=True)
class Relaxation:
    """The smallest limit of one budget, the others kept, at which something becomes feasible.

    `limit` is None when no relaxation of this budget alone suffices; `opens` counts the
    architectures feasible at `limit`, `met_by` those that meet this budget (None: not counted).
    """

    budget: Budget
    limit: float | None
    opens: int
    met_by: int | None


@dataclass(frozen=True)
class SmallerVocabulary:
    """A vocabulary in place of the study's `own` at which `opens` designs (None: not counted) fit, at equal text of so many tokens read and written."""

    own: int
    size: int
    opens: int | None
    read: int
    written: int


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """`closest` rows miss by the smallest largest violation; `together` relaxes every budget by one factor.

    `vocabulary`: the largest smaller one tried at which something fits.
    `least`: what the smallest design takes of each budgeted memory that none is within, GB. `outside`: the design, one row, within the
    limits and least far outside of the law's evidence, where none within them is inside.
    """

    examined: int
    failed: int
    relaxations: tuple[Relaxation, ...]
    closest: Evaluations
    together: float
    vocabulary: SmallerVocabulary | None = None
    least: tuple[tuple[str, float], ...] = ()
    outside: Evaluations | None = None

    @property
    def inside(self) -> bool:
        """Whether a design may be inside of the law's evidence, whatever the limits."""
        return any(each.budget.of_evidence and each.met_by != 0 for each in self.relaxations)


def diagnose(evaluations: Evaluations) -> Diagnosis:
    """Explain infeasibility over the given architectures; failed ones are left out."""
    usable = evaluations[evaluations.ok]
    violations = usable.violations
    relaxations = tuple(_relaxed(usable, violations, i) for i in range(len(usable.budgets)))
    together = float(violations.max(axis=1, initial=-np.inf).min()) if len(usable) else float("inf")
    misses = closest(usable)
    failed, least = len(evaluations) - len(usable), _least(usable) if len(usable) else ()
    return Diagnosis(len(usable), failed, relaxations, misses, together, least=least, outside=_nearest_outside(usable))


def _nearest_outside(usable: Evaluations) -> Evaluations | None:
    """Of designs within the limits that one least far outside of the law's evidence, of equal ones of the lowest loss; None where none is, or one is inside."""
    limits = tuple(budget for budget in usable.budgets if not budget.of_evidence)
    within = np.flatnonzero(replace(usable, budgets=limits).feasible)
    if len(limits) == len(usable.budgets) or not len(within) or usable.feasible.any():
        return None
    keys = (usable.keys[within], usable.metrics["loss"][within], usable.metrics[EXTRAPOLATION][within])
    return usable[within[np.lexsort(keys)[:1]]]


def _least(usable: Evaluations) -> tuple[tuple[str, float], ...]:
    """Each budgeted memory that none of these designs is within, with the least that one of them takes."""
    return beyond(usable.budgets, lambda metric: float(usable.metrics[metric].min()))


def beyond(budgets: Sequence[Budget], least: Callable[[str], float]) -> tuple[tuple[str, float], ...]:
    """The budgeted memories whose least value is over its limit, with that value."""
    found = ((b.metric, least(b.metric), b.limit) for b in budgets if b.metric in MEMORY)
    return tuple((metric, value) for metric, value, limit in found if value > limit)


def closest(evaluations: Evaluations) -> Evaluations:
    """The few rows of the smallest largest violation, the closest first; of equal ones the smaller key."""
    worst = evaluations.violations.max(axis=1, initial=-np.inf)
    return evaluations[np.lexsort((evaluations.keys, worst))[:MISSES]]


def _relaxed(usable: Evaluations, violations: np.ndarray[tuple[int, int], np.dtype[np.float64]], i: int) -> Relaxation:
    budget = usable.budgets[i]
    others = (np.delete(violations, i, axis=1) <= 0).all(axis=1)
    values = usable.metrics[budget.metric]
    met = int((violations[:, i] <= 0).sum())
    if not others.any():
        return Relaxation(budget, None, 0, met)
    limit = float(values[others].min())
    return Relaxation(budget, limit, int((others & (values <= limit)).sum()), met)


def lines(diagnosis: Diagnosis, whole_space: bool) -> list[str]:
    """The diagnosis in sentences."""
    scope = (
        f"all {diagnosis.examined:,} architectures of the space"
        if whole_space
        else f"the {diagnosis.examined:,} architectures evaluated"
    )
    if diagnosis.examined == diagnosis.failed == 0:
        return ["No architecture satisfies the budgets, and none is at hand to say how far they are missed."]
    if diagnosis.examined == 0:
        return [f"None of the {diagnosis.failed:,} designs evaluated has values; the reasons are in evaluations.csv."]
    if whole_space and diagnosis.together <= 0:
        met = [f"  {_miss(diagnosis.closest, row)}" for row in range(len(diagnosis.closest))]
        return ["The search evaluated nothing within the budgets, but the space holds designs that are:", *met]
    sentences = [f"No architecture satisfies the budgets, among {scope}."]
    sentences += [f"  {r.budget}: {_relaxation(r)}" for r in diagnosis.relaxations]
    users = all(r.budget.metric != EXTRAPOLATION for r in diagnosis.relaxations)  # what a law covers no user relaxes
    if users and np.isfinite(1000 * diagnosis.together) and len(diagnosis.relaxations) > 1:
        sentences.append(f"  Relaxing every budget by {_opening(diagnosis):.1f} % opens the first design.")
    sentences += [
        f"  No design {'of the space' if whole_space else 'evaluated'} takes less than {value:.4g} GB ({metric}): for less "
        "give a space of your own with narrower and shallower designs (--space FILE)."
        for metric, value in diagnosis.least
    ]
    if diagnosis.vocabulary is not None:
        sentences.append(f"  {_smaller(diagnosis.vocabulary)}")
    sentences.append("Closest misses:")
    sentences += [f"  {_miss(diagnosis.closest, row)}" for row in range(len(diagnosis.closest))]
    return sentences


def _smaller(v: SmallerVocabulary) -> str:
    fit = "designs fit" if v.opens is None else "1 design fits" if v.opens == 1 else f"{v.opens:,} designs fit"
    return (
        f"A vocabulary of {v.size:,} in place of {v.own:,}: {fit} within the budgets as they are, at equal text, "
        f"{v.read:,} of its tokens in and {v.written:,} out."
    )


def _opening(diagnosis: Diagnosis) -> float:
    """Per cent, to a tenth and rounded up, by which relaxing every budget opens the closest miss."""
    tenths, step = math.ceil(1000 * diagnosis.together), 1
    while not _opened(diagnosis.closest, tenths / 10):
        tenths, step = tenths + step, 2 * step
    return tenths / 10


def _opened(closest: Evaluations, percent: float) -> bool:
    relaxed = tuple(replace(budget, limit=budget.limit * (1 + percent / 100)) for budget in closest.budgets)
    return bool(replace(closest, budgets=relaxed).feasible.any())


def _relaxation(r: Relaxation) -> str:
    alone = "" if r.met_by is None else f" ({r.met_by:,} meet it alone)"
    if r.budget.of_evidence:
        return f"only {r.met_by:,} designs are" if r.met_by else f"no design within the limits is{alone}"
    if r.limit is None:
        return f"relaxing it alone opens nothing{alone}"
    if r.limit <= r.budget.limit:
        return f"not binding{alone}"
    opens = "1 design" if r.opens == 1 else f"{r.opens:,} designs"
    at = f"{r.budget.with_unit(r.limit, at_least(r.limit))}{r.budget.in_rates(r.limit)}"
    return f"binds; at {at} ({_more(r.limit / r.budget.limit - 1)}) it opens {opens}{alone}"


def _more(share: float) -> str:
    """By how much something is over a limit: `+3.1 %`, `24 times`."""
    return f"{100 * share:+.1f} %" if share < 1.0 else f"{1.0 + share:.3g} times"


def at_least(limit: float, digits: int = 6) -> str:
    """A limit to some digits, rounded up, so that typing it opens the design."""
    exact = Decimal(limit)
    up = exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), rounding=ROUND_CEILING)
    return f"{float(up):.{max(digits, 6)}g}"


def _miss(closest: Evaluations, row: int) -> str:
    over = [
        f"{value:.3g} times outside of the law's evidence"
        if budget.of_evidence and (value := float(closest.metrics[budget.metric][row])) > budget.limit
        else "inside the law's evidence"
        if budget.of_evidence
        else f"{budget.metric} {budget.shown(value := float(closest.metrics[budget.metric][row]), f'{value:.4g}')} ({_more(violation)})"
        f"{budget.in_rates(value)}"
        for budget, violation in zip(closest.budgets, closest.violations[row].tolist(), strict=True)
    ]
    return f"loss {closest.metrics['loss'][row]:.4f} nats, " + ", ".join(over)
