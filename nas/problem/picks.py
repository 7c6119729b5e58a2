"""Picks: the architecture of lowest loss within the study's budgets and those of a question."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.problem.evaluations import Evaluations, joined, rounded
from nas.problem.objective import Budget, PickQuery
from nas.problem.problem import Problem
from search_spaces.arrays import BoolArray, FloatArray

BLOCK = 131_072
MARGIN = "@q80"  # at which picks keep limits on times
COUNTS = ("params_total", "params_active")  # equal where there are no experts to choose from


def kept(limits: Iterable[Budget], metrics: Collection[str]) -> tuple[Budget, ...]:
    """The limits at the quantile that picks keep, of those whose metric is there at it."""
    return tuple(Budget(limit.metric + MARGIN, limit.limit) for limit in limits if limit.metric + MARGIN in metrics)


def keeping(evaluations: Evaluations, rows: BoolArray, limits: Iterable[Budget], *, strict: bool = False) -> BoolArray:
    """Those of some rows, (n,), that keep limits on times in 4 of 5 cases; all of them where none does, unless `strict`."""
    safe = rows
    for limit in kept(limits, evaluations.metrics):
        safe = safe & (evaluations.metrics[limit.metric] <= limit.limit)
    return safe if strict or safe.any() else rows


def least_of(objectives: Sequence[str]) -> str:
    """The metric that a pick has least: the loss, or the first objective where the loss is none of them."""
    return "loss" if not objectives or any(name.partition("@")[0] == "loss" for name in objectives) else objectives[0]


@dataclass(frozen=True)
class PickRule:
    """A pick that can be kept while a space is enumerated block by block: the least of a metric within budgets.

    `within` are further budgets, `dense` leaves out experts, `margin` takes a row that keeps its limits in 4 of 5 cases where one does.
    """

    budget: Budget | None
    within: tuple[Budget, ...] = ()
    dense: bool = False
    least: str = "loss"
    margin: bool = True

    @classmethod
    def for_query(cls, question: PickQuery) -> "PickRule":
        """The rule that answers a question; beside a published model both are at their predicted times."""
        return cls(question.budget, question.within, question.dense, question.least, not question.baseline)

    def strict(self, budgets: Iterable[Budget], metrics: Collection[str]) -> "PickRule":
        """The rule with its margin as further limits, those of a problem's budgets too."""
        further = kept((*budgets, *self.limits), metrics) if self.margin else ()
        return replace(self, within=(*self.within, *further), margin=False)

    def as_answered(self, answer: Evaluations | None) -> "PickRule":
        """The rule that its answer, one row, keeps: with its margin as limits, or without."""
        if answer is None:
            return self
        strict = self.strict(answer.budgets, answer.metrics)
        return strict if strict.allowed(answer).all() else replace(self, margin=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it reads, apart from those that break ties."""
        return (*(limit.metric for limit in self.limits), *(COUNTS if self.dense else ()), self.least)

    @property
    def limits(self) -> tuple[Budget, ...]:
        """Its budget and the further ones."""
        return (*(() if self.budget is None else (self.budget,)), *self.within)

    @property
    def deciding(self) -> tuple[str, ...]:
        """The metrics that order designs, in order."""
        asked = () if self.budget is None else (self.budget.metric,)
        return tuple(dict.fromkeys((self.least, *asked, "total_ms")))

    def read_off(self, frontier: Evaluations) -> bool:
        """Whether its pick is a member of a whole frontier with all ties: what orders designs are the objectives, no more and no less.

        Who dominates a pick comes before it, unless it is beyond a limit that lies between two values of one rounding.
        """
        deciding = {*self.deciding}
        if self.dense or not {each.metric for each in self.limits} <= deciding == {*frontier.objectives}:
            return False
        return not any(_divides_ties(each, frontier.metrics[each.metric]) for each in self.limits)

    def allowed(self, evaluations: Evaluations) -> BoolArray:
        """Which rows may be its pick, (n,): feasible, within its limits, of `dense` without experts."""
        found = evaluations.feasible
        for limit in self.limits:
            found = found & (evaluations.metrics[limit.metric] <= limit.limit)
        if self.dense:
            total, active = (evaluations.metrics[name] for name in COUNTS)
            found = found & (total == active)
        return found

    def row(self, evaluations: Evaluations) -> int | None:
        """Row of the pick, or None when nothing is feasible.

        Ties, at 12 digits, go to the lower budgeted metric, the lower total_ms, the smaller genotype.
        """
        limits = (*evaluations.budgets, *self.limits) if self.margin else ()
        rows = np.flatnonzero(keeping(evaluations, self.allowed(evaluations), limits))
        if len(rows) == 0:
            return None
        least = rounded(evaluations.metrics[self.least][rows])
        rows = rows[least == least.min()]
        keys = [evaluations.keys[rows], rounded(evaluations.metrics["total_ms"][rows])]
        if self.budget is not None:
            keys.append(rounded(evaluations.metrics[self.budget.metric][rows]))
        return int(rows[np.lexsort(tuple(keys))[0]])

    def answer(self, evaluations: Evaluations) -> Evaluations | None:
        """The pick as one row, or None when nothing is feasible."""
        row = self.row(evaluations)
        return None if row is None else evaluations[row : row + 1]

    def better(self, old: Evaluations | None, block: Evaluations) -> Evaluations | None:
        """The pick among the old one and a block, as one row."""
        new = self.answer(block)
        return old if new is None else new if old is None else self.answer(joined(old, new))


def _divides_ties(limit: Budget, values: FloatArray) -> bool:
    """Whether a value beyond a limit is tied with it."""
    beyond = values[values > limit.limit]
    return bool((rounded(beyond) <= rounded(np.array([limit.limit]))).any())


@dataclass(frozen=True, eq=False)
class Pick:
    """A question with its answer, one row evaluated in the question's own conditions, or None."""

    question: PickQuery
    answer: Evaluations | None


def answers(problem: Problem, evaluations: Evaluations) -> tuple[Pick, ...]:
    """The pick of each of the problem's questions, among everything evaluated.

    Under another vocabulary the shipped metrics are computed again, once for all that ask for it.
    """
    found: dict[PickQuery, Evaluations | None] = {}
    for vocabulary in dict.fromkeys(problem.with_vocabulary(q.vocabulary).vocabulary for q in problem.queries):
        asked = [q for q in problem.queries if problem.with_vocabulary(q.vocabulary).vocabulary == vocabulary]
        best: list[Evaluations | None] = [None] * len(asked)
        for block in _blocks(problem, evaluations, vocabulary):
            best = [PickRule.for_query(question).better(old, block) for question, old in zip(asked, best, strict=True)]
        found |= dict(zip(asked, best, strict=True))
    return tuple(Pick(question, found[question]) for question in problem.queries)


def _blocks(problem: Problem, evaluations: Evaluations, vocabulary: int) -> Iterator[Evaluations]:
    """Everything evaluated, priced under a vocabulary."""
    if vocabulary == problem.vocabulary:
        yield evaluations
        return
    variant, usable = problem.with_vocabulary(vocabulary), np.flatnonzero(evaluations.ok)
    own = {function.name for function in problem.functions}
    shipped = tuple(name for name in problem.metric_names if name not in own)
    for start in range(0, len(usable), BLOCK):
        block = evaluations[usable[start : start + BLOCK]]
        yield replace(block, metrics={**block.metrics, **variant.evaluate(block.genotypes, shipped).metrics})
