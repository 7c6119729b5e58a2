"""The exact frontier and picks of a whole space, by evaluating every architecture in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from nas.exact.checkpoint import SolverCheckpoint, section_of
from nas.problem.dominance import frontier_rows
from nas.problem.evaluations import Evaluations, joined
from nas.problem.objective import Budget, Objective
from nas.problem.picks import PickRule, best_row
from nas.problem.problem import Problem

BLOCK = 131_072


class Enumerated:
    """A small problem's architectures, all evaluated: the answers of `SettingBySetting` read off."""

    def __init__(self, problem: Problem, metrics: tuple[str, ...]) -> None:
        self.problem = problem
        self.everything = problem.evaluate(problem.space.genotypes(np.arange(problem.space.size)), metrics)

    def lowest(self, budgets: tuple[Budget, ...], least: str = "loss") -> Evaluations | None:
        """The pick within budgets, one row: the least of the loss or of another metric, ties broken as everywhere."""
        row = best_row(replace(self.everything, budgets=budgets), None, of=least)
        return None if row is None else self.everything[row : row + 1]

    def frontier(self, objectives: tuple[Objective, ...], budgets: tuple[Budget, ...]) -> Evaluations | None:
        """The feasible frontier with all ties, in file order; None when nothing is feasible."""
        names = tuple(objective.name for objective in objectives)
        whole = replace(self.everything, objectives=names, budgets=budgets)
        rows = frontier_rows(whole)
        return whole[rows] if len(rows) else None


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
