"""Why nothing fits: closest misses, the budgets that bind, and what relaxing each would open."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

import numpy as np

from nas.evaluations import Evaluations
from nas.objective import Budget


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


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """`closest` rows miss by the smallest largest violation; `together` relaxes every budget by one factor."""

    examined: int
    failed: int
    relaxations: tuple[Relaxation, ...]
    closest: Evaluations
    together: float


def diagnose(evaluations: Evaluations, misses: int = 3) -> Diagnosis:
    """Explain infeasibility over the given architectures; failed ones are left out."""
    usable = evaluations[evaluations.ok]
    violations = usable.violations
    worst = violations.max(axis=1, initial=-np.inf)
    closest = np.lexsort((usable.keys, worst))[:misses]
    relaxations = tuple(_relaxed(usable, violations, i) for i in range(len(usable.budgets)))
    return Diagnosis(
        len(usable),
        len(evaluations) - len(usable),
        relaxations,
        usable[closest],
        float(worst.min()) if len(worst) else float("inf"),
    )


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
    if diagnosis.examined == 0:
        return [f"All {diagnosis.failed:,} evaluations failed; their reasons are in evaluations.csv."]
    said = [f"No architecture satisfies the budgets, among {scope}."]
    said += [f"  {r.budget}: {_relaxation(r)}" for r in diagnosis.relaxations]
    if np.isfinite(diagnosis.together) and len(diagnosis.relaxations) > 1:
        said.append(f"  Relaxing every budget by {100 * diagnosis.together:.1f} % opens the first design.")
    said.append("Closest misses:")
    said += [f"  {_miss(diagnosis.closest, row)}" for row in range(len(diagnosis.closest))]
    return said


def _relaxation(r: Relaxation) -> str:
    alone = "" if r.met_by is None else f" ({r.met_by:,} meet it alone)"
    if r.limit is None:
        return f"relaxing it alone opens nothing{alone}"
    if r.limit <= r.budget.limit:
        return f"not binding{alone}"
    opens = "1 design" if r.opens == 1 else f"{r.opens:,} designs"
    return f"binds; at {at_least(r.limit)} (+{100 * (r.limit / r.budget.limit - 1):.1f} %) it opens {opens}{alone}"


def at_least(limit: float, digits: int = 6) -> str:
    """A limit to some digits, rounded up, so that typing it opens what was said."""
    exact = Decimal(limit)
    up = exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), rounding=ROUND_CEILING)
    return f"{float(up):.{max(digits, 6)}g}"


def _miss(closest: Evaluations, row: int) -> str:
    over = [
        f"{budget.metric} {closest.metrics[budget.metric][row]:.4g} ({100 * violation:+.1f} %)"
        for budget, violation in zip(closest.budgets, closest.violations[row], strict=True)
    ]
    return f"loss {closest.metrics['loss'][row]:.4f}, " + ", ".join(over)
