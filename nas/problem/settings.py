"""Problems over settings: axes that are none of the architecture, but of how it is trained or run, as tokens are.

Such a problem is one problem per combination of settings, each over the same architectures. What is exact of each of
them is exact of all together: the frontier of a union is the frontier of the members' frontiers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from objectives.loss_law.law import Law
from objectives.scenario import Scenario
from search_spaces.columns import worded


def trained_on(law: Law, tokens: float) -> Law:
    """The law of designs that are trained on so many tokens, what few bits cost them included."""
    return law.model_copy(update={"tokens": tokens, "precision_tokens": None})


def _trained_on(scenario: Scenario, tokens: int) -> Scenario:
    return replace(scenario, law=trained_on(scenario.law, float(tokens)))


#: What a setting, by its column, changes in the scenario; of one table or two counts and times read the column alone.
SCENARIOS: Mapping[str, Callable[[Scenario, Any], Scenario]] = MappingProxyType(
    {
        "device": Scenario.on_device,
        "precision": Scenario.at,
        "tokens": _trained_on,
        "vocabulary": Scenario.of_vocabulary,
        "tied": lambda scenario, tied: scenario,
        "speculation": Scenario.drafting,
        "experts_in": Scenario.with_experts_in,
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
        scenario = SCENARIOS[name](scenario, worded(name, np.array([value])).tolist()[0])
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
