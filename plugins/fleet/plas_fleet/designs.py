"""Designs of a space by the cases that each fits: all evaluated, or of a larger space those that none beats, by sums of parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nas.errors import UsageError
from nas.exact.decomposition.additive_bounds import BrokenSum
from nas.exact.solution import BLOCK, LARGEST, way_of
from nas.problem.evaluations import Evaluations
from nas.problem.objective import built_in
from nas.problem.problem import Problem
from nas.problem.settings import each_setting
from plas_fleet.pattern_search import OpenPatterns, PatternSearch, merged
from plas_fleet.patterns import MOST_CASES, Patterns, clipped, joined, patterns_of
from plas_fleet.question import FleetConfig
from plas_range.answers import evaluated
from plas_range.cases import Case
from search_spaces.arrays import FloatArray, IntArray

LARGEST_FAMILY = 2_000_000  # architectures of a space that is searched for families
Report = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs by the cases they fit; `unsettled`: what may be besides where time was over; how they were covered, in words."""

    known: Patterns
    unsettled: Patterns
    how: str


def designs_of(cases: Sequence[Case], asked: FleetConfig, deadline: float, report: Report) -> Designs:
    """The designs that a fleet may be made of; for a family every design.

    Raises:
        UsageError: cases that no fleet can be asked of, or a space that cannot be covered.
    """
    problems = [limited(case, asked.cost) for case in cases]
    refuse(cases, problems[0], asked)
    size = problems[0].space.size
    if asked.family is None and all(way_of(problem)[0] == "parts" for problem in problems):
        try:
            return _by_parts(cases, problems, asked, deadline, report)
        except BrokenSum as error:
            if size > LARGEST:
                raise UsageError(
                    f"fleet: expected metrics that add up from parts in a space of {size:,}, got one where {error.reason}; take a smaller space"
                ) from None
    parts = list(_blocks(cases, problems, asked, report))
    known = joined(parts)
    how = f"{size:,} architectures evaluated in each case"
    return Designs(known if asked.family else known.reduced(), Patterns.none(), how)


def limited(case: Case, cost: str | None) -> Problem:
    """The case's problem with all its limits as budgets, for loss and the cost of training."""
    objectives = (built_in("loss"), *(() if cost is None else (built_in(cost),)))
    return replace(case.problem, objectives=objectives, budgets=case.budgets, queries=(), columns=())


def refuse(cases: Sequence[Case], problem: Problem, asked: FleetConfig) -> None:
    """See that a fleet can be asked for.

    Raises:
        UsageError: too many cases, several vocabularies, a cost that nothing states, a space without such families.
    """
    if len(cases) > MOST_CASES:
        raise UsageError(f"fleet: expected at most {MOST_CASES} cases, got {len(cases)}; ask for fewer")
    vocabularies = sorted({case.problem.vocabulary for case in cases})
    if len(vocabularies) > 1:
        several = " and ".join(f"{size:,}" for size in vocabularies)
        raise UsageError(f"vocabulary: expected the same in all cases, since a model has one, got {several}; give one")
    if asked.cost is not None:
        _refuse_unstated(problem, asked.cost)
    space = problem.space
    if asked.family is not None and space.size > LARGEST_FAMILY:
        raise UsageError(
            f"family: expected a space of at most {LARGEST_FAMILY:,} architectures, which are all evaluated, got {space.size:,}; "
            "take a smaller space, or leave --family out"
        )
    if asked.family == "depth" and space.mixed:
        raise UsageError(
            f"family: expected layers of one kind, so that a shallower model is the first layers of a deeper one, got space {space.name} "
            "with layers as an axis; take --family experts, or another space"
        )


def _refuse_unstated(problem: Problem, cost: str) -> None:
    try:
        problem.evaluate(problem.space.genotypes(np.zeros(1, dtype=np.int64)), (cost,))
    except ValueError as error:
        text = str(error)
        raise UsageError(f"training_budget: {text}") from None


def _blocks(
    cases: Sequence[Case], problems: Sequence[Problem], asked: FleetConfig, report: Report
) -> Iterator[Patterns]:
    """All designs, block by block; of no family those alone that none of their block beats."""
    space = problems[0].space
    for first in range(0, space.size, BLOCK):
        keys = np.arange(first, min(first + BLOCK, space.size))
        genotypes = space.genotypes(keys)
        found = _in_every_case(cases, genotypes)
        block = patterns_of(found, [case.budgets for case in cases], _costs(problems[0], genotypes, asked))
        yield block if asked.family else block.reduced()
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


def _costs(problem: Problem, genotypes: IntArray, asked: FleetConfig) -> FloatArray | None:
    if asked.cost is None:
        return None
    return clipped(problem.evaluate(genotypes, (asked.cost,)).metrics[asked.cost], asked.most_cost)


def _by_parts(
    cases: Sequence[Case], problems: Sequence[Problem], asked: FleetConfig, deadline: float, report: Report
) -> Designs:
    """The designs of a large space that none beats: setting by setting."""
    settings, space = [each_setting(problem) for problem in problems], problems[0].space
    places = [(case.format, case.named) for case in cases]
    parts = []
    for number in range(len(settings[0])):
        there = [of_case[number] for of_case in settings]
        own = [replace(case, problem=problem) for case, problem in zip(cases, there, strict=True)]
        search = PatternSearch(
            there, places, partial(_in_every_case, own), asked.cost, asked.most_cost, deadline, report
        )
        parts.append(_renumbered(search.solve(), space.n_settings, number))
    found = merged(parts)
    effort = found.effort
    how = (
        f"{space.size:,} architectures covered by sums of parts of all cases at once: {effort.bounded:,} bounds, {effort.evaluated:,} "
        f"evaluated whole; sums and wholes differ by at most {effort.difference:.0e} of the value"
    )
    return Designs(found.known, found.unsettled, how)


def _renumbered(found: OpenPatterns, settings: int, number: int) -> OpenPatterns:
    """Keys of one setting's space as those of the whole."""
    return replace(found, known=replace(found.known, keys=found.known.keys * settings + number))
