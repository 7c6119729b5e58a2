"""The exact frontier and picks of a whole space, by enumeration in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nas.dominance import frontier_rows
from nas.errors import UsageError
from nas.evaluations import Evaluations, joined
from nas.picks import PickRule
from nas.problem import Problem

BLOCK = 131_072
LARGEST = 10**8
INSTANT = 2_000_000  # architectures whose enumeration takes a second or two


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The frontier of every feasible architecture, the picks, and how many were covered."""

    frontier: Evaluations
    picks: tuple[Evaluations | None, ...]
    covered: int
    feasible: int


def solve(
    problem: Problem, rules: tuple[PickRule, ...] = (), progress: Callable[[int], None] | None = None
) -> ExactSolution:
    """Evaluate every architecture in blocks, keeping the frontier and the best per pick.

    Raises:
        UsageError: more architectures than enumeration can cover.
    """
    space = problem.space
    if space.size > LARGEST:
        raise UsageError(
            f"exact: expected a space of at most {LARGEST:,} architectures, got {space.size:,}; choose a search strategy"
        )
    frontier: Evaluations | None = None
    picks: list[Evaluations | None] = [None] * len(rules)
    feasible = 0
    for block in blocks(problem):
        feasible += int(block.feasible.sum())
        frontier = _merged(frontier, block)
        picks = [rule.better(old, block) for rule, old in zip(rules, picks, strict=True)]
        if progress is not None:
            progress(len(block))
    assert frontier is not None
    return ExactSolution(frontier, tuple(picks), space.size, feasible)


def blocks(problem: Problem) -> Iterator[Evaluations]:
    """All architectures of the space, evaluated block by block."""
    for genotypes in problem.space.enumerate(BLOCK):
        yield problem.evaluate(genotypes)


def _merged(frontier: Evaluations | None, block: Evaluations) -> Evaluations:
    best = block[frontier_rows(block)]
    if frontier is None:
        return best
    both = joined(frontier, best)
    return both[frontier_rows(both)]
