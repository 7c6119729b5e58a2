"""How the designs of a study are served: its words with the models and devices that they name, and what public rows say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nas.errors import UsageError
from nas.study.configuration import StudyConfig
from nas.study.serving_keys import ServingConfig
from objectives.scenario import Scenario
from objectives.serving import HotExperts, Serving, shipped, typical_serving, with_typical_rates
from search_spaces.architectures import Architectures
from search_spaces.columns import OF_SERVING
from search_spaces.space import SearchSpace


def served(
    scenario: Scenario, config: StudyConfig, space: SearchSpace, draft: Architectures | None, reader: Scenario | None
) -> Scenario:
    """The scenario as the study serves its designs; of what is an axis designs say it themselves.

    Raises:
        UsageError: what does not go together, or what the device lacks.
    """
    asked, words = config.serving, words_of(config, space)
    if asked == ServingConfig() and not words:
        return scenario
    hot, known, own = asked.hot_experts, typical_serving(), asked.acceptances()
    stated: dict[str, Any] = {name: each[0] for name, each in words.items() if len(each) == 1}
    serving = replace(
        known,
        draft=None if draft is None else draft.with_vocabulary(config.head[0], tied=config.head[1]),
        hot=HotExperts(hot.share, hot.hits, shipped().slow.hot if hot.share else 0.0),
        prompts=None if reader is None else replace(reader, serving=Serving(link=asked.phases.link or 0.0)),
        acceptance={**known.acceptance, **own},
        stated=frozenset(kind for kind, each in own.items() if each != known.acceptance.get(kind)),
        **{**asked.figures(), **stated},
    )
    _refuse(scenario, words, serving, space)
    return _with_rates(scenario).served(serving)


def able_to_serve(scenario: Scenario) -> Scenario:
    """The scenario of a study that says nothing of serving, for designs that say it themselves: with what public rows say of it."""
    return _with_rates(scenario).served(typical_serving()) if scenario.serving == Serving() else scenario


def words_of(config: StudyConfig, space: SearchSpace) -> dict[str, list[str]]:
    """Every word of how designs may be served, by axis or key; those that neither gives are missing."""
    given = {name: getattr(space.specification.axes, name) or getattr(config.serving, name) for name in OF_SERVING}
    return {name: words for name, words in given.items() if words}


def _with_rates(scenario: Scenario) -> Scenario:
    """The scenario, its formats and devices with the rates of public rows where a device's slow memory states none."""
    if scenario.devices:
        devices = tuple((name, _with_rates(each)) for name, each in scenario.devices)
        return replace(_with_rates(replace(scenario, devices=())), devices=devices)
    if scenario.device.slow_memory is None:
        return scenario
    device = scenario.device.model_copy(update={"slow_memory": with_typical_rates(scenario.device.slow_memory)})
    return replace(scenario, device=device, formats=tuple(replace(each, device=device) for each in scenario.formats))


def slow(words: Mapping[str, Sequence[str]]) -> bool:
    """Whether experts of some designs lie in slow memory."""
    return any(word.startswith("slow") for word in words.get("experts_in", ()))


def _refuse(scenario: Scenario, words: Mapping[str, Sequence[str]], serving: Serving, space: SearchSpace) -> None:
    """Refuse what cannot be priced, by name.

    Raises:
        UsageError: the first of it.
    """
    drafters = {word.partition(":")[0] for word in words.get("speculation", ())} - {"none"}
    for each in scenario.by_device.values() if slow(words) else ():
        if each.device.slow_memory is not None:
            continue
        raise UsageError(
            f"experts_in: expected a device with slow memory, got {each.device.name}; give slow_memory: {{capacity: 32 GB}} in its file"
        )
    if slow(words) and drafters:
        raise UsageError(
            "serving: expected tokens drafted ahead or experts in slow memory, got both; no formula gives their time: sixteen published "
            "settings gained 0.4 to 1.35 times. Drop one"
        )
    if "draft" in drafters and serving.draft is None:
        raise UsageError("draft: expected a model beside speculation draft:N, got none; add --draft qwen2.5_0.5b")
    if serving.draft is not None and "draft" not in drafters:
        raise UsageError(
            "draft: expected speculation draft:N beside a model that drafts, got none; add --speculation draft:4"
        )
    if "draft" in drafters and "draft" not in serving.acceptance:
        raise UsageError(
            "acceptance: expected the probability that a drafted token is accepted, got none; no published formula gives that of two "
            "models: measure it and add --acceptance draft=0.7"
        )
    if "draft" in drafters and space.own_heads:
        raise UsageError(
            "draft: expected one vocabulary beside a model that drafts, which has the target's, got an axis of them; give one"
        )
    for each in scenario.by_device.values():
        refuse_cache(each)


def refuse_cache(scenario: Scenario) -> None:
    """Refuse a profile with a cache tier, of which no share of a step that verifies is known.

    Raises:
        UsageError: it has one.
    """
    if scenario.cached:
        raise UsageError(
            f"serving: expected times without a cache tier, got the profile of {scenario.device.name}, which has cache_efficiency; "
            "add --calibration datasheet, or calibrate without it"
        )
