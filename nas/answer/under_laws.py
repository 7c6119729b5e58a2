"""A run under several laws: regrets of its picks and frontier, designs with the least worst regret, where the laws agree; losses of different laws are never put side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.answer.design_words import describe
from nas.exact.alternative_laws import Verdict, along, verdicts
from nas.problem.evaluations import Evaluations
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.study.study_laws import records_line
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray
from search_spaces.columns import PRECISIONS

TITLE = "Regret under each law, nats"
UNPRICED = "-"
REGRET = (
    "Regret: loss above the least that the law has within the budgets. Losses of different laws are of different "
    "tokenizers and data and are not compared. * extrapolates."
)


@dataclass(frozen=True, eq=False)
class LawAnswers:
    """A run under several laws, the study's own first: regrets of each of its own picks."""

    laws: tuple[Law, ...]
    picks: tuple[Pick, ...]
    verdicts: tuple[Verdict, ...]


def law_answers(problem: Problem, laws: tuple[Law, ...], picks: tuple[Pick, ...]) -> LawAnswers:
    """Exact answers under each law for every pick without a baseline."""
    own = tuple(pick for pick in picks if not pick.question.baseline)
    rules = tuple(PickRule.for_query(pick.question).as_answered(pick.answer) for pick in own)
    return LawAnswers(laws, own, verdicts(problem, laws, rules))


def kind(n_experts: int) -> str:
    """`E 16`, or `a dense design` of one expert."""
    return f"E {n_experts}" if n_experts > 1 else "a dense design"


def _kind(design: Architectures) -> str:
    precision = PRECISIONS[int(design.precision[0])]
    return kind(int(design.n_experts[0])) + (f" in {precision}" if precision else "")


def shown(regret: float, law: Law | None = None, design: Architectures | None = None) -> str:
    """A regret, with `*` where the law extrapolates; `-` where it says nothing of the design."""
    star = law is not None and design is not None and bool(law.extrapolates(design)[0])
    return UNPRICED if np.isnan(regret) else f"{round(regret, 4) + 0.0:.4f}{'*' * star}"


def verdict_header(laws: Sequence[Law]) -> tuple[str, ...]:
    """Columns of `verdict_rows`."""
    return ("within", "design", *(law.name for law in laws), "worst", "architecture")


def verdict_rows(problem: Problem, answers: LawAnswers) -> list[tuple[str, ...]]:
    """Per question the pick with its regret under every law that prices it, then the design of the least worst regret."""
    rows: list[tuple[str, ...]] = []
    for pick, verdict in zip(answers.picks, answers.verdicts, strict=True):
        if pick.answer is not None:
            budget, robust = pick.question.budget, verdict.robust
            within = pick.question.label + ("" if budget is None else f": {budget}")
            same = robust is not None and robust.keys.tolist() == pick.answer.keys.tolist()
            rows.append(_row(problem, within, "pick, least worst" if same else "pick", verdict, pick.answer))
            if robust is not None and not same:
                rows.append(_row(problem, "", "least worst", verdict, robust))
    return rows


def _row(problem: Problem, within: str, name: str, verdict: Verdict, row: Evaluations) -> tuple[str, ...]:
    design = problem.architectures(row.genotypes)
    regrets = verdict.regrets(design)[0]
    marked = [shown(regret, law, design) for law, regret in zip(verdict.laws, regrets.tolist(), strict=True)]
    able = regrets[np.isfinite(verdict.least)]  # laws that price anything; the worst is NaN where one is mute here
    worst = shown(float(able.max())) if len(able) else UNPRICED
    return (within, name, *marked, worst, describe(design, problem.space.settings))


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
    return [*lines, *confined(answers.laws)]


def right_under(problem: Problem, verdict: Verdict, design: Architectures) -> str:
    """`E 16 is right under 2 of the 3 laws that price it; under joint_moe a dense design loses 0.0500 less`, of one design.

    Where designs have formats of their own, `E 16 in int8`.
    """
    own, every = _kind(design), list(zip(verdict.laws, _own_kinds(problem, verdict), strict=True))
    regrets = verdict.regrets(design)[0].tolist()
    priced = [(law, theirs, r) for (law, theirs), r in zip(every, regrets, strict=True) if not np.isnan(r)]
    right = sum(theirs == own for _, theirs, _ in priced)
    share = "all" if right == len(priced) else f"{right} of the"
    lines = [f"{own} is right under {share} {len(priced)} laws that price it"]
    lines += [f"under {law.name} {theirs} loses {r:.4f} less" for law, theirs, r in priced if theirs not in ("", own)]
    lines += [f"{law.name} prices nothing here ({law.priced_designs})" for law, theirs in every if not theirs]
    mute = [law for (law, theirs), r in zip(every, regrets, strict=True) if theirs and np.isnan(r)]
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
    return [f"Dense or experts? {'; '.join([*lines, *([f'{_with_reasons(mute)} cannot say'] if mute else [])])}"]


def _own_kinds(problem: Problem, verdict: Verdict) -> list[str]:
    """The kind of each law's own best design; "" where it prices nothing."""
    return ["" if pick is None else _kind(problem.architectures(pick.genotypes)) for pick in verdict.best]


def _with_reasons(laws: Sequence[Law]) -> str:
    """`joint_moe, routed (designs of top_k 1 alone), chinchilla_epoch (designs of n_experts 1 alone)`."""
    reasons: dict[str, list[str]] = {}
    for law in laws:
        reasons.setdefault(law.priced_designs, []).append(law.name)
    return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())


def caveats(laws: Sequence[Law]) -> list[str]:
    """Notes on why only regrets are shown, and on each law: its tokens, its caveat; the record of all."""
    first, lines = laws[0], [REGRET]
    for law in laws:
        tokens = ""
        if law.tokens is not None and first.tokens is not None and law.tokens != first.tokens:
            tokens = f"is of {law.tokens / 1e9:g} B tokens, {first.name} of {first.tokens / 1e9:g} B"
        notes_of_law = "; ".join(part for part in (tokens, law.caveat) if part)
        lines += [f"{law.name}: {notes_of_law}."] if notes_of_law else []
    return [*lines, *records_line(laws)]


def confined(laws: Sequence[Law]) -> list[str]:
    """Which laws confine the least worst design to what they price."""
    confining = [f"{law.name} prices {law.priced_designs}" for law in laws if law.partial]
    return [f"The least worst design is one that all laws price: {'; '.join(confining)}."] if confining else []


def notes(laws: Sequence[Law]) -> list[str]:
    """The caveats, and of each law what it is fitted on and cannot see."""
    unseen = ((law.name, ", ".join(law.unseen)) for law in laws if law.unseen)
    ties = "designs that differ in these alone are ties under it."
    return [*caveats(laws), *(f"{name} does not see {axes}: {ties}" for name, axes in unseen)]


def regret_columns(laws: Sequence[Law], values: FloatArray) -> dict[str, FloatArray]:
    """Regrets (n, laws) as columns of a candidate file."""
    return {f"regret_{law.name}": column for law, column in zip(laws, values.T, strict=True)}


def pick_under(
    problem: Problem, laws: tuple[Law, ...], rule: PickRule, design: Architectures
) -> tuple[FloatArray, list[str]]:
    """Regrets (1, laws) of a pick within a rule's budgets; what it is right under, and the design of the least worst regret."""
    (verdict,) = verdicts(problem, laws, (rule,))
    lines = [f"Under each law: {right_under(problem, verdict, design)}."]
    lines += [f"{text}." for text in dense_or_experts(problem, verdict)]
    if verdict.robust is not None:
        robust = problem.architectures(verdict.robust.genotypes)
        worst = f"{np.nanmax(verdict.regrets(robust)):.4f} nats, {kind(int(robust.n_experts[0]))}"
        lines += [f"Least worst regret: {worst}: {describe(robust)}.", *confined(laws)]
    return verdict.regrets(design), [*lines, *caveats(laws)]


def design_lines(problem: Problem, laws: tuple[Law, ...], design: Architectures, metric: str = "total_ms") -> list[str]:
    """Regret of one design under each law among designs that take no more of a cost and meet the budgets, if it meets them."""
    assessed, own = problem.assess(design), {function.name for function in problem.functions}
    shipped = tuple(budget for budget in problem.budgets if budget.metric not in own)
    met = all(float(assessed[budget.metric][0]) <= budget.limit for budget in shipped)
    by_law, cost = along(replace(problem, budgets=shipped if met else ()), laws, metric), assessed[metric]
    among = f"designs of at most its {metric}" + (" within the budgets" if met and shipped else "")
    lines = [f"Regret under each law, nats, among {among}:"]
    regrets, experts = by_law.regrets(design, cost)[0].tolist(), by_law.n_experts(cost)[0].tolist()
    for law, regret, best in zip(laws, regrets, experts, strict=True):
        line = f"  {law.name} {shown(regret, law, design)}"
        line += f", its own best is {kind(best)}" if best else f", prices nothing there ({law.priced_designs})"
        mute = np.isnan(regret) and best
        lines.append(line + (f"; of this design it says nothing ({law.priced_designs})" if mute else ""))
    return [*lines, *caveats(laws)]
