"""The same architectures on many devices: columns, counts, losses and operators once for all cases of one format."""

from collections.abc import Iterator, Sequence

import numpy as np

from nas.devices.cases import Case
from nas.problem.evaluations import Evaluations
from objectives.assessment import Assessment, on_devices
from search_spaces.arrays import IntArray

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
    found: dict[object, list[int]] = {}
    for i, case in enumerate(cases):
        found.setdefault(case.format, []).append(i)
    return [sorted(numbers, key=lambda i: cases[i].named) for numbers in found.values()]


def names_of(case: Case) -> tuple[str, ...]:
    """The metrics that a case's answer depends on."""
    asked = (*(o.name for o in case.problem.objectives), *(b.metric for b in case.budgets))
    return tuple(dict.fromkeys([*asked, "loss", "total_ms"]))


def every(cases: Sequence[Case]) -> IntArray:
    """All genotypes of the cases' space."""
    space = cases[0].problem.space
    return space.genotypes(np.arange(space.size))
