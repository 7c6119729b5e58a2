"""A measured CSV becomes calibrated profiles, with how wrong they are."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas import yaml_source
from nas.baselines import baseline
from nas.errors import PlasError, UsageError
from nas.named import load_device, load_law, normalised
from nas.tables import write
from objectives.calibrating.group import Calibrated, calibrate, groups
from objectives.calibrating.table import LeftOut, Measurement, read
from objectives.device import Calibration, Device
from objectives.written_text import csv_fault
from search_spaces.architectures import Architectures

LAW = "hw_codesign"  # a scenario has one; latency does not depend on it


@dataclass(frozen=True, eq=False)
class Outcome:
    """Calibrated groups of one device, and the rows that were not used."""

    device: Device
    groups: list[Calibrated]
    left_out: list[LeftOut]
    elsewhere: int

    def mapping(self) -> dict[str, Any]:
        """The device with its profiles, as a device file; new ones replace those of the same key."""
        fresh = {_key(g.profile): g.profile for g in self.groups}
        kept = [p for p in self.device.profiles if p.mode == self.device.mode and _key(p) not in fresh]
        content = self.device.model_copy(update={"profiles": []}).mapping()
        profiles = [p.model_dump(mode="json", exclude_defaults=True) for p in (*fresh.values(), *kept)]
        return content | {"profiles": profiles}

    def report(self) -> dict[str, Any]:
        """Everything that the text says, as plain content."""
        return {
            "device": self.device.name,
            "groups": [group_report(group) for group in self.groups],
            "left_out": [asdict(row) for row in self.left_out],
            "rows_of_other_devices": self.elsewhere,
        }


def _key(profile: Calibration) -> tuple[str, str, int]:
    return profile.engine, profile.precision, profile.batch


def group_report(group: Calibrated) -> dict[str, Any]:
    """Profile, errors by phase and prediction, and the rows that do not fit."""
    predictions = {"datasheet": group.datasheet, "in_sample": group.in_sample, "held_out": group.held_out}
    return {
        "profile": group.profile.model_dump(mode="json", exclude_none=True),
        "rows": len(group.rows),
        "models": group.models,
        "errors": {
            phase: {name: asdict(group.errors(phase, ms)) for name, ms in predictions.items()}
            for phase in ("prefill", "decode")
        },
        "misfits": [{"row": m.place, "error": error} for m, error in group.misfits()],
        "remarks": group.remarks(),
    }


def resolve(row: Mapping[str, str]) -> tuple[str, Architectures]:
    """Name and architecture of a row: a published model's name, or columns of an architecture.

    Raises:
        ValueError: neither.
    """
    columns = {name: row[name] for name in Architectures.__dataclass_fields__ if row.get(name)}
    try:
        known = baseline({"name": row.get("model") or "unnamed", **columns} if columns else row.get("model", ""))
    except UsageError as error:
        raise ValueError(f"model: {error}; or give the architecture's columns") from None
    return known.label, known.architecture


def measured_rows(lines: Iterable[str], device: str) -> tuple[list[Measurement], list[LeftOut], int]:
    """Rows of one device, rows left out, and how many belong to other devices."""
    found, left = read(lines, device, resolve)
    wanted = {normalised(device), normalised(Path(device).stem)}
    here = [m for m in found if normalised(m.device) in wanted]
    unused = [row for row in left if normalised(row.device) in wanted]
    return here, unused, len(found) + len(left) - len(here) - len(unused)


def calibrated(lines: Sequence[str], device: str, source: str, *, request: bool = False) -> Outcome:
    """Every group of a device's measured rows, calibrated.

    Raises:
        UsageError: no row of the device can be used.
    """
    rows, left, elsewhere = measured_rows(lines, device)
    if not rows:
        first = f"; line {left[0].line}: {left[0].reason}" if left else ""
        raise UsageError(
            f"{source}: expected measured rows of {device}, got none ({elsewhere} of other devices, {len(left)} left out{first}); "
            "see docs/measure-and-calibrate.md"
        )
    known, law = load_device(device), load_law(LAW)
    done, refused = [], []
    for members in groups(rows).values():
        try:
            done.append(calibrate(members, known, law, source, request=request))
        except ValueError as error:
            refused += [LeftOut(m.line, m.device, str(error)) for m in members]
    return Outcome(known, done, left + refused, elsewhere)


def calibrate_file(path: Path, device: str, out: Path, *, request: bool = False) -> Outcome:
    """Calibrate from a file and write the device file.

    Raises:
        UsageError: nothing to read, or `out` exists.
    """
    if out.exists():
        raise UsageError(f"--out: expected a new file, got {out} which exists; name another")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        list(csv.reader(lines, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = csv_fault(error) if isinstance(error, csv.Error) else type(error).__name__
        raise UsageError(f"{path}: expected a CSV file, got {reason}; see docs/measure-and-calibrate.md") from None
    outcome = calibrated(lines, device, path.name, request=request)
    if not outcome.groups:
        raise PlasError(f"{path}: line {outcome.left_out[0].line}: {outcome.left_out[0].reason}")
    write(out, yaml_source.dump(outcome.mapping()))
    return outcome
