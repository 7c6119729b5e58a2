"""The rows that files of measurements hold: a measured CSV, an export, or logs of other programs."""

import io
import shlex
from collections.abc import Sequence
from pathlib import Path

from nas.calibrate.bench_results import bench_lines
from nas.calibrate.document import Document, document
from nas.calibrate.log import Wanted, expected_formats, read_logs, reader_of
from nas.calibrate.models import given_models
from nas.calibrate.request import CalibrateRequest
from nas.calibrate.shared import recognises, shared_rows
from nas.errors import UsageError
from nas.study.catalogue import id_and_mode, load_device
from nas.terminal.program import command
from objectives import outside
from objectives.table import read_sheet

NEEDED = ("metric", "value", "prompt_len")


def target(request: CalibrateRequest) -> Path:
    """The device file to write."""
    return request.out or Path(f"{Path(id_and_mode(request.device)[0]).stem}_calibrated.yaml")


def repeated(request: CalibrateRequest) -> str:
    """The command that calibrates again, typed in the folder that holds its files."""
    base, mode = id_and_mode(request.device)
    words = [*command("calibrate").split(), *(path.resolve().name for path in request.measured)]
    words += ["--device", f"{Path(base).name}{'@' * bool(mode)}{mode}"]
    words += [word for model in request.models for word in ("--model", model)]
    for flag, value in (("--precision", request.precision), ("--measured-on", request.measured_on)):
        words += [flag, value] if value else []
    words += ["--request-overhead"] * request.request + (
        ["--contended", request.contended] if request.contended else []
    )
    return shlex.join([*words, "--out", "again.yaml", "--report", "again"])


def called(paths: Sequence[Path]) -> str:
    """How several files are named together."""
    names = [path.resolve().name for path in paths]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def read_input(request: CalibrateRequest) -> tuple[list[str], list[str]]:
    """Lines of a measured CSV, and notes on the logs that they were read from.

    Raises:
        UsageError: nothing that can be read, or a log beside something else.
    """
    paths = request.measured
    given = [None if path.is_dir() else document(path) for path in paths]
    beside = {"--model": request.models, "--precision": request.precision, "--measured-on": request.measured_on}
    stray = next((flag for flag, value in beside.items() if value), None)
    if shared := [found for found in given if found is not None and recognises(found)]:
        return _shared(shared, paths, stray)
    read_as = [None if found is None else (found, reader_of(found)) for found in given]
    logs = [(found, reader) for found, reader in (each for each in read_as if each is not None) if reader is not None]
    if not logs:
        _refuse_stray(stray, paths[0])
        if len(paths) > 1:
            raise UsageError(
                f"measured: expected one measured CSV, one export, or logs, got {len(paths)} of them; join the tables"
            )
        return (bench_lines(paths[0]) if paths[0].is_dir() else csv_lines(paths[0])), []
    if len(logs) < len(paths):
        other = next(path for path, each in zip(paths, read_as, strict=True) if each is None or each[1] is None)
        known, more = expected_formats()
        raise UsageError(f"{other}: expected {known} beside the others, got something else; {more}")
    log = read_logs(logs, Wanted(given_models(request.models), request.precision, request.measured_on))
    modes = load_device(id_and_mode(request.device)[0]).modes
    named = id_and_mode(request.device)[1] or "the default one"
    mode = [f"No log names the power mode: {named} is taken ({', '.join(modes)} can be named with @)"] if modes else []
    return log.lines, [*log.told, *mode]


def _shared(shared: Sequence[Document], paths: Sequence[Path], stray: str | None) -> tuple[list[str], list[str]]:
    """The rows of files that somebody shared, and what they are of.

    Raises:
        UsageError: something else beside them, or a flag that only logs need.
    """
    _refuse_stray(stray, shared[0].path)
    if len(shared) < len(paths):
        other = next(path for path in paths if path not in {found.path for found in shared})
        raise UsageError(
            f"{other}: expected shared measurements beside the others, got another file; read it by itself"
        )
    return shared_rows(shared)


def _refuse_stray(flag: str | None, path: Path) -> None:
    if flag is not None:
        raise UsageError(
            f"{flag}: expected a log of another program, got {path}, whose rows say it themselves; leave it out"
        )


def csv_lines(path: Path) -> list[str]:
    """Lines of a CSV file.

    Raises:
        UsageError: it is none, or lacks columns.
    """
    try:
        sheet = read_sheet(path)
    except ValueError as error:
        first = _first_line(path)
        if first.lstrip().startswith(("{", "[")):
            raise _unknown(path, first) from None
        raise UsageError(str(error)) from None
    if any(sheet.header) and not {*sheet.header} & {*NEEDED, "min"}:
        raise _unknown(path, _first_line(path))
    _refuse_header(path, sheet.header)
    return list(io.StringIO(sheet.text, newline=None))


def _first_line(path: Path) -> str:
    """The first line of a file; "" where it is no text."""
    try:
        return outside.text(path, 100 * outside.MB, encoding="utf-8-sig").partition("\n")[0]
    except (OSError, ValueError):
        return ""


def _unknown(path: Path, first: str) -> UsageError:
    """A file of no columns of ours is a log of a format that nobody here reads."""
    log, more = expected_formats()
    return UsageError(
        f"{path}: expected columns {', '.join(NEEDED)}, or {log}, got a file that begins {first[:40]!r}; {more}"
    )


def _refuse_header(path: Path, header: Sequence[str]) -> None:
    """Columns that no row can do without; the fastest of repetitions (`min`) stands for a value."""
    wanted = (NEEDED[0], "min" if "min" in header else "value", NEEDED[2])
    if not (lacking := [name for name in wanted if name not in header]):
        return
    raise UsageError(
        f"{path}: expected columns {', '.join(lacking)}, got {', '.join(header) or 'none'}; add them; see docs/measure-and-calibrate.md"
    )
