"""Sentences on a problem before it is searched: where its times, joules and losses are doubtful."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nas.problem.energy_words import about_energy
from nas.problem.problem import Problem
from nas.problem.wording import about_training
from nas.study.study_laws import notices_of_formats, priced_alone
from objectives.device import Calibration
from objectives.profile_choice import doubts
from objectives.scenario import Scenario
from objectives.transfers import Conditions, extrapolations
from objectives.typical.sustained import about_load


def notices_of(problem: Problem, limits: Sequence[str]) -> list[str]:
    """Say what must be known of a problem: of its device, times, limits (given), energy, law and training."""
    scenario, law = problem.scenario, problem.scenario.law
    warnings = [told for each in scenario.by_device.values() if (told := each.device.warning())]
    experts = bool((problem.space.experts > 1).any())
    on_each = list(scenario.by_device.values()) if problem.of_energy else []
    of_energy = list(dict.fromkeys(text for each in on_each for text in about_energy(each, experts=experts)))
    of_law = [*priced_alone(law), *notices_of_formats(law, [*scenario.by_format]), *about_training(problem)]
    return [*warnings, *doubtful_times(scenario, experts=experts), *limits, *of_energy, *of_law]


def larger_rows(problem: Problem) -> list[str]:
    """Say of which FFNs a format writes down projections in larger types than they are counted in, as whole blocks do not fill their rows."""
    sizes, found = problem.space.expert_sizes[problem.space.ffn_gene.valid], []
    for each in problem.scenario.formats or (problem.scenario,):
        types = () if each.precision.stored is None else each.precision.stored.types_of("down")
        block = max((one.weights for one in types if one.fallback is not None), default=1)
        left = np.unique(sizes[sizes % block != 0]).tolist()
        if left:
            more = max(sum(one.fitting(size).per_weight for one in types) for size in left)
            share = more / sum(one.per_weight for one in types) - 1.0
            found.append(
                f"{each.precision.name} counts FFNs as whole blocks of {block} weights; of {len(left)} of the space's sizes "
                f"({left[0]:,} to {left[-1]:,}) llama.cpp writes down projections in larger types, up to {100 * share:.0f} % more bytes of these"
            )
    return found


def doubtful_times(scenario: Scenario, *, experts: bool) -> list[str]:
    """Say how far off times may be: for each device and format that designs may have, with experts or without."""
    if scenario.devices:
        told: dict[str, list[str]] = {}
        for name, placed in scenario.by_device.items():
            for text in doubtful_times(placed, experts=experts):
                told.setdefault(text, []).append(name)
        return [_of_devices(names, len(scenario.devices), text) for text, names in told.items()]
    each = {name: one.calibration for name, one in scenario.by_format.items()}
    of_load = about_load(scenario.device, scenario.sustained)
    outside = extrapolated(each, scenario.conditions(experts=experts))
    return [*doubts(scenario.device, scenario.calibration), *of_load, *outside]


def _of_devices(names: list[str], every: int, text: str) -> str:
    """What is so of some devices, with three of their names; of all without."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return text if len(names) == every else f"{', '.join(names[:3])}{more}: {text}"


def extrapolated(profiles: Mapping[str, Calibration | None], asked: Conditions) -> list[str]:
    """Say each way in which times lie outside of what the profile of a format was measured with; what is not so of all of them names its own."""
    found: dict[str, list[str]] = {}
    for name, calibration in profiles.items():
        for transfer in extrapolations(calibration, replace(asked, precision=name)) if calibration else []:
            found.setdefault(f"times are extrapolated: {transfer.sentence}", []).append(name)
    return [said if len(names) == len(profiles) else f"{' and '.join(names)}: {said}" for said, names in found.items()]
