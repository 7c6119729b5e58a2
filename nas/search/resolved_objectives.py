"""Objectives that ship and cost, with the settings that their study gives them; what they need of where they run."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType

from nas.errors import UsageError
from nas.problem.expensive_objectives import EXPENSIVE
from nas.problem.objective import Baseline, Objective
from nas.problem.problem import Problem
from nas.study.configuration import StudyConfig
from search_spaces.space import SearchSpace


def resolve_expensive_objectives(
    config: StudyConfig, objectives: dict[str, Objective], space: SearchSpace
) -> tuple[StudyConfig, dict[str, Objective], list[str]]:
    """Configuration and metrics with settings that are complete, and notices.

    Raises:
        UsageError: settings that are missing or of nothing, or what a metric cannot do in this study.
    """
    notices: list[str] = []
    for name in EXPENSIVE:
        if name in objectives:
            settings, prior, lines = _module(name).resolved_settings(config, space)
            config = config.model_copy(update={name: settings})
            given = settings.model_dump(mode="json")
            metric = replace(objectives[name], prior=prior, settings=given)
            objectives = objectives | {name: replace(metric, fidelities=settings.fidelities, keep=settings.share)}
            notices += lines
        elif getattr(config, name) is not None:
            asked = ", ".join(objectives)
            raise UsageError(
                f"{name}: expected {name} among the objectives or budgets with it, got {asked}; add it, or drop it"
            )
    _refuse_other_steps(config, objectives)
    return config, objectives, notices


def _refuse_other_steps(config: StudyConfig, objectives: Mapping[str, Objective]) -> None:
    """Refuse fidelities that cannot rank designs: of two metrics at once, or of none that is minimised.

    Raises:
        UsageError: naming the metrics.
    """
    stepped = [metric.name for metric in objectives.values() if metric.fidelities]
    if len(stepped) > 1:
        raise UsageError(
            f"fidelities: expected steps of one metric, got {', '.join(stepped)}; give the others one fidelity"
        )
    if stepped and stepped[0] not in config.objectives:
        raise UsageError(
            f"fidelities: expected steps of an objective, got {stepped[0]}, a budget alone; minimise it, or drop them"
        )


def _module(name: str) -> ModuleType:
    return importlib.import_module(EXPENSIVE[name])


def compared_with(
    published: list[Baseline], axis: Sequence[float] | None, objectives: Mapping[str, Objective]
) -> tuple[list[Baseline], list[str]]:
    """The models to compare with, and a notice where an axis of tokens, or evaluating everything once more, leaves them out."""
    again = ", ".join(name for name, metric in objectives.items() if metric.settings is not None)
    if not published or not (again or axis):
        return published, []
    why = (
        f", for which {again} of every design would be had once more"
        if again
        else ": tokens are an axis, on which nobody says where it stands"
    )
    names = ", ".join(known.label for known in published)
    return [], [f"{names} left out of the comparison{why}"]


def refuse_without_workers(config: StudyConfig, problem: Problem) -> None:
    """Refuse to begin where no evaluation is possible: an answer is kept as it arrives from a worker.

    Raises:
        UsageError: no workers, or this machine lacks what they need.
    """
    for metric in problem.functions:
        if config.executor is not None or (metric.settings is None and not metric.fidelities):
            continue
        if config.workers is None:
            raise UsageError(
                f"workers: expected workers for {metric.name}, got none; add --workers 1 or more, or --executor"
            )
        if metric.settings is not None:
            _module(metric.name).refuse_here(metric.settings)
