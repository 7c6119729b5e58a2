"""Scenarios of a configuration: device, law, formats, workload and calibration, also under another preset."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nas.errors import UsageError
from nas.files import yaml_source
from nas.study import entry_points
from nas.study.catalogue import load_device
from nas.study.configuration import StudyConfig
from objectives.device import Calibration, Device, Sustained
from objectives.loss_law.law import Law
from objectives.plugins import documents
from objectives.precision import Precision, precision
from objectives.profile_choice import OF_DEVICE, calibration_for, energy_for
from objectives.scenario import Scenario
from objectives.token_curve import Text
from objectives.training import Training
from objectives.transfers import Conditions
from objectives.typical.sustained import sustained_of, unknown


def conditions_of(config: StudyConfig, *, experts: bool = False) -> Conditions:
    """Conditions for the choice of a profile, in a space with experts or without."""
    context = config.input_tokens + config.output_tokens
    return Conditions(config.precision, config.batch, config.input_tokens, context, experts, config.engine or "")


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
    found = {
        label: _of_device(label, config, law, device, formats, asked, trainer) for label, device in devices.items()
    }
    placed = tuple((label, scenario) for label, (scenario, _) in found.items())
    if len(placed) == 1:
        return next(iter(found.values()))
    notes = {label: note for label, (_, note) in found.items()}
    alike = len(set(notes.values())) == 1
    note = found[placed[0][0]][1] if alike else "; ".join(f"{k}: {v}" for k, v in notes.items())
    return replace(placed[0][1], devices=placed), note


def _of_device(label: str, *given: Any) -> tuple[Scenario, str]:
    try:
        return scenario_in_formats(*given)
    except UsageError as error:
        raise UsageError(f"{label}: {error}" if label else str(error)) from None


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
        profile, note = calibration_for(device, asked, typical=config.calibration == "typical")
    elif isinstance(config.calibration, Calibration):
        profile, note = config.calibration, "calibrated (given in the study)"
    sustained = _sustained(config, device)
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
        energy=None if sustained else energy_for(device, profile, asked.precision, asked.batch),
        sustained=sustained,
        training=Training(**{**config.training.model_dump(), "device": trainer}),
    )
    return scenario, note


def _sustained(config: StudyConfig, device: Device) -> Sustained | None:
    """The share of its speed that is left after minutes of load, where the study prices that.

    Raises:
        UsageError: nothing is known of the device there.
    """
    if isinstance(config.sustained, Sustained) or not config.sustained:
        return config.sustained or None
    if (found := sustained_of(device)) is None:
        raise UsageError(f"sustained: {unknown(device)}")
    return found


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


def recorded_calibration(config: StudyConfig, scenario: Scenario) -> Any:
    """The profile as plain content; where designs have formats or devices of their own the word for those of the device, recorded too."""
    if (scenario.formats or scenario.devices) and config.calibration in OF_DEVICE:
        return config.calibration
    profile = scenario.calibration
    return "none" if profile is None else profile.model_dump(mode="json", exclude_none=True)


def _priced(config: StudyConfig, device: Device, name: str) -> Precision:
    """The precision of a format.

    Raises:
        UsageError: the device does not state its peak; with those that do.
    """
    priced = precision(name, config.int4_group_size)
    try:
        device.peak(peak := priced.linear_peak)
    except ValueError as error:
        able = [
            other
            for other, path in documents(entry_points.SHIPPED["devices"]).items()
            if peak in load_device(str(path)).other_peaks
        ]
        raise UsageError(f"precision: {name}: {error}, or choose one of {', '.join(able)}") from None
    return priced


def with_preset(config: StudyConfig, preset: str) -> StudyConfig:
    """A configuration with a preset's conventions for latency and memory in place of its own."""
    shipped, _ = yaml_source.read(documents("nas.study.presets")[preset])
    return StudyConfig.model_validate({**config.model_dump(), **shipped, "law": config.law})
