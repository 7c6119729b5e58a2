"""Scenarios of a configuration: device, law, formats, workload and calibration, also under another preset."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.study import entry_points
from nas.study.catalogue import load_device
from nas.study.configuration import StudyConfig
from objectives.datasheet_times import doubts
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.plugins import documents
from objectives.profile_choice import calibration_for, energy_for
from objectives.scenario import Scenario, precision
from objectives.training import Training
from objectives.transfers import Conditions, extrapolations


def conditions_of(config: StudyConfig, *, experts: bool = False) -> Conditions:
    """Conditions for the choice of a profile, in a space with experts or without."""
    context = config.input_tokens + config.output_tokens
    return Conditions(config.precision, config.batch, config.input_tokens, context, experts)


def scenario_of(
    config: StudyConfig, law: Law, device: Device, asked: Conditions | None = None, trainer: Device | None = None
) -> tuple[Scenario, str]:
    """The scenario of a configuration, whose models are trained on `trainer`, and how to name its calibration.

    The calibration is that for what is asked, without experts unless given.

    Raises:
        UsageError: a precision whose peak the device does not state.
    """
    _refuse_without_peak(config, device)
    profile, note = (None, "datasheet peaks")
    if config.calibration == "shipped":
        profile, note = calibration_for(device, asked or conditions_of(config))
    elif isinstance(config.calibration, Calibration):
        profile, note = config.calibration, "calibrated (given in the study)"
    scenario = Scenario(
        law=law,
        device=device,
        precision=precision(config.precision, config.int4_group_size),
        batch=config.batch,
        input_tokens=config.input_tokens,
        output_tokens=config.output_tokens,
        latency=config.latency,
        attention=config.attention,
        causal=config.causal,
        complete=config.complete,
        head_bytes=config.head_bytes,
        calibration=profile,
        energy=energy_for(device, profile, config.precision, config.batch),
        training=Training(**{**config.training.model_dump(), "device": trainer}),
    )
    return scenario, note


def scenario_in_formats(
    config: StudyConfig,
    law: Law,
    device: Device,
    formats: list[str],
    asked: Conditions | None = None,
    trainer: Device | None = None,
) -> tuple[Scenario, str]:
    """The scenario of a space whose designs have formats of their own, each with its profile and energy, and how to name them.

    Raises:
        UsageError: a format whose peak the device does not state.
    """
    own, note = scenario_of(config, law, device, asked, trainer)
    if formats == [""]:
        return own, note
    asked = asked or conditions_of(config)
    found = [
        scenario_of(config.model_copy(update={"precision": name}), law, device, replace(asked, precision=name), trainer)
        for name in formats
    ]
    notes = dict(zip(formats, (each for _, each in found), strict=True))
    text = note if len(set(notes.values())) == 1 else "; ".join(f"{name}: {each}" for name, each in notes.items())
    return replace(own, formats=tuple(scenario for scenario, _ in found)), text


def recorded_calibration(config: StudyConfig, scenario: Scenario) -> Any:
    """The profile as plain content; where designs have formats of their own the word for those of the device, recorded too."""
    if scenario.formats and config.calibration == "shipped":
        return "shipped"
    profile = scenario.calibration
    return "none" if profile is None else profile.model_dump(mode="json", exclude_none=True)


def beyond_measured(calibration: Calibration | None, asked: Conditions) -> list[str]:
    """A sentence for each way in which times lie outside of the calibration's measurements."""
    outside = [] if calibration is None else extrapolations(calibration, asked)
    return [f"times are extrapolated: {transfer.sentence}" for transfer in outside]


def beyond_in_formats(scenario: Scenario, asked: Conditions) -> list[str]:
    """The same for the calibration of every format that designs may have, and what is doubtful without any."""
    each = {one.precision.name: one.calibration for one in scenario.formats or (scenario,)}
    return [*doubts(scenario.device, scenario.calibration), *beyond_of_each(each, asked)]


def beyond_of_each(profiles: Mapping[str, Calibration | None], asked: Conditions) -> list[str]:
    """The same for the calibration of each format; what is not so of all of them names its own."""
    found: dict[str, list[str]] = {}
    for name, calibration in profiles.items():
        for text in beyond_measured(calibration, replace(asked, precision=name)):
            found.setdefault(text, []).append(name)
    return [text if len(names) == len(profiles) else f"{' and '.join(names)}: {text}" for text, names in found.items()]


def _refuse_without_peak(config: StudyConfig, device: Device) -> None:
    try:
        device.peak(peak := precision(config.precision).linear_peak)
    except ValueError as error:
        able = [
            name
            for name, path in documents(entry_points.SHIPPED["devices"]).items()
            if peak in load_device(str(path)).other_peaks
        ]
        raise UsageError(f"precision: {config.precision}: {error}, or choose one of {', '.join(able)}") from None


def with_preset(config: StudyConfig, preset: str) -> StudyConfig:
    """A configuration with a preset's conventions for latency and memory in place of its own."""
    shipped, _ = yaml_source.read(documents("nas.study.presets")[preset])
    return StudyConfig.model_validate({**config.model_dump(), **shipped})
