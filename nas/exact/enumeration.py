"""The exact frontier and picks of a whole space, by evaluating every architecture in blocks."""

from collections.abc import Callable, Iterator

import numpy as np

from nas.exact.checkpoint import SolverCheckpoint, section_of
from nas.problem.dominance import frontier_rows
from nas.problem.evaluations import Evaluations, joined
from nas.problem.picks import PickRule
from nas.problem.problem import Problem

BLOCK = 131_072


def enumerate_all(
    problem: Problem,
    rules: tuple[PickRule, ...],
    metrics: tuple[str, ...],
    report: Callable[[int], None],
    checkpoint: SolverCheckpoint,
) -> tuple[Evaluations, tuple[Evaluations | None, ...]]:
    """The feasible frontier and the best architecture by each rule, with the given metrics; without objectives no frontier."""
    section = section_of("enumeration", problem, *(str(rule) for rule in rules))
    known = checkpoint.read(section)
    frontier = problem.evaluate(_genotypes(problem, known.get("frontier", [])), metrics)
    picks = [_row(problem, key, metrics) for key in known.get("picks", [None] * len(rules))]
    done = known.get("done", 0)
    report(done)
    for block in blocks(problem, metrics, done):
        if problem.objectives:
            both = joined(frontier, block[frontier_rows(block)])
            frontier = both[frontier_rows(both)]
        picks = [rule.better(old, block) for rule, old in zip(rules, picks, strict=True)]
        done += len(block)
        if checkpoint.due:
            keys = [None if pick is None else int(pick.keys[0]) for pick in picks]
            checkpoint.write(section, {"done": done, "frontier": frontier.keys.tolist(), "picks": keys})
        report(len(block))
    return frontier, tuple(picks)


def blocks(problem: Problem, metrics: tuple[str, ...], start: int = 0) -> Iterator[Evaluations]:
    """All architectures from one on, evaluated block by block."""
    for first in range(start, problem.space.size, BLOCK):
        keys = np.arange(first, min(first + BLOCK, problem.space.size))
        yield problem.evaluate(problem.space.genotypes(keys), metrics)


def _genotypes(problem: Problem, keys: list[int]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return problem.space.genotypes(np.array(keys, dtype=np.int64))


def _row(problem: Problem, key: int | None, metrics: tuple[str, ...]) -> Evaluations | None:
    return None if key is None else problem.evaluate(_genotypes(problem, [key]), metrics)
