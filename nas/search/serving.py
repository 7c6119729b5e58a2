"""How the designs of a study are served: its words with the models and devices that they name, and what public rows say."""

from dataclasses import replace
from typing import Any

from nas.errors import UsageError
from nas.study.configuration import StudyConfig
from nas.study.serving_keys import ServingConfig
from objectives.scenario import Scenario
from objectives.serving import Serving
from objectives.typical.serving import typical_serving
from search_spaces.architectures import Architectures
from search_spaces.columns import OF_SERVING
from search_spaces.space import SearchSpace


def served(
    scenario: Scenario, config: StudyConfig, axes: set[str], draft: Architectures | None, reader: Scenario | None
) -> Scenario:
    """The scenario as the study serves its designs; of what is an axis designs say it themselves.

    Raises:
        UsageError: what does not go together, or what the device lacks.
    """
    asked = config.serving
    if asked == ServingConfig() and not axes & {*OF_SERVING}:
        return scenario
    stated: dict[str, Any] = asked.figures()
    stated |= {name: words[0] for name in OF_SERVING if (words := getattr(asked, name)) and name not in axes}
    serving = replace(
        typical_serving(),
        draft=None if draft is None else draft.with_vocabulary(config.head[0], tied=config.head[1]),
        hot=asked.hot_experts.hot(),
        prompts=None if reader is None else replace(reader, serving=Serving(link=asked.phases.link or 0.0)),
        **stated,
    )
    serving = replace(serving, acceptance={**serving.acceptance, **asked.acceptances()})
    _refuse(scenario, config, serving, axes)
    return scenario.served(serving)


def slow_words(config: StudyConfig, space: SearchSpace) -> list[str]:
    """Where experts may lie in a study."""
    return space.specification.axes.experts_in or config.serving.experts_in


def _refuse(scenario: Scenario, config: StudyConfig, serving: Serving, axes: set[str]) -> None:
    """Refuse what cannot be priced, by name.

    Raises:
        UsageError: the first of it.
    """
    asked, device = config.serving, scenario.device
    if asked.experts_in != [] and asked.experts_in != ["fast"] and device.slow_memory is None:
        raise UsageError(
            f"experts_in: expected a device with slow memory, got {device.name}; give slow_memory: {{bandwidth, capacity}} in its file"
        )
    if "draft" in asked.drafters and serving.draft is None:
        raise UsageError("draft: expected a model beside speculation draft:N, got none; add --draft qwen2.5_0.5b")
    if serving.draft is not None and "draft" not in asked.drafters:
        raise UsageError(
            "draft: expected speculation draft:N beside a model that drafts, got none; add --speculation draft:4"
        )
    if "draft" in asked.drafters and "vocabulary" in axes:
        raise UsageError(
            "draft: expected one vocabulary beside a model that drafts, which has the target's, got an axis of them; give one"
        )
    if scenario.cached:
        raise UsageError(
            f"serving: expected times without a cache tier, got the profile of {device.name}, which has cache_efficiency; "
            "add --calibration datasheet, or calibrate without it"
        )
