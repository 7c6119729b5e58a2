"""Designs in other cases than their own: loss lost, limits missed, the same at equal time; the one design best for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations, rounded
from nas.problem.objective import Budget
from nas.problem.uncertainty import FROM_LOSS, cost_among
from plas_range.answers import Answer, Answers, evaluated
from search_spaces.arrays import BoolArray, FloatArray, IntArray

MOST_MEMBERS = 200_000  # members of all frontiers together that are evaluated in every case
Matrix = np.ndarray[tuple[int, int], np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Transfer:
    """Matrices (n, n): row the case that a design was picked for, column the case that it runs on; NaN without a pick.

    regret: the design's loss over the pick's there, nats, within the limits or not. violation: its largest
    value/limit − 1 there, ≤ 0 within all; `missed` is the number of that limit among the column's.
    at_equal_cost: its loss over that of the best design there that costs no more, within the frontier's budgets; NaN
    outside them. Of the row's whole frontier: `shared`, the share on the column's frontier too; `mean` and `worst`,
    the loss at equal cost of its members within these budgets there.

    losses (k,) and violations (n, k) are those of all designs `keys` (k,) that were evaluated in every case.
    """

    cost: str
    keys: IntArray
    losses: FloatArray
    violations: Matrix
    regret: Matrix
    violation: Matrix
    missed: Matrix
    at_equal_cost: Matrix
    shared: Matrix
    mean: Matrix
    worst: Matrix

    @property
    def within(self) -> Matrix:
        """Whether a design meets every limit there, (n, n)."""
        return self.violation <= 0.0


@dataclass(frozen=True, eq=False)
class _Designs:
    """Designs that are evaluated everywhere: keys, and where the picks (−1: none) and the frontiers stand among them."""

    keys: IntArray
    picks: IntArray
    fronts: list[IntArray]

    @classmethod
    def from_answers(cls, answers: Sequence[Answer], further: Sequence[int]) -> "_Designs":
        fronts = [answer.frontier.keys for answer in answers]
        if sum(map(len, fronts)) > MOST_MEMBERS:
            fronts = [front[:0] for front in fronts]
        picks = np.array([-1 if answer.pick is None else int(answer.pick.keys[0]) for answer in answers])
        keys = np.unique(np.concatenate([*fronts, picks[picks >= 0], np.array(further, dtype=np.int64)]))
        places = np.where(picks < 0, -1, np.searchsorted(keys, picks))
        return cls(keys, places, [np.searchsorted(keys, front) for front in fronts])


def transferred(answers: Sequence[Answer], further: Sequence[int]) -> Transfer:
    """Every pick and every frontier in every case; `further` keys are evaluated with them."""
    cases, designs, n = [answer.case for answer in answers], _Designs.from_answers(answers, further), len(answers)
    objectives = [o.name for o in cases[0].problem.objectives]
    cost, ordered = cost_among(objectives), FROM_LOSS.keys() & set(objectives)
    matrices = {name: np.full((n, n), np.nan) for name in (*OF_PICKS, *OF_FRONTIERS)}
    losses, violations = np.zeros(len(designs.keys)), np.full((n, len(designs.keys)), np.nan)
    picked = designs.picks >= 0
    for column, there in evaluated(cases, cases[0].problem.space.genotypes(designs.keys)):
        losses, limits = there.metrics["loss"], cases[column].budgets
        violations[column], missed = _worst(there, limits)
        members = designs.fronts[column]
        behind = at_equal_cost(there, members, cost) if ordered and len(members) else np.full(len(there), np.nan)
        columns = (losses - answers[column].loss, violations[column], missed, behind)
        for name, values in zip(OF_PICKS, columns, strict=True):
            matrices[name][picked, column] = values[designs.picks[picked]]
        _fill_frontiers(matrices, column, designs.fronts, behind, there.feasible)
    return Transfer(cost, designs.keys, losses, violations, **matrices)


OF_PICKS = ("regret", "violation", "missed", "at_equal_cost")
OF_FRONTIERS = ("shared", "mean", "worst")


def _worst(there: Evaluations, limits: Sequence[Budget]) -> tuple[FloatArray, FloatArray]:
    """The largest violation of a case's limits and the number of that limit, each (k,); −1 and NaN without limits."""
    if not limits:
        return np.full(len(there), -1.0), np.full(len(there), np.nan)
    over = np.stack([limit.violation(there.metrics[limit.metric]) for limit in limits])
    worst = over.argmax(axis=0)
    return over[worst, np.arange(len(there))], worst.astype(np.float64)


def _fill_frontiers(
    matrices: dict[str, Matrix], column: int, fronts: Sequence[IntArray], behind: FloatArray, feasible: BoolArray
) -> None:
    """A column of what concerns whole frontiers; rows without one stay NaN."""
    rows = np.array([row for row, front in enumerate(fronts) if len(front)], dtype=np.int64)
    if len(rows) == 0:
        return
    sizes = np.array([len(fronts[row]) for row in rows])
    flat, starts = np.concatenate([fronts[row] for row in rows]), np.cumsum(sizes) - sizes
    on_it = np.zeros(len(behind), dtype=bool)
    on_it[fronts[column]] = True
    inside, lost = feasible[flat], behind[flat]
    counts = np.add.reduceat(inside.astype(np.int64), starts)
    matrices["shared"][rows, column] = np.add.reduceat(on_it[flat].astype(np.int64), starts) / sizes
    some = counts > 0
    sums = np.add.reduceat(np.where(inside, lost, 0.0), starts)
    matrices["mean"][rows[some], column] = sums[some] / counts[some]
    matrices["worst"][rows[some], column] = np.maximum.reduceat(np.where(inside, lost, -np.inf), starts)[some]


def at_equal_cost(there: Evaluations, members: IntArray, cost: str) -> FloatArray:
    """Each row's loss over the lowest of a frontier's `members` that cost no more, nats, (k,); NaN where it is infeasible."""
    order = members[np.lexsort((there.metrics["loss"][members], there.metrics[cost][members]))]
    lowest = np.minimum.accumulate(there.metrics["loss"][order])
    position = np.searchsorted(there.metrics[cost][order], there.metrics[cost], side="right") - 1
    lost = there.metrics["loss"] - lowest[np.maximum(position, 0)]
    return np.where(there.feasible & (position >= 0), lost, np.nan)


@dataclass(frozen=True)
class Optimum:
    """A design that is the pick of some cases: its key and their numbers, in order."""

    key: int
    cases: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Universal:
    """One design for all cases that have a pick; of least worst regret, since its loss is the same in every case.

    Where nothing is within the limits of all of them: the design that is in most, then of the lowest loss. regret: its
    loss over each case's pick, nats, (n,), NaN without a pick; violation: as in `Transfer`, (n,). `exact`: of the whole
    space; else among the members of all frontiers and all picks.
    """

    key: int
    fits: int
    of: int
    exact: bool
    regret: FloatArray
    violation: FloatArray

    @property
    def for_all(self) -> bool:
        """Whether it is within the limits of every case that has a pick."""
        return self.fits == self.of

    @property
    def worst(self) -> float:
        """The largest regret among the cases that it fits, nats."""
        return float(np.nanmax(np.where(self.violation <= 0.0, self.regret, np.nan)))


def optima(answers: Sequence[Answer]) -> tuple[Optimum, ...]:
    """The distinct picks, those of most cases first, then by their first case."""
    cases_of: dict[int, list[int]] = {}
    for i, answer in enumerate(answers):
        if answer.pick is not None:
            cases_of.setdefault(int(answer.pick.keys[0]), []).append(i)
    ordered = sorted(cases_of.items(), key=lambda item: (-len(item[1]), item[1][0]))
    return tuple(Optimum(key, tuple(cases)) for key, cases in ordered)


def best_for_all(answers: Answers) -> int | None:
    """Key of the design that fits most cases, of these the one of lowest loss, of these the first; of an enumerated
    space alone, None of a larger one and where no case has a pick."""
    if answers.fits is None or not answers.fits.any():
        return None
    problem = answers.answers[0].case.problem
    keys = np.flatnonzero(answers.fits == answers.fits.max())
    losses = rounded(problem.evaluate(problem.space.genotypes(keys), ("loss",)).metrics["loss"])
    return int(keys[np.argmin(losses)])


def universal(answers: Answers, transfer: Transfer, known: int | None) -> Universal | None:
    """The design for all cases; `known` is that of the whole space, evaluated with the transfers. None without a pick."""
    picked = np.array([answer.pick is not None for answer in answers.answers])
    if not picked.any():
        return None
    fits = (transfer.violations[picked] <= 0.0).sum(axis=0)
    if known is None:
        place = int(np.lexsort((rounded(transfer.losses), -fits))[0])
    else:
        place = int(np.searchsorted(transfer.keys, known))
    regret = transfer.losses[place] - np.array([answer.loss for answer in answers.answers])
    return Universal(
        int(transfer.keys[place]),
        int(fits[place]),
        int(picked.sum()),
        known is not None,
        regret,
        np.where(picked, transfer.violations[:, place], np.nan),
    )
