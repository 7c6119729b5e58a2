"""A run under several laws: regrets of its picks and frontier, designs with the least worst regret, where the laws agree; losses of different laws are never put side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nas.answer.design_words import describe
from nas.exact.alternative_laws import Verdict, along, verdicts
from nas.problem.evaluations import Evaluations
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import cost_among
from nas.study.study_laws import records_line
from objectives.loss_law.law import Law
from objectives.plugins import importable
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.columns import PRECISIONS

TITLE = "Regret under each law, nats"
UNPRICED = "-"
SPANS = 3  # longest stretches of agreement that are named
REGRET = (
    "Regret: loss above the least that the law has within the budgets. Losses of different laws are of different "
    "tokenizers and data and are not compared. * extrapolates."
)


@dataclass(frozen=True, eq=False)
class AlongFrontier:
    """The frontier in rising order of a cost: costs (n,), regrets of its designs and experts of each law's best (n, laws)."""

    metric: str
    costs: FloatArray
    regrets: FloatArray
    n_experts: IntArray

    @property
    def agree(self) -> IntArray:
        """Rows at which every law that prices the frontier's design would itself take as many experts as the first law."""
        same = (self.n_experts == self.n_experts[:, :1]) | np.isnan(self.regrets)
        return np.flatnonzero(same.all(axis=1))


@dataclass(frozen=True, eq=False)
class LawAnswers:
    """A run under several laws, the study's own first: regrets of each of its own picks, and along its frontier."""

    laws: tuple[Law, ...]
    picks: tuple[Pick, ...]
    verdicts: tuple[Verdict, ...]
    along: AlongFrontier | None


def law_answers(problem: Problem, laws: tuple[Law, ...], picks: tuple[Pick, ...], frontier: Evaluations) -> LawAnswers:
    """Exact answers under each law for every pick without a baseline."""
    own = tuple(pick for pick in picks if not pick.question.baseline)
    rules = tuple(PickRule.for_query(pick.question) for pick in own)
    return LawAnswers(laws, own, verdicts(problem, laws, rules), _along(problem, laws, frontier))


def _along(problem: Problem, laws: tuple[Law, ...], frontier: Evaluations) -> AlongFrontier | None:
    """Along the first cost among the objectives; nothing of a frontier without a loss or a shipped cost."""
    known = (*importable("objectives.metrics"), *problem.scenario.figures)
    shipped = [name for name in frontier.objectives if name.partition("@")[0] in known]
    if len(frontier) == 0 or "loss" not in shipped or len(shipped) < 2:
        return None
    metric = cost_among(tuple(shipped))
    rows = frontier[np.argsort(frontier.metrics[metric], kind="stable")]
    costs, by_law = rows.metrics[metric], along(problem, laws, metric)
    regrets = by_law.regrets(problem.architectures(rows.genotypes), costs)
    return AlongFrontier(metric, costs, regrets, by_law.n_experts(costs))


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
    lines += [] if answers.along is None else along_lines(answers.laws, answers.along)
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


def along_lines(laws: Sequence[Law], of: AlongFrontier) -> list[str]:
    """Where along the frontier the laws agree on the number of experts, and what its designs lose at most under each."""
    share, n, rows = len(of.agree), len(of.costs), of.agree
    cuts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(rows.tolist())) if b > a + 1), len(rows)]
    stretches = sorted((rows[a:b] for a, b in pairwise(cuts)), key=len, reverse=True)[:SPANS]
    spans = [(of.costs[part[0]], of.costs[part[-1]]) for part in stretches if len(part)]
    where = f", at {of.metric} {' and '.join(f'{low:.4g} to {high:.4g}' for low, high in sorted(spans))}"
    worst = [
        f"{law.name} {np.nanmax(column):.4f} (at {of.metric} {of.costs[int(np.nanargmax(column))]:.4g})"
        for law, column in zip(laws[1:], of.regrets.T[1:], strict=True)
        if np.isfinite(column).any()
    ]
    places = f"{share:,} of {n:,} places{where if 0 < share < n else ''}"
    lines = [f"Along the frontier all laws that price its design take as many experts in {places}."]
    return lines + ([f"Largest regret of its designs under {', '.join(worst)}."] if worst else [])


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
