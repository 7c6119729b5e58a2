"""The devices of a study: one, or several that its designs may be on, an axis of the space."""

from collections.abc import Mapping
from typing import Any

from nas.errors import UsageError
from nas.files.faults import Faults
from nas.study.catalogue import named_device
from nas.study.configuration import StudyConfig
from objectives.chips import FIGURES, PREFIX, chips, unit_of
from objectives.device import Calibration, Device
from objectives.device_columns import Figure
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


KEY = "chip"


def with_chips(
    config: StudyConfig, of_space: Mapping[str, Any] | None, raw: Mapping[str, Any], faults: Faults
) -> tuple[StudyConfig, dict[str, Device]]:
    """The study with the chips of its genes, or of its space's, under `devices`, and these chips by name; none where it has none.

    The base is written out, so that a record needs no file.
    """
    given = config.chip or of_space
    if not given:
        return config, {}
    for key in ("device", "devices"):
        if isinstance(raw.get(key), str) or (key == "devices" and raw.get(key)):
            faults.add((key,), f"expected {key} or chip, got both; drop one, or name the device as the chip's base")
    base = None if given.get("base") in (None, "none") else named_device(given["base"], faults, (KEY, "base"))
    if base is None and given.get("base") not in (None, "none"):
        return config, {}
    try:
        found = dict(chips(given, base).devices)
    except ValueError as error:
        _add(str(error), faults)
        return config.model_copy(update={KEY: dict(given)}), {}
    written = {**given, **({} if base is None else {"base": base.mapping()})}
    beside: dict[str, Any] = {} if "baselines" in raw else {"baselines": []}  # whose times would be of the first chip
    return config.model_copy(update={KEY: written, "devices": {label: label for label in found}, **beside}), found


def of_genes(made: Mapping[str, Device]) -> dict[str, Device]:
    """The chips of genes as devices of a study; one alone as ""."""
    return {"": next(iter(made.values()))} if len(made) == 1 else dict(made)


def meant(config: StudyConfig, faults: Faults) -> dict[str, Figure]:
    """The columns that genes with a fault name, so that it is not one of every metric that reads them."""
    if not config.chip or config.devices or not faults.lines:
        return {}
    given = config.chip
    columns = given.get("columns", {})
    units = {PREFIX + name: FIGURES[name].unit if name in FIGURES else "" for name in given}
    costs = columns if isinstance(columns, Mapping) else {}
    return {
        name: Figure(value=0.0, unit=unit)
        for name, unit in ({name: unit_of(costs[name]) for name in costs} | units).items()
    }


def _add(message: str, faults: Faults) -> None:
    for line in message.splitlines():
        head, colon, rest = line.partition(": ")
        named = bool(colon) and " " not in head
        parts = tuple(int(part) if part.isdecimal() else part for part in head.split(".")) if named else ()
        faults.add((KEY, *parts), rest if named else line)
