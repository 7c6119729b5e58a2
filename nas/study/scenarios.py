"""Scenarios of a configuration: device, law, formats, workload and calibration, also under another preset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.files import yaml_source
from nas.problem.objective import about_energy, is_energy
from nas.problem.problem import Problem
from nas.problem.wording import about_training
from nas.study import entry_points
from nas.study.catalogue import load_device
from nas.study.configuration import StudyConfig
from nas.study.serving_keys import ServingConfig
from nas.study.study_laws import notices_of_formats
from objectives.device import OWN_PEAKS, Calibration, Device, Peak
from objectives.engines import prefill_chunk_of
from objectives.loss_law.law import Law
from objectives.plausible import unusual
from objectives.plugins import documents
from objectives.precision import PRECISIONS, Precision, precision
from objectives.profile_choice import OF_DEVICE, calibration_for, doubts, energy_for
from objectives.scenario import Scenario
from objectives.serving import HotExperts, Serving, shipped, typical_serving, with_typical_rates
from objectives.token_curve import Text
from objectives.training import Training
from objectives.transfers import Conditions, extrapolations
from objectives.typical.sustained import about_load, sustained_of, unknown
from search_spaces.architectures import Architectures
from search_spaces.columns import OF_SERVING
from search_spaces.space import SearchSpace


def conditions_of(config: StudyConfig, *, experts: bool = False) -> Conditions:
    """Conditions for the choice of a profile, in a space with experts or without."""
    context = config.input_tokens + config.output_tokens
    lengths = config.input_tokens, context
    return Conditions(config.precision, config.batch, *lengths, experts, config.engine or "", own=config.formats)


def scenario_in_formats(
    config: StudyConfig, law: Law, device: Device, formats: list[str], asked: Conditions, trainer: Device | None
) -> tuple[Scenario, str]:
    """The scenario of a space whose designs have formats of their own ([""]: none), each with its profile and energy, and how to name them.

    Models are trained on `trainer`; profiles are those for what is `asked`.

    Raises:
        UsageError: a format whose peak the device does not state.
    """
    own, named = asked.precision, [name for name in formats if name]
    found = {
        name: _scenario(config, law, device, replace(asked, precision=name), trainer)
        for name in dict.fromkeys([own, *named])
    }
    scenario, note = found[own]
    if not named:
        return scenario, note
    notes = {name: found[name][1] for name in named}
    said = (
        notes[named[0]]
        if len(set(notes.values())) == 1
        else "; ".join(f"{name}: {each}" for name, each in notes.items())
    )
    return replace(scenario, formats=tuple(found[name][0] for name in named)), said


def scenario_on_devices(
    config: StudyConfig,
    law: Law,
    devices: Mapping[str, Device],
    formats: list[str],
    asked: Conditions,
    trainer: Device | None,
) -> tuple[Scenario, str]:
    """The scenario of a study whose designs are on one of several devices, each as `scenario_in_formats` has it; the first's with all of them.

    Raises:
        UsageError: what one of them lacks, naming it.
    """
    found = {}
    for label, device in devices.items():
        try:
            found[label] = scenario_in_formats(config, law, device, formats, asked, trainer)
        except UsageError as error:
            raise UsageError(f"{label}: {error}" if label else str(error)) from None
    placed = tuple((label, scenario) for label, (scenario, _) in found.items())
    if len(placed) == 1:
        return next(iter(found.values()))
    notes = {label: note for label, (_, note) in found.items()}
    alike = len(set(notes.values())) == 1
    note = found[placed[0][0]][1] if alike else "; ".join(f"{k}: {v}" for k, v in notes.items())
    return replace(placed[0][1], devices=placed), note


def _scenario(
    config: StudyConfig, law: Law, device: Device, asked: Conditions, trainer: Device | None
) -> tuple[Scenario, str]:
    """The scenario of one format, and how to name its calibration.

    Raises:
        UsageError: the device does not state the format's peak, or nothing is known of it at sustained load.
    """
    priced = _priced(config, device, asked.precision)
    profile, note = (None, "datasheet peaks")
    if config.calibration in OF_DEVICE:
        computed = replace(asked, precision="int4") if priced.widened else asked
        profile, note = calibration_for(device, computed, typical=config.calibration == "typical")
    elif isinstance(config.calibration, Calibration):
        profile, note = config.calibration, "calibrated (given in the study)"
    sustained = sustained_of(device) if config.sustained is True else config.sustained or None
    if config.sustained is True and sustained is None:
        raise UsageError(f"sustained: {unknown(device)}")
    scenario = Scenario(
        law=law,
        device=device,
        precision=priced,
        batch=config.batch,
        input_tokens=config.input_tokens,
        output_tokens=config.output_tokens,
        latency=config.latency,
        attention=config.attention,
        causal=config.causal,
        complete=config.complete,
        head_bytes=config.head_bytes_at(asked.precision),
        calibration=profile,
        engine=config.engine or "",
        prefill_chunk=prefill_chunk_of(config.engine or "")
        if config.prefill_chunk == "engine"
        else config.prefill_chunk,
        energy=None if sustained else energy_for(device, profile, asked.precision, asked.batch),
        sustained=sustained,
        training=Training(**{**config.training.model_dump(), "device": trainer}),
    )
    return scenario, note


def with_text(scenario: Scenario, text: Text | None, vocabulary: int | None) -> Scenario:
    """The scenario and those of its formats with the text of metrics per byte; of designs of one vocabulary, or None, of their own.

    With vocabularies of their own designs read and write as much text as the study's tokens hold by the law's tokenizer,
    where it gives none.

    Raises:
        UsageError: a curve that does not count that tokenizer.
    """
    if vocabulary is None and text is not None:
        try:
            held = text.bytes_of_law
        except ValueError as error:
            raise UsageError(f"token_curve: of the law's tokenizer: {error}") from None
        text = text.with_requests(scenario.input_tokens, scenario.output_tokens, held)
    formats = tuple(replace(each, text=text) for each in scenario.formats)
    found = replace(scenario, text=text, formats=formats)
    return found if vocabulary is None else found.of_vocabulary(vocabulary)


def _priced(config: StudyConfig, device: Device, name: str) -> Precision:
    """The precision of a format.

    Raises:
        UsageError: the device does not state its peak; with those that do.
    """
    priced = precision(name, config.int4_group_size, config.formats).on(device)
    widened = priced.weight_bytes < priced.input_bytes  # which integer units do as well
    for peak in (priced.linear_peak, priced.of_down.linear_peak):
        try:
            (device.rate if widened else device.peak)(peak)
        except ValueError as error:
            raise UsageError(f"precision: {name}: {error}{_instead(device, peak)}") from None
    return priced


def _instead(device: Device, peak: Peak) -> str:
    """What else can be asked for: a precision that runs at a peak of the device; of FP4 a device that has it."""
    able = [
        name
        for name, other in PRECISIONS.items()
        if {other.linear_peak, other.of_down.linear_peak} <= device.peaks.keys()
    ]
    if peak in OWN_PEAKS:
        return (
            f", or choose --precision {able[0]}"
            if able
            else f"; no shipped precision runs at {' or '.join(device.peaks)}"
        )
    shipped = documents(entry_points.SHIPPED["devices"]).items()
    return f", or choose one of {', '.join(name for name, path in shipped if peak in load_device(str(path)).peaks)}"


def with_preset(config: StudyConfig, preset: str) -> StudyConfig:
    """A configuration with a preset's conventions for latency and memory in place of its own."""
    shipped, _ = yaml_source.read(documents("nas.study.presets")[preset])
    conventions = StudyConfig.model_validate(shipped)
    return config.model_copy(update={key: getattr(conventions, key) for key in shipped if key != "law"})


def notices_of(problem: Problem, limits: Sequence[str]) -> list[str]:
    """Say what must be known of a problem: of its device, times, limits (given), energy, law and training."""
    scenario, law = problem.scenario, problem.scenario.law
    experts = bool((problem.space.experts > 1).any())
    on_each = list(scenario.by_device.values()) if any(map(is_energy, problem.asked_besides)) else []
    of_energy = list(dict.fromkeys(text for each in on_each for text in about_energy(each, experts=experts)))
    alone = [f"law {law.name} prices {law.priced_designs}: of other designs it says nothing"] if law.partial else []
    of_law = [*alone, *notices_of_formats(law, [*scenario.by_format]), *about_training(problem)]
    return [*doubtful_times(scenario, experts=experts), *limits, *of_energy, *of_law]


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


def doubtful_times(scenario: Scenario, *, experts: bool, layers: bool = False) -> list[str]:
    """Say what must be known of figures and times: of each device and format that designs may have, with experts or without."""
    if scenario.devices:
        told: dict[str, list[str]] = {}
        for name, placed in scenario.by_device.items():
            for text in doubtful_times(placed, experts=experts, layers=layers):
                told.setdefault(text, []).append(name)
        return [_of_devices(names, len(scenario.devices), text) for text, names in told.items()]
    each = {name: one.calibration for name, one in scenario.by_format.items()}
    of_load = about_load(scenario.device, scenario.sustained)
    outside = extrapolated(each, scenario.conditions(experts=experts, layers=layers))
    widened = [
        f"{name}: device {scenario.device.name} states no FP4 peak; 4-bit weights are priced as widened to 16 bits and computed at the FP16 peak, as engines do there"
        for name, one in scenario.by_format.items()
        if one.precision.widened
    ]
    of_figures = [*scenario.device.warnings(), *unusual(scenario.device), *widened]
    return [*of_figures, *doubts(scenario.device, scenario.calibration), *of_load, *outside]


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
        raise UsageError(
            "draft: expected a model beside speculation draft:N, got none; add --set serving.draft=qwen2.5_0.5b"
        )
    if serving.draft is not None and "draft" not in drafters:
        raise UsageError(
            "draft: expected speculation draft:N beside a model that drafts, got none; add --set serving.speculation=draft:4"
        )
    if "draft" in drafters and "draft" not in serving.acceptance:
        raise UsageError(
            "acceptance: expected the probability that a drafted token is accepted, got none; no published formula gives that of two "
            "models: measure it and add --set serving.acceptance=draft=0.7"
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
            "add --set calibration=datasheet, or calibrate without it"
        )
