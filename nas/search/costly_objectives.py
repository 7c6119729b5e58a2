"""Objectives that ship and cost, with the settings that their study gives them; what they need of where they run."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType

from nas.errors import UsageError
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.problem.questions import Baseline
from nas.study.baselines import beside_tokens
from nas.study.configuration import StudyConfig
from nas.study.costly_settings import COSTLY
from objectives.plugins import importable
from search_spaces.space import SearchSpace


def furnished(
    config: StudyConfig, objectives: dict[str, Objective], space: SearchSpace
) -> tuple[StudyConfig, dict[str, Objective], list[str]]:
    """Configuration and metrics with settings that are complete, and what is to be said of them.

    Raises:
        UsageError: settings that are missing or of nothing, or what a metric cannot do in this study.
    """
    notices: list[str] = []
    for name in importable(COSTLY):
        if name in objectives:
            settings, prior, said = _module(name).settled(config, space)
            config = config.model_copy(update={name: settings})
            given = settings.model_dump(mode="json")
            objectives = objectives | {name: replace(objectives[name], prior=prior, settings=given)}
            notices += said
        elif getattr(config, name) is not None:
            asked = ", ".join(objectives)
            raise UsageError(
                f"{name}: expected {name} among the objectives or budgets with it, got {asked}; add it, or drop it"
            )
    return config, objectives, notices


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{COSTLY}.{name}")


def compared_with(
    published: list[Baseline], axis: Sequence[float], objectives: Mapping[str, Objective]
) -> tuple[list[Baseline], list[str]]:
    """The models to compare with, and what is said where an axis of tokens, or evaluating everything once more, leaves them out."""
    again = ", ".join(name for name, metric in objectives.items() if metric.settings is not None)
    if not (published and again):
        return beside_tokens(published, axis)
    names = ", ".join(known.label for known in published)
    return [], [f"{names} left out of the comparison, for which {again} of every design would be had once more"]


def refuse_without_workers(config: StudyConfig, problem: Problem) -> None:
    """Refuse to begin where nobody could evaluate: an answer is kept as it arrives from a worker.

    Raises:
        UsageError: no workers, or this machine lacks what they need.
    """
    for metric in problem.functions:
        if metric.settings is None or config.executor is not None:
            continue
        if config.workers is None:
            raise UsageError(
                f"workers: expected workers for {metric.name}, got none; add --workers 1 or more, or --executor"
            )
        _module(metric.name).refuse_here(metric.settings)
