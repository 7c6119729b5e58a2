"""Regrets of a run's picks and frontier under alternative laws, designs with the least worst regret, where the laws agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.exact.alternative_laws import Along, Verdict, along, verdicts
from nas.problem.evaluations import Evaluations
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS, cost_among
from objectives.loss_law.law import Law
from objectives.plugins import importable
from search_spaces.arrays import AnyArray, FloatArray, IntArray


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
    order = np.argsort(frontier.metrics[metric], kind="stable")
    costs, found = frontier.metrics[metric][order], along(problem, laws, metric)
    return _regrets_along(problem, found, frontier[order], costs)


def _regrets_along(problem: Problem, found: Along, rows: Evaluations, costs: FloatArray) -> AlongFrontier:
    designs = problem.architectures(rows.genotypes)
    return AlongFrontier(found.metric, costs, found.regrets(designs, costs), found.n_experts(costs))


LEAST_WORST = "least worst regret"


def law_columns(problem: Problem, answers: LawAnswers) -> dict[str, Any]:
    """One row per question and design: `of` the study, a law or the least worst regret; its regret under each law."""
    rows = [
        {"question": pick.question.label, "of": of, **row}
        for pick, verdict in zip(answers.picks, answers.verdicts, strict=True)
        for of, row in _designs(problem, answers.laws, pick, verdict)
    ]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["question", "of"]
    return {name: [row.get(name, "") for row in rows] for name in names}


def _designs(problem: Problem, laws: Sequence[Law], pick: Pick, verdict: Verdict) -> list[tuple[str, dict[str, Any]]]:
    """The study's pick, each law's and the least worst, those that there are."""
    chosen: list[tuple[str, Evaluations | None]] = [("pick", pick.answer)]
    chosen += [(law.name, best) for law, best in zip(laws, verdict.best, strict=True)]
    chosen.append((LEAST_WORST, verdict.robust))
    return [(of, _design(problem, laws, verdict, row)) for of, row in chosen if row is not None]


def _design(problem: Problem, laws: Sequence[Law], verdict: Verdict, row: Evaluations) -> dict[str, Any]:
    architecture = problem.architectures(row.genotypes)
    found = verdict.regrets(architecture)[0].tolist()
    own, assessed = {metric.name for metric in problem.functions}, problem.assess(architecture)
    costs = {name: float(assessed[name][0]) for name in problem.metric_names if name not in own | FROM_LOSS.keys()}
    shape = {name: column.tolist()[0] for name, column in architecture.columns().items()}
    return {**{f"regret_{law.name}": value for law, value in zip(laws, found, strict=True)}, **shape, **costs}


def along_columns(laws: Sequence[Law], found: AlongFrontier) -> dict[str, AnyArray]:
    """The frontier along its cost: regret of its designs under each law, experts of each law's own best there."""
    regrets = {f"regret_{law.name}": column for law, column in zip(laws, found.regrets.T, strict=True)}
    experts = {f"n_experts_{law.name}": column for law, column in zip(laws, found.n_experts.T, strict=True)}
    return {found.metric: found.costs, **regrets, **experts}


def laws_in_numbers(problem: Problem, answers: LawAnswers) -> dict[str, Any]:
    """The laws, and per question the regret of the pick and of the least worst design under each, nats."""
    questions = []
    for pick, verdict in zip(answers.picks, answers.verdicts, strict=True):
        row: dict[str, Any] = {"question": pick.question.label}
        for name, chosen in (("pick", pick.answer), ("least_worst", verdict.robust)):
            found = None if chosen is None else verdict.regrets(problem.architectures(chosen.genotypes))[0].tolist()
            row[f"regret_of_{name}"] = found and _named(answers.laws, found)
        best = [0 if b is None else int(problem.architectures(b.genotypes).n_experts[0]) for b in verdict.best]
        questions.append(
            {**row, "n_experts_of_each_law": dict(zip((law.name for law in answers.laws), best, strict=True))}
        )
    agree = (
        None if answers.along is None else {"agreeing": len(answers.along.agree), "places": len(answers.along.costs)}
    )
    return {"names": [law.name for law in answers.laws], "questions": questions, "along_frontier": agree}


def _named(laws: Sequence[Law], values: list[float]) -> dict[str, float | None]:
    return {law.name: None if np.isnan(value) else value for law, value in zip(laws, values, strict=True)}
