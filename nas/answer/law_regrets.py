"""Regrets of chosen designs under several laws, as `select`, `explain` and `theory` give them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nas.answer.design_words import describe
from nas.answer.law_sentences import caveats, confined, dense_or_experts, kind, right_under, shown
from nas.exact.alternative_laws import Along, along, verdicts
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray


def regret_columns(laws: Sequence[Law], values: FloatArray) -> dict[str, FloatArray]:
    """Regrets (n, laws) as columns of a candidate file."""
    return {f"regret_{law.name}": column for law, column in zip(laws, values.T, strict=True)}


def pick_under(
    problem: Problem, laws: tuple[Law, ...], rule: PickRule, design: Architectures
) -> tuple[FloatArray, list[str]]:
    """Regrets (1, laws) of a pick within a rule's budgets; what it is right under, and the design of the least worst regret."""
    (verdict,) = verdicts(problem, laws, (rule,))
    values = verdict.regrets(design)
    lines = [
        f"Under each law: {right_under(problem, verdict, design)}.",
        *(f"{text}." for text in dense_or_experts(problem, verdict)),
    ]
    if verdict.robust is not None:
        robust = problem.architectures(verdict.robust.genotypes)
        worst = np.nanmax(verdict.regrets(robust))
        lines.append(f"Least worst regret: {worst:.4f} nats, {kind(int(robust.n_experts[0]))}: {describe(robust)}.")
        lines += confined(laws)
    return values, [*lines, *caveats(laws)]


def design_lines(problem: Problem, laws: tuple[Law, ...], design: Architectures, metric: str = "total_ms") -> list[str]:
    """Regret of one design under each law among designs that take no more of a cost and meet the budgets, if it meets them."""
    assessed = problem.assess(design)
    shipped = [b for b in problem.budgets if b.metric not in {f.name for f in problem.functions}]
    met = all(float(assessed[b.metric][0]) <= b.limit for b in shipped)
    found = along(replace(problem, budgets=tuple(shipped) if met else ()), laws, metric)
    among = f"designs of at most its {metric}" + (" within the budgets" if met and shipped else "")
    return [
        f"Regret under each law, nats, among {among}:",
        *_design_lines(found, laws, design, assessed[metric]),
        *caveats(laws),
    ]


def _design_lines(found: Along, laws: Sequence[Law], design: Architectures, cost: FloatArray) -> list[str]:
    rows = zip(laws, found.regrets(design, cost)[0].tolist(), found.n_experts(cost)[0].tolist(), strict=True)
    return [
        f"  {law.name} {shown(regret, extrapolates=bool(law.extrapolates(design)[0]))}"
        + (f", its own best is {kind(best)}" if best else f", prices nothing there ({law.priced_designs})")
        + ("" if not np.isnan(regret) or not best else f"; of this design it says nothing ({law.priced_designs})")
        for law, regret, best in rows
    ]
