"""A measured CSV becomes calibrated profiles, with how wrong they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nas.errors import PlasError, UsageError
from nas.files import yaml_source
from nas.files.own_files import made_folder
from nas.files.report_json import FILE, stamped
from nas.files.tables import refuse_used, write, write_json
from nas.pages.page import write_page
from nas.study.baselines import baseline
from nas.study.catalogue import id_and_mode, load_device, load_law
from nas.terminal.console import notice
from nas.terminal.tables import show
from objectives import outside
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.plugins import normalised
from plas_board.calibrate.calibration_document import (
    DOUBTFUL,
    calibration_document,
    energy_report,
    group_report,
    not_recommended,
    served_report,
    usage,
)
from plas_board.calibrate.devices import contradicts
from plas_board.calibrate.inputs import called, read_input, repeated, target
from plas_board.calibrate.page import calibration_page
from plas_board.calibrate.request import CalibrateRequest
from plas_board.calibrating.energy import EnergyGroup, calibrate_energy, metered
from plas_board.calibrating.group import Calibrated, calibrate, with_beside, with_memory
from plas_board.calibrating.measurements import Contended, LeftOut, Measurement, read, reasons
from plas_board.calibrating.served import ServedGroup, refused, served_groups
from search_spaces.architectures import Architectures

UNFITTED: dict[str, Any] = {"profiles": [], "energy": []}
WHOLE = "a whole request, both phases together, without its energy: measure prefill and decoding apart"
LAW = "hw_codesign"  # a scenario has one; latency does not depend on it


def execute(request: CalibrateRequest) -> None:
    """Calibrate, say how wrong it is, write the device file and the report.

    Raises:
        UsageError: nothing to read, or a place that holds something else.
        PlasError: no profile passes its own check.
    """
    if request.report is not None:
        refuse_used("--report", request.report)
    outcome = calibrate_files(request)
    named = {
        "table": called([path for path in request.measured if str(path) != DOUBTFUL]),
        "written": target(request).name,
        "command": repeated(request),
    }
    content = stamped("calibration", outcome.report() | named)
    show(calibration_document(content), as_json=request.json)
    for doubt in not_recommended(content):
        notice(doubt)
    if outcome.written:
        notice(f"Written: {target(request)}. {usage(content, str(target(request)))}".rstrip())
    if request.report is not None:
        write_json(made_folder(request.report) / FILE, content)
        page = write_page(request.report, "calibration", calibration_page)
        notice(f"Report: {page} opens in a browser")
    if not outcome.written:
        raise PlasError(
            f"{target(request)}: expected a profile that passes its own check, got none; nothing is written"
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Calibrated groups of one device in one power mode, and the rows that were not used.

    device: with all its power modes. mode: the one that was measured.
    """

    device: Device
    mode: str
    groups: list[Calibrated]
    energies: list[EnergyGroup]
    left_out: list[LeftOut]
    elsewhere: int
    notes: Sequence[str] = ()
    served: Sequence[ServedGroup] = ()
    doubtful: bool = False

    @property
    def written(self) -> bool:
        """Whether there is anything to write: a profile that passes its own check or is wanted in any case, or something else."""
        return len(self.fitted) > len(self.groups) or any(map(self.passes, self.groups))

    def passes(self, group: Calibrated) -> bool:
        """Whether a profile passes its own check, or is wanted in any case."""
        return self.doubtful or not group.doubts()

    @property
    def fitted(self) -> list[Calibrated | EnergyGroup | ServedGroup]:
        """Everything that was fitted: times, how models are served, then energy."""
        return [*self.groups, *self.served, *self.energies]

    def profiled(self) -> Device:
        """The device with the new profiles that pass their own check and all its others; new ones replace those of the same key.

        What was fitted to how models are served holds in every profile of that engine, batch and mode.
        """
        new = (g.profile for g in self.groups if self.passes(g))
        profiles = {_key(p): p for p in (*self.device.profiles, *new)}
        for group in self.served:
            engine, batch = group.rows[0].engine, group.rows[0].batch
            for key, p in profiles.items():
                if (p.mode, p.engine, p.batch) == (self.mode, engine, batch):
                    profiles[key] = p.model_copy(update={group.coefficient: group.value})
        energy = {(e.mode, e.engine): e for e in (*self.device.energy, *(g.energy for g in self.energies))}
        return self.device.model_copy(update={"profiles": list(profiles.values()), "energy": list(energy.values())})

    def report(self) -> dict[str, Any]:
        """Everything that the text and the page say, as plain content."""
        measured = self.device.in_mode(self.mode) if self.mode else self.device
        return {
            "device": self.device.name,
            "mode": self.mode,
            "peaks": measured.peaks,
            "bandwidth": measured.bandwidth,
            "slow_bandwidth": None if measured.slow_memory is None else measured.slow_memory.bandwidth,
            "confidence": self.device.confidence,
            "groups": [group_report(group) for group in self.groups],
            "served": [served_report(group) for group in self.served],
            "energy": [energy_report(group) for group in self.energies],
            "rows_used": len({m.line for group in self.fitted for m in group.rows}),
            "left_out": [asdict(row) for row in self.left_out],
            "rows_of_other_devices": self.elsewhere,
            "told": list(self.notes),
            "doubtful": self.doubtful,
        }


def _profiles(device: Device, groups: Iterable[Calibrated]) -> list[Calibration]:
    """The profiles that were fitted, then the device's others."""
    new = [group.profile for group in groups]
    return [*new, *(p for p in device.profiles if _key(p) not in {_key(own) for own in new})]


def _key(profile: Calibration) -> tuple[str, str, str, str, int]:
    return profile.mode, profile.engine, profile.precision, profile.format, profile.batch


def resolve(row: Mapping[str, str]) -> tuple[str, Architectures]:
    """Name and architecture of a row: a published model's name, or columns of an architecture.

    Columns say what was measured, windows among them. Of a published model's name windows are left out: engines differ in
    whether they keep them, and the shipped profiles were fitted with attention to the whole context in every layer.

    Raises:
        ValueError: neither.
    """
    of_rows = ("precision", "device")  # are the measurement's
    names = (name for name in Architectures.__dataclass_fields__ if name not in of_rows)
    columns = {name: row[name] for name in names if row.get(name)}
    try:
        model = baseline({"name": row.get("model") or "design", **columns} if columns else row.get("model", ""))
    except UsageError as error:
        raise ValueError(f"model: {error}; or give the architecture's columns") from None
    return model.label, model.architecture if columns else model.architecture.with_full_attention()


def measured_rows(
    lines: Iterable[str], device: str, *, contended: Contended = "", first: int = 2
) -> tuple[list[Measurement], list[LeftOut], int]:
    """Rows of one device, rows left out, those of an engine that no such chip runs too, and how many belong to other devices."""
    rows, left = read(lines, device, resolve, contended=contended, first=first)
    on = load_device(device)
    other = [m for m in rows if contradicts("", on, m.engine)]
    rows = [m for m in rows if m not in other]
    left += [LeftOut(m.line, m.device, f"measured with {m.engine}, which {on.name} does not run") for m in other]
    base, mode = id_and_mode(device)
    wanted = {normalised(name + "@" * bool(mode) + mode) for name in (base, Path(base).stem)}
    here = [m for m in rows if normalised(m.device) in wanted]
    unused = [row for row in left if normalised(row.device) in wanted]
    return here, unused, len(rows) + len(left) - len(here) - len(unused)


def calibrated(
    lines: Sequence[str], device: str, source: str, *, request: bool = False, contended: Contended = "", first: int = 2
) -> Outcome:
    """Every group of a device's measured rows, calibrated.

    Raises:
        UsageError: no row of the device can be used.
    """
    rows, left, elsewhere = measured_rows(lines, device, contended=contended, first=first)
    if not rows:
        why = f"; {reasons(left)}" if left else ""
        raise UsageError(
            f"{source}: expected measured rows of {device}, got none ({elsewhere} of other devices, {len(left)} left out{why}); "
            "see docs/measure-and-calibrate.md"
        )
    priced_on, law, unfitted = load_device(device), load_law(LAW), list[LeftOut]()
    done = list(_times(rows, priced_on, law, source, unfitted, request=request))
    served = _served(rows, priced_on, law, done, unfitted)
    energies = list(_energies(rows, priced_on, law, source, unfitted))
    fitted: list[Calibrated | EnergyGroup | ServedGroup] = [*done, *served, *energies]
    used = {m.line for group in fitted for m in group.rows} | {row.line for row in unfitted}
    unfitted += [LeftOut(m.line, m.device, WHOLE) for m in rows if m.line not in used]
    base, mode = id_and_mode(device)
    left += dict.fromkeys(unfitted)
    return Outcome(load_device(base), mode, done, energies, left, elsewhere, served=served)


def _times(
    rows: Sequence[Measurement], device: Device, law: Law, source: str, unfitted: list[LeftOut], *, request: bool
) -> Iterator[Calibrated]:
    """Every group of plain rows; rows of those that cannot be fitted go to `unfitted`."""
    for members, beside in with_beside(rows):
        try:
            group = calibrate(members, device, law, source, request=request, beside=beside)
            yield with_memory(group, device, law)
        except ValueError as error:
            unfitted += _left(members, str(error))


def _served(
    rows: Sequence[Measurement], device: Device, law: Law, done: Sequence[Calibrated], unfitted: list[LeftOut]
) -> list[ServedGroup]:
    """Coefficients of how models are served, after the device's own; rows that say nothing of one go to `unfitted`."""
    profiles = [p for p in _profiles(device, done) if p.mode == device.mode]
    why = {m.line: refused(m, device, profiles) for m in rows if not m.plain}
    for m in rows:
        if why.get(m.line):
            unfitted += _left([m], why[m.line])
    return served_groups([m for m in rows if why.get(m.line) == ""], device, law, profiles)


def _energies(
    rows: Sequence[Measurement], device: Device, law: Law, source: str, unfitted: list[LeftOut]
) -> Iterator[EnergyGroup]:
    """Every engine's energy; rows of those that cannot be fitted go to `unfitted`."""
    for members in metered(rows).values():
        alike = [m for m in rows if m.engine == members[0].engine]
        try:
            yield calibrate_energy(members, alike, device, law, source)
        except ValueError as error:
            unfitted += _left(members, str(error))


def _left(rows: Iterable[Measurement], reason: str) -> list[LeftOut]:
    return [LeftOut(m.line, m.device, reason) for m in rows]


def calibrate_files(request: CalibrateRequest) -> Outcome:
    """Calibrate from a measured CSV, logs, or an export whose benches have run, and write the device file.

    A file that this wrote of the same device keeps its profiles.

    Raises:
        UsageError: nothing to read, or the file to write is another one.
    """
    paths = tuple(path for path in request.measured if str(path) != DOUBTFUL)
    out, doubtful = target(request), len(paths) < len(request.measured)
    request = replace(request, measured=paths)
    earlier = written_before(out, load_device(id_and_mode(request.device)[0]))
    lines, notes = read_input(request)
    outcome = calibrated(
        lines,
        request.device,
        called(paths),
        request=request.request,
        contended=request.contended or "",
        first=1 if notes else 2,
    )
    outcome = replace(outcome, notes=notes, doubtful=doubtful)
    if not outcome.fitted:
        raise PlasError(f"{paths[0]}: nothing to calibrate on; {reasons(outcome.left_out)}")
    device = outcome.profiled()
    if earlier is not None:
        device = replace(outcome, device=earlier).profiled()
    if outcome.written:
        write(out, device_text(device))
    return outcome


def device_text(device: Device) -> str:
    """A device file as `calibrate` writes it."""
    return yaml_source.dump(device.mapping())


def written_before(out: Path, device: Device) -> Device | None:
    """The device in a file that `calibrate` wrote of the same device, None where there is no file.

    Raises:
        UsageError: any other file; one that was edited by hand would lose its comments.
    """
    if not out.exists():
        return None
    with suppress(UsageError, OSError, UnicodeDecodeError):
        earlier = load_device(str(out))
        same = earlier.model_copy(update=UNFITTED) == device.model_copy(update=UNFITTED)
        if same and outside.text(out, outside.MB) == device_text(earlier):
            return earlier
    raise UsageError(
        f"--out: expected a new file, or one that calibrate wrote of {device.name}, got {out}; name another"
    )
