"""The devices of a study: one, or several that its designs may be on, an axis of the space."""

from collections.abc import Mapping
from typing import Any

from nas.errors import UsageError
from nas.files.faults import Faults
from nas.study.catalogue import named_device
from nas.study.configuration import StudyConfig
from objectives.device import Calibration, Device
from objectives.display_text import shown_name
from search_spaces.axes_schema import Axes


def in_one_place(config: StudyConfig, raw: Mapping[str, Any], axes: Axes | None, faults: Faults) -> StudyConfig:
    """The study with its devices under `devices`, those that its space names as well; with a single one under `device`."""
    given = config.devices or {name: name for name in (axes.device if axes is not None and axes.device else ())}
    if config.devices and isinstance(raw.get("device"), str):
        faults.add(("device",), f"expected device or devices, got {raw['device']} beside {', '.join(given)}; drop one")
    if len(given) != 1:
        return config.model_copy(update={"devices": given})
    return config.model_copy(update={"device": next(iter(given.values())), "devices": {}})


def devices_of(config: StudyConfig, faults: Faults) -> dict[str, Device]:
    """Every device of a study by its name there; one alone as "". What cannot be had is a fault at its place."""
    if not config.devices:
        device = named_device(config.device, faults)
        return {} if device is None else {"": device}
    found: dict[str, Device] = {}
    for label, named in config.devices.items():
        _check(label, faults)
        device = named_device(named, faults, ("devices", label))
        found |= {} if device is None else {label: device}
    if isinstance(config.calibration, Calibration):
        text = "expected datasheet, shipped or typical beside several devices, got a profile, which is of one; drop it"
        faults.add(("calibration",), text)
    return found


def _check(label: str, faults: Faults) -> None:
    try:
        shown_name(label)
    except ValueError as error:
        faults.add(("devices", label), str(error))


def refuse_several(config: StudyConfig, what: str, instead: str) -> None:
    """Refuse several devices where one is priced.

    Raises:
        UsageError: the study has them.
    """
    if config.devices:
        raise UsageError(f"devices: expected one device {what}, got {', '.join(config.devices)}; {instead}")
