"""A space whose designs have formats of their own: each format is solved alone, exactly, and the answers are one frontier."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nas.frontier.dominance import frontier_rows
from nas.frontier.picks import PickRule
from nas.problem.evaluations import Evaluations, joined
from nas.problem.problem import Problem
from search_spaces.arrays import IntArray


def alone(problem: Problem) -> Iterator[Problem]:
    """The problem of each format of a space: its designs, its scenario, its law."""
    for name in problem.space.formats:
        yield replace(problem, space=problem.space.in_format(name), scenario=problem.scenario.at(name))


def together(problem: Problem, parts: list[tuple[Problem, IntArray]]) -> Evaluations:
    """The frontier of the members of every format's frontier, in file order: of what one dominates none can be on it."""
    keys = [problem.space.find(part.space.architectures(genotypes)) for part, genotypes in parts]
    found = problem.evaluate(problem.space.genotypes(np.sort(np.concatenate(keys))))
    return found[frontier_rows(found)]


def best(problem: Problem, rule: PickRule, picks: list[tuple[Problem, Evaluations | None]]) -> Evaluations | None:
    """The pick of every format's picks by a rule; ties as among all designs."""
    rows: Evaluations | None = None
    for part, pick in picks:
        if pick is not None:
            key = problem.space.find(part.space.architectures(pick.genotypes))
            row = problem.evaluate(problem.space.genotypes(key))
            rows = row if rows is None else joined(rows, row)
    if rows is None:
        return None
    row_of = rule.row(rows)
    return None if row_of is None else rows[row_of : row_of + 1]
