"""One file of a measurement to give to others: device, engine and rows, and nothing that names a person or a machine."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nas.errors import UsageError
from nas.files.tables import refuse_existing, write_json
from nas.measure.request import MeasureRequest
from nas.measure.summary import measured_rows
from nas.study.baselines import baseline
from nas.study.catalogue import id_and_mode
from objectives.calibrating.shared import KIND, VERSION, SharedDevice, SharedMeasurements, SharedRow
from objectives.plugins import DISTRIBUTION, documents, normalised, version_of

FIELDS = ("engine", "precision", "batch", "prompt_len", "gen_len", "metric", "value", "min", "q1", "q3", "samples")
ENERGY = ("energy_j", "rail")
NOT_IN_IT = "no name of a host, user, candidate or folder, no path, no serial number, no time of day"


def refuse_share(request: MeasureRequest) -> None:
    """Say before the work that the file to share could not be written after it.

    Raises:
        UsageError: not a new .json file in a folder that exists, or rates of the machine, which are a device file.
    """
    if request.share is None:
        return
    if request.hardware:
        raise UsageError(
            "--share: expected measured candidates, got --hardware; its device file can be given on as it is"
        )
    if request.share.suffix != ".json" or not request.share.parent.is_dir():
        raise UsageError(f"--share: expected a .json file in a folder that exists, got {request.share}; name another")
    refuse_existing("--share", request.share)


def share(
    path: Path, candidates: dict[str, dict[str, Any]], lines: list[dict[str, Any]], settings: dict[str, Any]
) -> list[str]:
    """Write the file; what is in it and what is not, in lines to show."""
    found = shared(candidates, lines, settings)
    write_json(path, found.model_dump(exclude_defaults=True))
    engines = dict.fromkeys(row.engine for row in found.rows)
    return [
        f"{path}, to give to others: {len(found.rows)} rows of {len({row.model for row in found.rows})} models, {found.month}",
        f"  in it: {found.device}; {', '.join(engines)}; medians, quartiles and the designs' columns",
        f"  not in it: {NOT_IN_IT}; read it before you give it on",
    ]


def shared(
    candidates: dict[str, dict[str, Any]], lines: list[dict[str, Any]], settings: dict[str, Any]
) -> SharedMeasurements:
    """The rows that were measured, models without a public name as design-1, design-2 …"""
    names = public_names(candidates)
    rows = [row for row in measured_rows(candidates, lines, settings) if row["state"] == "ok"]
    return SharedMeasurements(
        kind=KIND,
        version=VERSION,
        tool=f"{DISTRIBUTION} {version_of(DISTRIBUTION)}".removesuffix(" not installed"),
        month=datetime.now(UTC).strftime("%Y-%m"),
        device=_device(settings["device"], lines[-1]["machine"]),
        rows=[_row(row, names[row["model"]], candidates[row["model"]]) for row in rows],
    )


def public_names(candidates: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What each candidate is called in a file for others: published models by their names, others by their number."""
    published = {baseline(name).label for name in documents("search_spaces.models")}
    own = [name for name in candidates if name not in published]
    return {name: name for name in candidates} | {name: f"design-{i}" for i, name in enumerate(own, 1)}


def _device(name: str, machine: dict[str, Any]) -> SharedDevice:
    """The device as the system reports it; a name that is no key of the catalogue is somebody's own and left out."""
    key = normalised(id_and_mode(name)[0])
    return SharedDevice(
        id=key if key in documents("objectives.devices") else "",
        processor=str(machine.get("processor", ""))[:200],
        cores=int(machine.get("cores") or 0),
        system=str(machine.get("system", "")).partition("-")[0],
        power_mode=str(machine.get("power_mode", ""))[:200],
        governor=str(machine.get("governor", ""))[:200],
    )


def _row(row: dict[str, Any], model: str, architecture: dict[str, Any]) -> SharedRow:
    known = {name: row[name] for name in FIELDS} | {name: row[name] for name in ENERGY if name in row}
    columns = {name: value for name, value in architecture.items() if name != "device"}
    return SharedRow(model=model, architecture=columns, contended=row["contended"] == "yes", **known)
