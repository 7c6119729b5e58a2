"""The exact frontier and picks of a whole space: by sums of parts where its metrics allow, else by enumeration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nas.decomposition.frontier import PARTNERS, SumsOfParts
from nas.decomposition.search import Exceeded
from nas.decomposition.sums import undeclared
from nas.enumeration import enumerate_all
from nas.errors import UsageError
from nas.evaluations import Evaluations
from nas.notebook import Notebook
from nas.objective import Budget, built_in
from nas.picks import PickRule, best_row
from nas.problem import Problem

LARGEST = 10**8  # architectures that are enumerated where parts are not declared
SMALL = 100_000  # architectures whose enumeration is quicker than setting up sums
QUICK = 2_000_000  # architectures whose enumeration takes a second or two
DRAWS_PER_EVALUATION = 4  # losses under a law's draws that cost as much as all metrics once
SECONDS = 30_000_000  # items whose bounds take a few seconds
Way = Literal["parts", "enumeration"]


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The frontier of every feasible architecture, the picks, how many were covered and how."""

    frontier: Evaluations
    picks: tuple[Evaluations | None, ...]
    covered: int
    way: Way
    explanation: str


def way_of(problem: Problem, rules: tuple[PickRule, ...] = ()) -> tuple[Way, str]:
    """How the space can be covered, and what stands against sums of parts ("" if nothing).

    Raises:
        UsageError: parts are not declared and the space is too large to enumerate.
    """
    size, obstacle = problem.space.size, _obstacle(problem, rules)
    if size <= SMALL:
        return "enumeration", obstacle
    if not obstacle:
        return "parts", ""
    if size > LARGEST:
        raise UsageError(
            f"exact: expected at most {LARGEST:,} architectures where {obstacle}, got {size:,}; "
            "declare the metric's parts, drop it, or choose a search strategy"
        )
    return "enumeration", obstacle


def _obstacle(problem: Problem, rules: tuple[PickRule, ...]) -> str:
    missing = undeclared(problem, metrics_of(problem, rules))
    if missing is not None:
        return f"{missing} does not say how it adds up from parts"
    depths, kvs = len(problem.space.depths), int(problem.space.kv_gene.counts.sum())
    if depths * kvs > PARTNERS:
        return f"depth, width and KV heads alone have {depths * kvs:,} combinations"
    return ""


def metrics_of(problem: Problem, rules: tuple[PickRule, ...]) -> tuple[str, ...]:
    """What dominance, budgets, picks and their ties depend on."""
    asked = [*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets)]
    asked += [rule.budget.metric for rule in rules if rule.budget is not None]
    return tuple(dict.fromkeys([*asked, "loss", "total_ms"] if rules else asked))


def solve(
    problem: Problem,
    rules: tuple[PickRule, ...] = (),
    report: Callable[[int], None] = lambda covered: None,
    notebook: Notebook | None = None,
) -> ExactSolution:
    """The exact answers; `report` is told how many more architectures are settled.

    Raises:
        UsageError: more architectures than can be covered.
    """
    way, obstacle = way_of(problem, rules)
    notebook = notebook or Notebook()
    if way == "parts":
        return _by_parts(problem, rules, report, notebook)
    frontier, picks = enumerate_all(problem, rules, metrics_of(problem, rules), report, notebook)
    because = f", since {obstacle}" if obstacle else ""
    said = f"every one of {problem.space.size:,} architectures was evaluated{because}"
    return _solution(problem, frontier, picks, "enumeration", said)


def quick_frontier(problem: Problem) -> ExactSolution | None:
    """The exact frontier where it can be had in seconds; a user's own metrics are never called for it."""
    if problem.functions:
        return None
    try:
        way, _ = way_of(problem)
        if way == "enumeration":
            draws = len(problem.scenario.law.drawn) if any("@" in name for name in metrics_of(problem, ())) else 1
            return solve(problem) if problem.space.size * max(1, draws // DRAWS_PER_EVALUATION) <= QUICK else None
        return _by_parts(problem, (), lambda _: None, Notebook(), SECONDS)
    except (UsageError, Exceeded):
        return None


def _by_parts(
    problem: Problem,
    rules: tuple[PickRule, ...],
    report: Callable[[int], None],
    notebook: Notebook,
    most: int | None = None,
) -> ExactSolution:
    sums = SumsOfParts(problem, metrics_of(problem, rules), notebook, most)
    frontier = sums.frontier(problem.objectives, problem.budgets, report=report)
    picks = tuple(lowest_loss(sums, problem.budgets, rule.budget) for rule in rules)
    effort = sums.effort
    said = (
        f"{problem.space.size:,} architectures were covered by sums of parts: {effort.bounded:,} bounds, "
        f"{effort.evaluated:,} architectures evaluated whole; sums and wholes differ by at most {sums.difference:.0e} of the value"
    )
    nothing = problem.evaluate(np.zeros((0, len(problem.space.gene_sizes)), dtype=np.int64))
    return _solution(problem, nothing if frontier is None else frontier, picks, "parts", said)


def lowest_loss(sums: SumsOfParts, budgets: tuple[Budget, ...], asked: Budget | None = None) -> Evaluations | None:
    """The pick within budgets and one more, one row: the frontier of the loss alone, ties broken as everywhere."""
    best = sums.frontier((built_in("loss"),), (*budgets, *([asked] if asked else [])), ("total_ms",))
    if best is None:
        return None
    row = best_row(best, asked)
    return None if row is None else best[row : row + 1]


def _solution(
    problem: Problem, frontier: Evaluations, picks: tuple[Evaluations | None, ...], way: Way, said: str
) -> ExactSolution:
    """Final values, every metric, from the ordinary code on whole architectures."""
    whole = problem.evaluate(frontier.genotypes)
    found = tuple(None if pick is None else problem.evaluate(pick.genotypes) for pick in picks)
    return ExactSolution(whole, found, problem.space.size, way, said)
