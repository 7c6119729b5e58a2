"""What a configuration prices architectures in: device, law, formats, workload and calibration, also under another preset."""

from dataclasses import replace

from nas.errors import UsageError
from nas.files import yaml_source
from nas.study import entry_points
from nas.study.catalogue import load_device
from nas.study.configuration import StudyConfig
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.plugins import documents
from objectives.profile_choice import calibration_for, energy_for
from objectives.scenario import Scenario, precision
from search_spaces.space import SearchSpace


def scenario_of(config: StudyConfig, law: Law, device: Device) -> tuple[Scenario, str]:
    """The scenario of a configuration, and how to name its calibration.

    Raises:
        UsageError: a precision whose peak the device does not state.
    """
    _refuse_without_peak(config, device)
    profile, note = (None, "datasheet peaks")
    if config.calibration == "shipped":
        profile, note = calibration_for(device, config.precision, config.batch)
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
    )
    return scenario, note


def with_formats(config: StudyConfig, space: SearchSpace) -> SearchSpace:
    """The space with the formats that a study names as an axis."""
    if not config.precisions:
        return space
    mapping = space.mapping()
    mapping["axes"]["precision"] = list(dict.fromkeys(config.precisions))
    return SearchSpace.from_mapping(mapping)


def scenario_in_formats(config: StudyConfig, law: Law, device: Device, formats: list[str]) -> tuple[Scenario, str]:
    """The scenario of a space whose designs have formats of their own, each with its profile and energy, and how to name them.

    Raises:
        UsageError: a format whose peak the device does not state.
    """
    own, note = scenario_of(config, law, device)
    if formats == [""]:
        return own, note
    found = [scenario_of(config.model_copy(update={"precision": name}), law, device) for name in formats]
    notes = dict(zip(formats, (each for _, each in found), strict=True))
    said = note if len(set(notes.values())) == 1 else "; ".join(f"{name}: {each}" for name, each in notes.items())
    return replace(own, formats=tuple(scenario for scenario, _ in found)), said


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
