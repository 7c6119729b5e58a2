"""Reads the cases from flags, a file or a table."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.files.faults import Faults, unknown
from nas.files.faults import Path as Place
from nas.problem.objective import is_energy
from nas.search.reading import read
from nas.study import entry_points
from nas.study.catalogue import is_file, load_device, named_device
from nas.study.configuration import IN_TEXT, PAPER_APPLICATIONS, StudyConfig
from nas.study.layers import from_file, is_about_a_device, over, parsed_settings
from nas.study.value_parsers import split_budgets, split_names
from nas.terminal.doors import installed
from objectives.device import Device
from objectives.plugins import documents, normalised
from objectives.precision import PRECISIONS
from objectives.typical.sustained import sustained_of
from plas_range.configuration import (
    CASE_KEYS,
    EVERYTHING,
    SHIPPED,
    WEIGHTS,
    CaseList,
    DevicesConfig,
    Row,
    table_rows,
    weight_of,
)
from plas_range.request import OWN, DevicesRequest

CROSSING = ("devices", "precisions", "workloads")
LENGTH = r"(\d[\d_]*|\d+(?:\.\d+)?\s*[kM]?B)"  # tokens, or bytes of text
WORKLOAD = re.compile(rf"^(?:(\d[\d_]*)/)?{LENGTH}/{LENGTH}$")
FORM = "INPUT/OUTPUT or BATCH/INPUT/OUTPUT, in tokens or bytes of text"
MOST = 10_000
ENERGY, LOAD = "energy", "sustained load"
OF_A_CASE: dict[str, Any] = {"device": StudyConfig.model_fields["device"].default, "baselines": [], "params": {}}
CONVENTIONAL = {"preset", "latency"}  # keys of a file that chooses its own conventions


def case_list(request: DevicesRequest) -> CaseList:
    """The base study and the cases.

    Raises:
        UsageError: what was typed or written cannot be done, all faults of a file at once.
    """
    crossing = [name for name in CROSSING if name in request.own]
    if request.table is not None and crossing:
        typed = ", ".join(OWN[name].name for name in crossing)
        raise UsageError(
            f"--table: expected the cases in {request.table}, got {typed} as well; write them into the table"
        )
    given = request.own.keys() | parsed_settings(request.settings).keys()
    shipped = request.config is None and request.table is None and "devices" not in given
    file = SHIPPED if shipped else request.config
    content, origins = from_file(file, "devices") if file else ({}, {})
    flags: dict[str, Any] = {"algo": "exact", **request.flags}
    raw, origins = over(content, origins, flags, request.settings)
    config = _own(raw, origins, request)
    of_packages = {name: raw.pop(name) for name in installed() if name in raw and name not in StudyConfig.model_fields}
    raw["applications"], chosen = _applications(raw, request)
    devices = _own_devices(config, raw, origins)
    notices: list[str] = []
    faults: list[tuple[str, str]] = []
    if request.table is not None:
        rows, faults = table_rows(request.table)
    elif config.cases is not None and not crossing and request.applications is None:
        rows, faults = _recorded(config.cases, origins)
    else:
        rows, notices, devices = _crossed(config, raw, origins, chosen)
    latency = {"latency": raw.get("latency")}
    stated = [{**latency, "devices": config.devices}, *({**latency, **row.values} for row in rows)]
    if "preset" not in raw and any(map(is_about_a_device, stated)):
        return case_list(replace(request, flags={**request.flags, "preset": "device"}))
    if len(rows) > MOST:
        raise UsageError(f"devices: expected at most {MOST:,} cases, got {len(rows):,}; ask for fewer")
    shared = models = read({**raw, **OF_A_CASE}, origins)
    if config.models_under is not None:
        models = read({**raw, **config.models_under, **OF_A_CASE}, origins)
    elif not (
        "preset" in flags or raw.get("latency") == "closed_form" or (not shipped and CONVENTIONAL & content.keys())
    ):
        there, _ = over(content, dict(origins), {**flags, "preset": "device"}, request.settings)
        models_raw = {
            key: value for key, value in there.items() if key not in (*DevicesConfig.model_fields, *of_packages, "law")
        }
        models_raw |= {"law": raw["law"]} if "law" in raw else {}  # one law prices designs and models
        models = read({**models_raw, "applications": raw["applications"], **OF_A_CASE}, origins)
    own = raw.get("device", StudyConfig.model_fields["device"].default)
    named = str(own.get("name", "device")) if isinstance(own, dict) else str(own)
    notes = tuple(notices), tuple(faults)
    return CaseList(shared, models, origins, _labelled(rows), devices, named, config, *notes, of_packages)


def _own(raw: dict[str, Any], origins: dict[Place, str], request: DevicesRequest) -> DevicesConfig:
    """The keys that are no study's, taken out of the raw study; flags win."""
    given = {name: raw.pop(name) for name in DevicesConfig.model_fields if name in raw}
    if given.get("precisions") == []:  # as a run records it: its space holds them
        del given["precisions"]
    faults = Faults({**origins, **{(name,): OWN[name].name for name in request.own}})
    try:
        return DevicesConfig.model_validate({**given, **request.own})
    except ValidationError as error:
        faults.add_validation(error, model=DevicesConfig)
        faults.raise_if_any()
        raise


def _applications(raw: Mapping[str, Any], request: DevicesRequest) -> tuple[dict[str, Any], list[str]]:
    """Every application that may be named, and those that cases are crossed with."""
    own = raw.get("applications")
    applications = own if isinstance(own, dict) and own else PAPER_APPLICATIONS
    if request.applications is None:
        return applications, list(own) if isinstance(own, dict) else []
    names = list(applications) if request.applications == EVERYTHING else split_names(request.applications)
    for name in names:
        if name not in applications:
            raise UsageError(f"--applications: {unknown('an application', name, applications)}, or all")
    return applications, names


def _recorded(
    cases: Sequence[Mapping[str, Any]], origins: Mapping[Place, str]
) -> tuple[list[Row], list[tuple[str, str]]]:
    """Cases as a file lists them, and keys that all cases share, which one of them cannot have otherwise."""
    rows, faults = [], Faults(origins)
    for i, case in enumerate(cases):
        inside = {place[2:]: origin for place, origin in origins.items() if place[:2] == ("cases", i)}
        values = {key: value for key, value in case.items() if key not in ("case", "application", "budgets", *WEIGHTS)}
        for key in values.keys() - {"device", *CASE_KEYS}:
            faults.add(
                ("cases", i, key),
                f"{unknown('a key of a case', key, ('device', *CASE_KEYS))}; all cases share the others",
            )
        label, application = (str(case.get(key) or "") for key in ("case", "application"))
        try:
            weight = weight_of(case)
        except ValueError as error:
            faults.add(("cases", i), f"weight: {error}")
            weight = 1.0
        rows.append(Row(values, case.get("budgets") or {}, application, label, inside, weight))
    return rows, faults.lines


def _crossed(
    config: DevicesConfig, raw: Mapping[str, Any], origins: Mapping[Place, str], applications: list[str]
) -> tuple[list[Row], list[str], dict[str, Device]]:
    """Every device in every precision and workload under every application; what a device cannot do is left out with a note."""
    devices = _devices(config, raw, origins)
    precisions = _precisions(config, raw)
    workloads = [_workload(text) for text in config.workloads or []] or [{}]
    several = (len(precisions) > 1, len(workloads) > 1, len(applications) > 1)
    rows, left_out, joules = [], dict[str, dict[str, None]](), _asks_for_energy(raw)
    for (name, device), kind, workload, application in product(devices, precisions, workloads, applications or [""]):
        if not _can(device, kind):
            left_out.setdefault(kind, {})[name] = None
            continue
        if joules and not any(figures.mode == device.mode for figures in device.energy):
            left_out.setdefault(ENERGY, {})[name] = None
            continue
        if raw.get("sustained") is True and sustained_of(device) is None:
            left_out.setdefault(LOAD, {})[name] = None
            continue
        words = (kind, "/".join(str(n) for n in workload.values()), application)
        label = " ".join([_short(name), *(word for word, shown in zip(words, several, strict=True) if shown)])
        rows.append(Row({"device": name, "precision": kind, **workload}, {}, application, label))
    without = [(kind, f"no {_lacking(kind)} for {', '.join(names)}") for kind, names in left_out.items()]
    if not rows:
        flag = "--devices" if {ENERGY, LOAD} & left_out.keys() else "--precisions"
        got = "; ".join(f"{kind} ({why})" for kind, why in without)
        raise UsageError(f"{flag}: expected one that a device has, got {got}; choose another")
    lines = [f"{kind} is left out where the device has none: {why}" for kind, why in without]
    return rows, lines, dict(devices)


def _lacking(kind: str) -> str:
    if kind == LOAD:
        return "share is known"
    return "coefficients are known" if kind == ENERGY else f"{PRECISIONS[kind].linear_peak} peak is stated"


def _asks_for_energy(raw: Mapping[str, Any]) -> bool:
    """Whether objectives, budgets or columns of the shared study name a metric of energy."""
    named = [name for key in ("objectives", "columns") for name in split_names(raw.get(key) or [])]
    with suppress(ValueError):
        named += split_budgets(raw.get("budgets") or {})
    return any(is_energy(str(name)) for name in named)


def _devices(config: DevicesConfig, raw: Mapping[str, Any], origins: Mapping[Place, str]) -> list[tuple[str, Device]]:
    """Devices by name, each once; `all` is every shipped one, `NAME@all` one in its default and every power mode.

    Raises:
        UsageError: unknown names, all at once.
    """
    own = _own_devices(config, raw, origins)
    if isinstance(config.devices, dict) or (own and config.devices is None):
        return list(own.items())
    names = config.devices or [raw.get("device", StudyConfig.model_fields["device"].default)]
    devices: dict[str, Device] = {}
    faults: list[str] = []
    for name in names:
        try:
            devices |= {one: load_device(one) for one in _expanded(name)}
        except UsageError as error:
            faults += [line.replace("--device:", "--devices:") for line in str(error).splitlines()]
    if faults:
        raise UsageError("\n".join(dict.fromkeys(faults)))
    return list(devices.items())


def _own_devices(config: DevicesConfig, raw: Mapping[str, Any], origins: Mapping[Place, str]) -> dict[str, Device]:
    """Devices that the file holds itself: labelled ones, or the study's own."""
    if isinstance(config.devices, dict):
        return _written_out(config.devices, {place[1:]: o for place, o in origins.items() if place[:1] == ("devices",)})
    own = raw.get("device")
    if not isinstance(own, dict):
        return {}
    label = str(own.get("name", "device"))
    return _written_out(
        {label: own}, {(label, *place[1:]): o for place, o in origins.items() if place[:1] == ("device",)}
    )


def _written_out(content: Mapping[str, Any], origins: Mapping[Place, str]) -> dict[str, Device]:
    """Devices by label from their content; `origins` by label and path inside.

    Raises:
        UsageError: one is no device, with the line.
    """
    devices = {}
    for label, figures in content.items():
        faults = Faults({("device", *place[1:]): origin for place, origin in origins.items() if place[:1] == (label,)})
        device = named_device(figures, faults)
        faults.raise_if_any()
        assert device is not None
        devices[label] = device
    return devices


def _expanded(name: str) -> list[str]:
    """A name of `--devices` as devices' ids."""
    if name == EVERYTHING:
        return list(documents(entry_points.SHIPPED["devices"]))
    base, at, mode = name.rpartition("@")
    if is_file(name) or (base or name).endswith((".yaml", ".yml")):
        device = name
    else:
        device, base, mode = normalised(name), normalised(base), normalised(mode)
    return [base, *(f"{base}@{own}" for own in load_device(base).modes)] if at and mode == EVERYTHING else [device]


def _precisions(config: DevicesConfig, raw: Mapping[str, Any]) -> list[str]:
    for name in config.precisions or []:
        if name not in PRECISIONS:
            raise UsageError(f"--precisions: {unknown('a precision', name, PRECISIONS)}")
    return list(
        dict.fromkeys(config.precisions or [raw.get("precision", StudyConfig.model_fields["precision"].default)])
    )


def _workload(text: str) -> dict[str, Any]:
    form = WORKLOAD.match(text)
    if form is None:
        raise UsageError(f"--workloads: expected {FORM}, got {text!r}; write 1024/16, 8/1024/16 or 10kB/500B")
    given = {name: part for name, part in zip(("batch", *IN_TEXT), form.groups(), strict=True) if part is not None}
    return {
        IN_TEXT[name] if part[-1] == "B" else name: part if part[-1] == "B" else int(part)
        for name, part in given.items()
    }


def _can(device: Device, kind: str) -> bool:
    """Whether a device states the peak that a precision's linear operators run at; an unknown precision is refused later."""
    if kind not in PRECISIONS:
        return True
    return PRECISIONS[kind].on(device).linear_peak in device.peaks


def _short(name: str) -> str:
    """A device's name in a label: a file's without folders and ending."""
    path, _, mode = name.partition("@")
    return (Path(path).stem if path.endswith((".yaml", ".yml")) else path) + (f"@{mode}" if mode else "")


def _labelled(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows with a label each; those without one, or with another's, are called after their number too."""
    seen = Counter(row.label for row in rows)
    return tuple(
        row
        if row.label and seen[row.label] == 1
        else replace(row, label=f"{i}: {row.label or _short(str(row.values.get('device', 'device')))}")
        for i, row in enumerate(rows, 1)
    )
