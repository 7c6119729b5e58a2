"""Problems over settings: axes that are none of the architecture, but of how it is trained or run, as tokens are.

Such a problem is one problem per combination of settings, each over the same architectures. What is exact of each of
them is exact of all together: the frontier of a union is the frontier of the members' frontiers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.columns import EXPERTS_IN, PRECISIONS, SPECULATION, worded


def trained_on(law: Law, tokens: float) -> Law:
    """The law of designs that are trained on so many tokens, what few bits cost them included."""
    return law.model_copy(update={"tokens": tokens, "precision_tokens": None})


def _trained_on(scenario: Scenario, tokens: int) -> Scenario:
    return replace(scenario, law=trained_on(scenario.law, float(tokens)))


def _in_format(scenario: Scenario, place: int) -> Scenario:
    return scenario.at(PRECISIONS[place])


def _of_vocabulary(scenario: Scenario, vocabulary: int) -> Scenario:
    return scenario.of_vocabulary(vocabulary)


def _drafting(scenario: Scenario, place: int) -> Scenario:
    return scenario.drafting(SPECULATION[place])


def _with_experts_in(scenario: Scenario, place: int) -> Scenario:
    return scenario.with_experts_in(EXPERTS_IN[place])


def _on_device(scenario: Scenario, number: int) -> Scenario:
    return scenario.on_device(worded("device", np.array([number]))[0])


def _tied(scenario: Scenario, tied: int) -> Scenario:
    return scenario  # counts and times read the column alone


#: What a setting changes beside its column.
SCENARIOS: Mapping[str, Callable[[Scenario, int], Scenario]] = MappingProxyType(
    {
        "device": _on_device,
        "precision": _in_format,
        "tokens": _trained_on,
        "vocabulary": _of_vocabulary,
        "tied": _tied,
        "speculation": _drafting,
        "experts_in": _with_experts_in,
    }
)


def each_setting(problem: Problem) -> tuple[Problem, ...]:
    """A problem per combination of settings, in the order of their genes; their scenario is the combination's."""
    axes = {name: values.tolist() for name, values in problem.space.settings.items()}
    return tuple(in_setting(problem, dict(zip(axes, values, strict=True))) for values in product(*axes.values()))


def in_setting(problem: Problem, setting: Mapping[str, int]) -> Problem:
    """The problem of the architectures with one value, as stored, of each of these settings."""
    scenario = problem.scenario
    for name, value in setting.items():
        scenario = SCENARIOS[name](scenario, value)
    return replace(problem, space=problem.space.at(setting), scenario=scenario) if setting else problem


def tokens_of(problem: Problem) -> list[float]:
    """The tokens that a problem's losses are of, ascending: its axis of them, or the law's; none where the law says none."""
    axis = problem.space.settings.get("tokens")
    own = problem.scenario.law.tokens
    return axis.astype(float).tolist() if axis is not None else [] if own is None else [own]


def in_all_settings(found: Evaluations, number: int, problem: Problem) -> Evaluations:
    """Rows of the problem that is the number-th of `each_setting`, as rows of the whole problem."""
    keys = found.keys * problem.space.n_settings + number
    return replace(found, keys=keys, genotypes=problem.space.genotypes(keys))
