"""Regrets under several laws in words and tables; losses of different laws are never put side by side."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nas.answer.design_words import describe
from nas.answer.law_verdicts import AlongFrontier, LawAnswers
from nas.exact.alternative_laws import Along, Verdict, along, verdicts
from nas.problem.picks import PickRule
from nas.problem.problem import Problem
from nas.study.study_laws import records_line
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import PRECISIONS

TITLE = "Regret under each law, nats"
UNPRICED = "-"
SPANS = 3  # longest stretches of agreement that are named


def kind(n_experts: int) -> str:
    """`E 16`, or `a dense design` of one expert."""
    return f"E {n_experts}" if n_experts > 1 else "a dense design"


def shown(regret: float, *, extrapolates: bool = False) -> str:
    """A regret, with `*` where the law extrapolates; `-` where it says nothing of the design."""
    return UNPRICED if np.isnan(regret) else f"{round(regret, 4) + 0.0:.4f}{'*' * extrapolates}"


def verdict_header(laws: Sequence[Law]) -> tuple[str, ...]:
    """Columns of `verdict_rows`."""
    return ("within", "design", *(law.name for law in laws), "worst", "architecture")


def verdict_rows(problem: Problem, answers: LawAnswers) -> list[tuple[str, ...]]:
    """Per question the pick with its regret under every law that prices it, then the design of the least worst regret."""
    rows: list[tuple[str, ...]] = []
    for pick, verdict in zip(answers.picks, answers.verdicts, strict=True):
        if pick.answer is None:
            continue
        within = pick.question.label + ("" if pick.question.budget is None else f": {pick.question.budget}")
        own = problem.architectures(pick.answer.genotypes)
        robust = None if verdict.robust is None else problem.architectures(verdict.robust.genotypes)
        same = verdict.robust is not None and verdict.robust.keys.tolist() == pick.answer.keys.tolist()
        rows.append(_row(within, "pick, least worst" if same else "pick", verdict, own, problem.space.settings))
        if robust is not None and not same:
            rows.append(_row("", "least worst", verdict, robust, problem.space.settings))
    return rows


def _row(within: str, name: str, verdict: Verdict, design: Architectures, searched: Collection[str]) -> tuple[str, ...]:
    found = verdict.regrets(design)[0]
    marked = [
        shown(regret, extrapolates=bool(law.extrapolates(design)[0]))
        for law, regret in zip(verdict.laws, found.tolist(), strict=True)
    ]
    return (within, name, *marked, worst_of(verdict, found), describe(design, searched))


def worst_of(verdict: Verdict, found: FloatArray) -> str:
    """The worst regret among laws that price anything; `-` where one of them says nothing of the design."""
    able = found[np.isfinite(verdict.least)]
    return shown(float(able.max())) if len(able) else UNPRICED


def verdict_lines(problem: Problem, answers: LawAnswers) -> list[str]:
    """Lines of the share of laws under which each query's pick is right, and of what another law would take instead."""
    lines = [
        f"{pick.question.label}: {text}."
        for pick, verdict in zip(answers.picks, answers.verdicts, strict=True)
        if pick.answer is not None
        for text in (
            right_under(problem, verdict, problem.architectures(pick.answer.genotypes)),
            *dense_or_experts(problem, verdict),
        )
    ]
    lines += [] if answers.along is None else along_lines(answers.laws, answers.along)
    return [*lines, *confined(answers.laws)]


def right_under(problem: Problem, verdict: Verdict, design: Architectures) -> str:
    """`E 16 is right under 2 of the 3 laws that price it; under joint_moe a dense design loses 0.0500 less`, of one design.

    Where designs have formats of their own, `E 16 in int8`.
    """
    own, found = _kind(design), verdict.regrets(design)[0].tolist()
    best = _own_kinds(problem, verdict)
    priced = [theirs for theirs, regret in zip(best, found, strict=True) if not np.isnan(regret)]
    share = "all" if priced.count(own) == len(priced) else f"{priced.count(own)} of the"
    lines = [f"{own} is right under {share} {len(priced)} laws that price it"]
    lines += [
        f"under {law.name} {theirs} loses {regret:.4f} less"
        for law, theirs, regret in zip(verdict.laws, best, found, strict=True)
        if theirs and not np.isnan(regret) and theirs != own
    ]
    lines += [
        f"{law.name} prices nothing here ({law.priced_designs})"
        for law, theirs in zip(verdict.laws, best, strict=True)
        if not theirs
    ]
    mute = [law for law, theirs, regret in zip(verdict.laws, best, found, strict=True) if theirs and np.isnan(regret)]
    return "; ".join([*lines, *([f"no regret (-) under {_with_reasons(mute)}"] if mute else [])])


def dense_or_experts(problem: Problem, verdict: Verdict) -> list[str]:
    """The picks of each law that prices both within the budgets, and which laws price neither and why; empty for a space of one of the two."""
    if not problem.space.experts.min() <= 1 < problem.space.experts.max():
        return []
    taken: dict[str, list[str]] = {}
    mute = []
    for law, theirs in zip(verdict.laws, _own_kinds(problem, verdict), strict=True):
        least, most = law.prices.get("n_experts", (1.0, np.inf))
        if theirs and least <= 1 < most:
            taken.setdefault(theirs, []).append(law.name)
        else:
            mute.append(law)
    lines = [f"{theirs} under {', '.join(names)}" for theirs, names in taken.items()]
    lines += [f"{_with_reasons(mute)} cannot say"] if mute else []
    return [f"Dense or experts? {'; '.join(lines)}"]


def _own_kinds(problem: Problem, verdict: Verdict) -> list[str]:
    """The kind of each law's own best design; "" where it prices nothing."""
    return ["" if pick is None else _kind(problem.architectures(pick.genotypes)) for pick in verdict.best]


def _with_reasons(laws: Sequence[Law]) -> str:
    """`joint_moe, routed (designs of top_k 1 alone), chinchilla_epoch (designs of n_experts 1 alone)`."""
    reasons: dict[str, list[str]] = {}
    for law in laws:
        reasons.setdefault(law.priced_designs, []).append(law.name)
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())


def _kind(design: Architectures) -> str:
    precision = PRECISIONS[int(design.precision[0])]
    return kind(int(design.n_experts[0])) + (f" in {precision}" if precision else "")


def along_lines(laws: Sequence[Law], found: AlongFrontier) -> list[str]:
    """Where along the frontier the laws agree on the number of experts, and what its designs lose at most under each."""
    share, n = len(found.agree), len(found.costs)
    where = f", at {found.metric} {' and '.join(_spans(found))}" if 0 < share < n else ""
    worst = [
        f"{law.name} {np.nanmax(column):.4f} (at {found.metric} {found.costs[int(np.nanargmax(column))]:.4g})"
        for law, column in zip(laws[1:], found.regrets.T[1:], strict=True)
        if np.isfinite(column).any()
    ]
    lines = [
        f"Along the frontier all laws that price its design take as many experts in {share:,} of {n:,} places{where}."
    ]
    return lines + ([f"Largest regret of its designs under {', '.join(worst)}."] if worst else [])


def _spans(found: AlongFrontier) -> list[str]:
    """The longest stretches of agreement, in order."""
    rows = found.agree
    cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(rows.tolist())) if b > a + 1), len(rows)]
    stretches = sorted((rows[a:b] for a, b in pairwise(cuts)), key=len, reverse=True)[:SPANS]
    return [
        f"{found.costs[part[0]]:.4g} to {found.costs[part[-1]]:.4g}"
        for part in sorted(stretches, key=lambda part: int(part[0]))
    ]


REGRET = (
    "Regret: loss above the least that the law has within the budgets. Losses of different laws are of different "
    "tokenizers and data and are not compared. * extrapolates."
)


def caveats(laws: Sequence[Law]) -> list[str]:
    """Notes on why only regrets are shown, and on each law: its tokens, its caveat; the record of all."""
    first, lines = laws[0], [REGRET]
    for law in laws:
        other = law.tokens is not None and first.tokens is not None and law.tokens != first.tokens
        tokens = f"is of {_billions(law)} tokens, {first.name} of {_billions(first)}" if other else ""
        told = "; ".join(part for part in (tokens, law.caveat) if part)
        lines += [f"{law.name}: {told}."] if told else []
    return [*lines, *records_line(laws)]


def confined(laws: Sequence[Law]) -> list[str]:
    """Which laws confine the least worst design to what they price."""
    confining = [f"{law.name} prices {law.priced_designs}" for law in laws if law.partial]
    return [f"The least worst design is one that all laws price: {'; '.join(confining)}."] if confining else []


def _billions(law: Law) -> str:
    return f"{(law.tokens or 0.0) / 1e9:g} B"


def notes(laws: Sequence[Law]) -> list[str]:
    """The caveats, and of each law what it is fitted on and cannot see."""
    lines = [
        f"{law.name} does not see {', '.join(law.unseen)}: designs that differ in these alone are ties under it."
        for law in laws
        if law.unseen
    ]
    return [*caveats(laws), *lines]


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
