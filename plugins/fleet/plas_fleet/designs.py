"""Designs of a space by the cases that each fits: all evaluated, or of a larger space those that none beats, by sums of parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.additive_bounds import BrokenSum
from nas.exact.decomposition.branch_and_bound import Effort
from nas.exact.solution import BLOCK, LARGEST, way_of
from nas.problem.evaluations import Evaluations
from nas.problem.objective import built_in
from nas.problem.problem import Problem
from nas.problem.settings import each_setting
from plas_fleet.pattern_search import PatternSearch
from plas_fleet.patterns import MOST_CASES, Patterns, joined, patterns_of
from plas_range.answers import evaluated
from plas_range.cases import Case
from search_spaces.arrays import IntArray

Report = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs by the cases they fit; how they were covered, in words."""

    known: Patterns
    how: str


def designs_of(cases: Sequence[Case], report: Report) -> Designs:
    """The designs that a fleet may be made of.

    Raises:
        UsageError: cases that no fleet can be asked of, or a space that cannot be covered.
    """
    problems = [limited(case) for case in cases]
    refuse(cases)
    size = problems[0].space.size
    if all(way_of(problem)[0] == "parts" for problem in problems):
        try:
            return _by_parts(cases, problems, report)
        except BrokenSum as error:
            if size > LARGEST:
                raise UsageError(
                    f"fleet: expected metrics that add up from parts in a space of {size:,}, got one where {error.reason}; take a smaller space"
                ) from None
    known = joined(list(_blocks(cases, problems, report)))
    how = f"{size:,} architectures evaluated in each case"
    return Designs(known.reduced(), how)


def limited(case: Case) -> Problem:
    """The case's problem with all its limits as budgets, for the loss."""
    return replace(case.problem, objectives=(built_in("loss"),), budgets=case.budgets, queries=(), columns=())


def refuse(cases: Sequence[Case]) -> None:
    """See that a fleet can be asked for.

    Raises:
        UsageError: too many cases, several vocabularies.
    """
    if len(cases) > MOST_CASES:
        raise UsageError(f"fleet: expected at most {MOST_CASES} cases, got {len(cases)}; ask for fewer")
    vocabularies = sorted({case.problem.vocabulary for case in cases})
    if len(vocabularies) > 1:
        several = " and ".join(f"{size:,}" for size in vocabularies)
        raise UsageError(f"vocabulary: expected the same in all cases, since a model has one, got {several}; give one")


def _blocks(cases: Sequence[Case], problems: Sequence[Problem], report: Report) -> Iterator[Patterns]:
    """All designs, block by block, those that none of their block beats."""
    space = problems[0].space
    for first in range(0, space.size, BLOCK):
        keys = np.arange(first, min(first + BLOCK, space.size))
        genotypes = space.genotypes(keys)
        found = _in_every_case(cases, genotypes)
        yield patterns_of(found, [case.budgets for case in cases]).reduced()
        report(len(keys) * len(cases))


def _in_every_case(cases: Sequence[Case], genotypes: IntArray) -> list[Evaluations]:
    """Genotypes evaluated in every case.

    Raises:
        UsageError: the loss is not the same in all.
    """
    found = dict(evaluated(cases, genotypes))
    first = found[0].metrics["loss"]
    for number, evaluations in found.items():
        both = found[0].ok & evaluations.ok
        if not np.allclose(first[both], evaluations.metrics["loss"][both], rtol=1e-12, atol=0.0):
            raise UsageError(
                f"fleet: expected one loss of a design in all cases, got another in {cases[number].label} than in {cases[0].label}; "
                "ask for these cases alone"
            )
    return [found[number] for number in range(len(cases))]


def _by_parts(cases: Sequence[Case], problems: Sequence[Problem], report: Report) -> Designs:
    """The designs of a large space that none beats: setting by setting."""
    settings, space = [each_setting(problem) for problem in problems], problems[0].space
    places = [(case.format, case.named) for case in cases]
    parts, effort = [], Effort()
    for number in range(len(settings[0])):
        there = [of_case[number] for of_case in settings]
        own = [replace(case, problem=problem) for case, problem in zip(cases, there, strict=True)]
        search = PatternSearch(there, places, partial(_in_every_case, own), report)
        found = search.solve()
        parts.append(replace(found, keys=found.keys * space.n_settings + number))
        effort.add(search.effort)
    how = (
        f"{space.size:,} architectures covered by sums of parts of all cases at once: {effort.bounded:,} bounds, {effort.evaluated:,} "
        f"evaluated whole; sums and wholes differ by at most {effort.difference:.0e} of the value"
    )
    return Designs(joined(parts).reduced(), how)
