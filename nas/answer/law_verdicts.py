"""Regrets of a run's picks and frontier under alternative laws, designs with the least worst regret, where the laws agree."""

from dataclasses import dataclass

import numpy as np

from nas.exact.alternative_laws import Along, Verdict, along, verdicts
from nas.problem.evaluations import Evaluations
from nas.problem.picks import Pick, PickRule
from nas.problem.problem import Problem
from nas.problem.uncertainty import cost_among
from objectives.loss_law.law import Law
from objectives.plugins import importable
from search_spaces.arrays import FloatArray, IntArray


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
