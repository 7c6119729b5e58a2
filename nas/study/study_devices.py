"""The devices of a study: one, or several that its designs may be on, an axis of the space."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults, Path, nearest, plain
from nas.study import entry_points
from nas.study.catalogue import id_and_mode, named_device
from nas.study.configuration import StudyConfig
from objectives.chips import FIGURES, PREFIX, chips, unit_of
from objectives.device import Calibration, Device
from objectives.device_columns import Figure, refuse_taken, taken
from objectives.display_text import shown_name
from objectives.plugins import normalised
from objectives.quantities import DATE
from objectives.table import NUMBER, Sheet, mended, read_sheet
from search_spaces.axes_schema import Axes


def in_one_place(config: StudyConfig, raw: Mapping[str, Any], axes: Axes | None, faults: Faults) -> StudyConfig:
    """The study with its devices under `devices`, those that its space names as well; with a single one under `device`."""
    given = config.devices or {name: name for name in (axes.device if axes is not None and axes.device else ())}
    if config.devices and isinstance(raw.get("device"), str):
        faults.add(("device",), f"expected device or devices, got {raw['device']} beside {', '.join(given)}; drop one")
    if len(given) != 1:
        return config.model_copy(update={"devices": given})
    return config.model_copy(update={"device": next(iter(given.values())), "devices": {}})


def devices_of(config: StudyConfig, chips_made: Mapping[str, Device], faults: Faults) -> dict[str, Device]:
    """Every device of a study by its name there, the chips of its genes where it has these; one alone as "". What cannot be had is a fault at its place."""
    if chips_made:
        return dict(chips_made) if len(chips_made) > 1 else {"": next(iter(chips_made.values()))}
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


CHIP_KEY = "chip"


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
    base = None if given.get("base") in (None, "none") else named_device(given["base"], faults, (CHIP_KEY, "base"))
    if base is None and given.get("base") not in (None, "none"):
        return config, {}
    try:
        found = dict(chips(given, base).devices)
    except ValueError as error:
        _add(str(error), faults)
        return config.model_copy(update={CHIP_KEY: dict(given)}), {}
    written = {**given, **({} if base is None else {"base": base.mapping()})}
    beside: dict[str, Any] = {} if "baselines" in raw else {"baselines": []}  # whose times would be of the first chip
    return config.model_copy(update={CHIP_KEY: written, "devices": {label: label for label in found}, **beside}), found


def figures_of(devices: Mapping[str, Device], config: StudyConfig, faults: Faults) -> dict[str, Figure]:
    """What a metric may be called: figures that any device has, those of the first that has each.

    Genes with a fault give the columns that they name, so that it is not one of every metric that reads them.
    """
    own = {name: figure for device in reversed([*devices.values()]) for name, figure in device.columns.items()}
    if not config.chip or config.devices or not faults.lines:
        return own
    given = config.chip
    columns = given.get("columns", {})
    units = {PREFIX + name: FIGURES[name].unit if name in FIGURES else "" for name in given}
    costs = columns if isinstance(columns, Mapping) else {}
    named = {name: unit_of(costs[name]) for name in costs} | units
    return {name: Figure(value=0.0, unit=unit) for name, unit in named.items()} | own


def _add(message: str, faults: Faults) -> None:
    for line in message.splitlines():
        head, colon, rest = line.partition(": ")
        named = bool(colon) and " " not in head
        parts = tuple(int(part) if part.isdecimal() else part for part in head.split(".")) if named else ()
        faults.add((CHIP_KEY, *parts), rest if named else line)


COLUMNS_KEY = "device_columns"
MOST_ROWS = 100_000
OF_DEVICES = "device"  # the table's column of their names


@dataclass(frozen=True)
class ColumnTable:
    """Figures by the name of a device as the table has it; the places of its empty cells by device and column."""

    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    empty: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def over(self, label: str, given: Any, device: Device, faults: Faults, at: Path = (COLUMNS_KEY,)) -> Device:
        """A device with the table's figures over its own; a device that the table lacks is a fault."""
        if not self.figures:
            return device
        if (row := self._row(label, given, device)) is None:
            called = _names_of(label, given, device)[0]
            faults.add(
                at, f"expected a row of every device, got none of {called}; {nearest(called, list(self.figures))}"
            )
            return device
        found = {**device.columns, **self.figures[row]}
        for name, place in self.empty.get(row, {}).items():
            if name not in found:
                faults.lines.append((place, f"{name} of {row}: expected a figure, got an empty cell; write it"))
        return device.model_copy(update={"columns": found})

    def _row(self, label: str, given: Any, device: Device) -> str | None:
        """The name in the table that means a device: its label, as it was given, without its mode, its file's stem, its own name."""
        names = {normalised(name): name for name in self.figures}
        return next((names[normalised(n)] for n in _names_of(label, given, device) if normalised(n) in names), None)

    def left_out(self, used: Mapping[str, tuple[Any, Device]]) -> list[str]:
        """A line on names of the table that are neither a device of the study nor in the catalogue; none where all are."""
        mine = {normalised(name) for label, (given, device) in used.items() for name in _names_of(label, given, device)}
        known = mine | set(entry_points.named("devices"))
        strange = [name for name in self.figures if normalised(id_and_mode(name)[0]) not in known]
        shown = ", ".join(strange[:6]) + (f" and {len(strange) - 6} more" if len(strange) > 6 else "")
        return [f"{COLUMNS_KEY}: {shown}: no device of the study or the catalogue; left out"] if strange else []


def given_devices(config: StudyConfig, devices: Mapping[str, Device]) -> dict[str, tuple[Any, Device]]:
    """Each device of a study, by its name there, with what it was given as."""
    return {label: (config.devices.get(label, config.device), device) for label, device in devices.items()}


def with_figures(
    devices: Mapping[str, Device], config: StudyConfig, table: ColumnTable, faults: Faults
) -> dict[str, Device]:
    """The devices of a study with its figures over their own; names that are something else's in a study are refused."""
    found = {}
    for label, (given, device) in given_devices(config, devices).items():
        found[label] = table.over(label, given, device, faults)
        try:
            refuse_keys(found[label].columns)
        except ValueError as error:
            faults.add(("devices", label) if label else ("device",), f"columns.{error}")
    units: dict[str, tuple[str, str]] = {}
    for label, device in found.items():
        for name, figure in device.columns.items():  # a figure has one unit over all devices
            first, unit = units.setdefault(name, (label, figure.unit))
            if unit != figure.unit:
                got = f"{unit or 'none'} of {first} and {figure.unit or 'none'} of {label}"
                faults.add((COLUMNS_KEY,), f"{name}: expected one unit, got {got}; write it in one")
    return found


def _names_of(label: str, given: Any, device: Device) -> list[str]:
    """What a table may call a device, the closest first."""
    text = given if isinstance(given, str) else ""
    base = id_and_mode(text)[0] if text else ""
    found = (label, text, base, FilePath(base).stem if base else "", device.name)
    return list(dict.fromkeys(name for name in found if name))


def column_table(given: str | Mapping[str, Any], faults: Faults) -> ColumnTable:
    """The table of a study's key: a CSV file, or {device: {column: figure}}; empty where the study has none."""
    try:
        if isinstance(given, str):
            return _of_file(FilePath(given), faults)
    except ValueError as error:
        faults.add((COLUMNS_KEY,), str(error))
        return ColumnTable()
    found = {}
    for device, figures in given.items():
        if not isinstance(figures, Mapping):
            faults.add((COLUMNS_KEY, device), f"expected {{column: figure}}, got {figures!r}; write {{price: 249 USD}}")
            continue
        read = {name: _figure(value, faults, (COLUMNS_KEY, device, name)) for name, value in figures.items()}
        found[device] = {name: figure for name, figure in read.items() if figure is not None}
        _refuse_taken(found[device], faults, (COLUMNS_KEY, device))
    return ColumnTable(found)


def _figure(value: Any, faults: Faults, at: Path) -> Figure | None:
    try:
        return Figure.model_validate(value)
    except ValidationError as error:
        for detail in error.errors():
            faults.add(at, str(detail["ctx"]["error"]) if detail["type"] == "value_error" else plain(detail))
    return None


def _refuse_taken(figures: dict[str, Figure], faults: Faults, at: Path) -> None:
    try:
        refuse_taken(figures)
        refuse_keys(figures)
    except ValueError as error:
        faults.add(at, str(error))


def refuse_keys(names: Collection[str]) -> None:
    """Refuse names that are something else's in a study.

    Raises:
        ValueError: naming the first, and what to call it instead.
    """
    for name in names:
        if name in entry_points.COLUMNS or name == OF_DEVICES:
            raise ValueError(taken(name, "a column of results"))
        if name in StudyConfig.model_fields:
            raise ValueError(taken(name, "a key of studies"))


def _of_file(path: FilePath, faults: Faults) -> ColumnTable:
    """A CSV with a column `device` and one per figure, `price [USD]`.

    Raises:
        ValueError: not readable, no such columns, or one twice.
    """
    sheet = read_sheet(path, "device", most=MOST_ROWS)
    named = [name_and_unit(name) for name in sheet.header]
    names = [name for name, _ in named]
    if OF_DEVICES not in names or len(names) < 2 or len(set(names)) < len(names):
        shown = ", ".join(sheet.header)
        raise ValueError(f"{path}:1: expected a column device and others, each once, got {shown}; correct the header")
    columns = {name: (i, unit) for i, (name, unit) in enumerate(named) if name != OF_DEVICES}
    _refuse_taken({name: Figure(value=0.0) for name in columns}, faults, (COLUMNS_KEY,))
    return _rows(path, sheet, names.index(OF_DEVICES), columns, faults)


def _rows(
    path: FilePath, sheet: Sheet, first: int, columns: Mapping[str, tuple[int, str]], faults: Faults
) -> ColumnTable:
    """The rows of a table by device; what is wrong with a cell is a fault at its line and column."""
    figures: dict[str, dict[str, Figure]] = {}
    empty: dict[str, dict[str, str]] = {}
    for line, cells in zip(sheet.lines.tolist(), sheet.body, strict=True):
        device = cells[first]
        if not device or device in figures:
            got = f"{device} twice" if device else "an empty cell"
            faults.lines.append(
                (f"{path}:{line}:{first + 1}", f"device: expected each device once, got {got}; correct it")
            )
            continue
        figures[device], empty[device] = {}, {}
        for name, (i, unit) in columns.items():
            place = f"{path}:{line}:{i + 1}"
            if not cells[i]:
                empty[device][name] = place
            elif not (NUMBER.fullmatch(cells[i]) or DATE.fullmatch(cells[i])):
                remedy = mended(sheet.header[i], cells[i])
                said = f"{name} of {device}: expected a number or a date, got {cells[i]!r}; {remedy}"
                faults.lines.append((place, said))
            elif (figure := _cell(cells[i], unit, f"{name} of {device}", place, path.name, faults)) is not None:
                figures[device][name] = figure
    return ColumnTable(figures, empty)


def _cell(text: str, unit: str, what: str, place: str, source: str, faults: Faults) -> Figure | None:
    """The figure of a cell, in the unit of its column."""
    inner = Faults({(COLUMNS_KEY,): ""})
    figure = _figure({"value": text, "unit": unit, "source": source}, inner, (COLUMNS_KEY,))
    faults.lines += [(place, f"{what}: {message.partition(': ')[2]}") for _, message in inner.lines]
    return figure


def name_and_unit(header: str) -> tuple[str, str]:
    """`price` and `USD` of a table's header `price [USD]`."""
    parts = re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", header)
    assert parts is not None
    return parts[1], (parts[2] or "").strip()
