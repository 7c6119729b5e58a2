"""Each case's exact frontier and pick, and what every budget holds back; one evaluation for all cases of a format."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nas.exact.infeasibility import diagnosed
from nas.exact.solution import SMALL, solve
from nas.problem.diagnosis import Diagnosis, diagnose
from nas.problem.evaluations import Evaluations, frontier_rows, rounded
from nas.problem.objective import Budget
from nas.problem.picks import PickRule
from objectives.assessment import Assessment, on_devices
from plas_range.cases import Case
from search_spaces.arrays import BoolArray, FloatArray, IntArray

Report = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Answer:
    """A case's exact frontier within the problem's budgets, and the pick within the question's too: one row, or None.

    without: the lowest loss with one limit left out, by metric (NaN where nothing fits even then); a limit binds where
    it is lower. diagnosis: why nothing fits, where nothing does.
    """

    case: Case
    frontier: Evaluations
    pick: Evaluations | None
    without: dict[str, float]
    diagnosis: Diagnosis | None

    @property
    def loss(self) -> float:
        """The pick's loss; NaN without one."""
        return float("nan") if self.pick is None else float(self.pick.metrics["loss"][0])

    @property
    def binding(self) -> tuple[str, ...]:
        """Metrics whose limit alone costs loss, what costs most first; ties, at 12 digits, cost nothing."""
        if self.pick is None:
            return ()
        loss = float(rounded(np.array([self.loss]))[0])
        gains = {metric: loss - float(rounded(np.array([lower]))[0]) for metric, lower in self.without.items()}
        return tuple(sorted((m for m, gain in gains.items() if gain > 0), key=lambda m: -gains[m]))


@dataclass(frozen=True, eq=False)
class Answers:
    """All answers, in the order of the cases; of an enumerated space `fits`, in how many answered cases each
    architecture is within all limits, (size,)."""

    answers: tuple[Answer, ...]
    fits: IntArray | None

    @property
    def proof(self) -> str:
        """How the answers were proved."""
        size = f"{self.answers[0].case.problem.space.size:,}"
        if self.fits is not None:
            return f"exact: {size} architectures evaluated in each"
        return f"exact: {size} architectures covered in each, as by run --algo exact"


def answered(cases: Sequence[Case], report: Report) -> Answers:
    """The exact answers; `report` receives how many more architectures are settled.

    A small space is evaluated whole, once for all cases of a format and device; a larger one is solved case by case.

    Raises:
        UsageError: a larger space cannot be covered.
    """
    if cases[0].problem.space.size > SMALL:
        return Answers(tuple(_solved(case, report) for case in cases), None)
    by_case: dict[int, Answer] = {}
    fits = np.zeros(cases[0].problem.space.size, dtype=np.int64)
    space = cases[0].problem.space
    for i, everything in evaluated(cases, space.genotypes(np.arange(space.size))):
        by_case[i] = _among(cases[i], everything)
        fits += within(everything, cases[i].budgets) & (by_case[i].pick is not None)
        report(len(everything))
    return Answers(tuple(by_case[i] for i in range(len(cases))), fits)


def within(evaluations: Evaluations, budgets: Sequence[Budget]) -> BoolArray:
    """Which rows were evaluated and meet every limit, (n,)."""
    met = evaluations.ok
    for budget in budgets:
        met = met & (budget.violation(evaluations.metrics[budget.metric]) <= 0.0)
    return met


def _among(case: Case, everything: Evaluations) -> Answer:
    """The answer of a space that was evaluated whole."""
    rule = PickRule.for_query(case.question)
    frontier, row = everything[frontier_rows(everything)], rule.row(everything)
    if row is None:
        return Answer(case, frontier, None, {}, diagnose(replace(everything, budgets=case.budgets)))
    loss = everything.metrics["loss"]
    without = {b.metric: _lowest(loss, within(everything, _others(case, b))) for b in case.limits}
    return Answer(case, frontier, everything[row : row + 1], without, None)


def _lowest(loss: FloatArray, rows: BoolArray) -> float:
    return float(loss[rows].min()) if rows.any() else float("nan")


def _others(case: Case, budget: Budget) -> tuple[Budget, ...]:
    """A case's limits without those on one metric."""
    return tuple(other for other in case.budgets if other.metric != budget.metric)


def _solved(case: Case, report: Report) -> Answer:
    """The answer of a space that is too large to hold: its frontier and pick, then the picks without each limit."""
    problem = case.problem
    solution = solve(problem, (PickRule.for_query(case.question),), report)
    pick = solution.picks[0]
    without, why = {}, None
    if pick is None:
        limited = replace(problem, budgets=case.budgets)
        why = diagnosed(limited, problem.evaluate(problem.space.sample(1, np.random.default_rng(0))))
    else:
        rules = tuple(PickRule(None, _others(case, budget)) for budget in case.limits)
        free = replace(problem, budgets=(), objectives=())
        lower = solve(free, rules).picks
        without = {
            b.metric: float(p.metrics["loss"][0]) for b, p in zip(case.limits, lower, strict=True) if p is not None
        }
    return Answer(case, solution.frontier, pick, without, why)


AT_ONCE = 16  # devices whose times are held at once


def evaluated(cases: Sequence[Case], genotypes: IntArray) -> Iterator[tuple[int, Evaluations]]:
    """Every case's number with its evaluations of the genotypes, in the order of formats: one format after the other.

    Metrics are those that dominance, budgets, picks and their ties ask for.
    """
    for numbers in _alike(cases):
        for start in range(0, len(numbers), AT_ONCE):
            part = numbers[start : start + AT_ONCE]
            if start == 0:
                problem = cases[part[0]].problem
                first = Assessment(problem.architectures(genotypes), problem.scenario)
            devices = {cases[i].named: i for i in part}
            there = on_devices(first, [cases[i].problem.scenario for i in devices.values()])
            assessments = dict(zip(devices, there, strict=True))
            for i in part:
                case = cases[i]
                yield i, case.problem.evaluate(genotypes, names_of(case), assessment=assessments[case.named])


def _alike(cases: Sequence[Case]) -> list[list[int]]:
    """Numbers of the cases of each format, those of one device beside one another."""
    by_format: dict[object, list[int]] = {}
    for i, case in enumerate(cases):
        by_format.setdefault(case.format, []).append(i)
    return [sorted(numbers, key=lambda i: cases[i].named) for numbers in by_format.values()]


def names_of(case: Case) -> tuple[str, ...]:
    """The metrics that a case's answer depends on."""
    names = (*(o.name for o in case.problem.objectives), *(b.metric for b in case.budgets))
    return tuple(dict.fromkeys([*names, "loss", "total_ms"]))
