"""The rows that files of measurements hold: a measured CSV, an export, or logs of other programs."""

import io
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from nas.errors import UsageError
from nas.export.candidates import columns
from nas.export.folder import folder_names, read_manifest
from nas.export.launch_list import FILE
from nas.export.model import Workload
from nas.files import yaml_source
from nas.files.faults import Faults
from nas.record.candidates import read_candidates
from nas.study.catalogue import id_and_mode, load_device
from nas.terminal.doors import command
from objectives import outside
from objectives.table import sheet_of
from plas_board.calibrate import llama_bench, speeds
from plas_board.calibrate.figure import PAGE, Document, Unusable, document
from plas_board.calibrate.log import Wanted, read_logs, reader_of
from plas_board.calibrate.models import Model, given_models, slow_share
from plas_board.calibrate.request import CalibrateRequest
from plas_board.calibrating.measurements import rows_text
from plas_board.calibrating.shared import KIND, VERSION, SharedMeasurements

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
        other, unread = next(pair for pair in zip(paths, read_as, strict=True) if pair[1] is None or pair[1][1] is None)
        why = "a folder" if unread is None else speeds.why_unread(unread[0])
        raise UsageError(f"{other}: expected a log beside the others, got {why}; {PAGE}")
    device, mode = load_device(request.device), id_and_mode(request.device)[1]
    log = read_logs(logs, Wanted(given_models(request.models), request.precision, request.measured_on, device))
    choices = f"{mode or 'the default one'} is taken ({', '.join(device.modes)} can be named with @)"
    noted = [f"No log names the power mode: {choices}"] if device.modes else []
    return log.lines, [*log.told, *noted]


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
    given = document(path)
    first = next((line for line in given.text.splitlines() if line.strip()), "")
    if first and (first.lstrip()[0] in "{[" or not {*re.findall(r"\w+", first)} & {*NEEDED, "min"}):
        raise UsageError(
            f"{path}: expected columns {', '.join(NEEDED)}, or a log, got {speeds.why_unread(given)}; {PAGE}"
        )
    try:
        sheet = sheet_of(path, given.text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _refuse_header(path, sheet.header)
    return list(io.StringIO(sheet.text, newline=None))


def _refuse_header(path: Path, header: Sequence[str]) -> None:
    """Columns that no row can do without; the fastest of repetitions (`min`) stands for a value."""
    wanted = (NEEDED[0], "min" if "min" in header else "value", NEEDED[2])
    if not (lacking := [name for name in wanted if name not in header]):
        return
    raise UsageError(
        f"{path}: expected columns {', '.join(lacking)}, got {', '.join(header) or 'none'}; add them; see docs/measure-and-calibrate.md"
    )


def recognises(document: Document) -> bool:
    """An object that says so."""
    return isinstance(document.json, dict) and document.json.get("kind") == KIND


def shared_rows(documents: Sequence[Document]) -> tuple[list[str], list[str]]:
    """Lines of a measured CSV with the rows of all files, and what each is of.

    Raises:
        UsageError: a file of another version or with other fields, every fault with its line.
    """
    found = [_read(document) for document in documents]
    rows = [row for each in found for row in _rows(each)]
    lines = rows_text(rows).splitlines()
    return lines, list(dict.fromkeys(f"Shared measurements of {each.device}, {each.month}" for each in found))


def _read(document: Document) -> SharedMeasurements:
    if document.json.get("version") != VERSION:
        raise UsageError(
            f"{document.path}: expected version {VERSION} of shared measurements, got {document.json.get('version')!r}; "
            "read it with the version of PLAS that wrote it"
        )
    try:
        return SharedMeasurements.model_validate(document.json)
    except ValidationError as error:
        faults = Faults(yaml_source.read(document.path)[1])
        faults.add_validation(error, model=SharedMeasurements)
        faults.raise_if_any()
        raise


def _rows(found: SharedMeasurements) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        told = row.model_dump(exclude={"architecture", "contended"}, exclude_none=True)
        yield {**row.architecture, **told, "contended": "yes" if row.contended else "no"}


Row = dict[str, Any]
DRAFTED = "tokens drafted ahead by a model of random or unknown weights: what it accepts is not in its result"


def bench_lines(folder: Path) -> list[str]:
    """Lines of a measured CSV from the results in an export.

    Raises:
        UsageError: no export, or none of its benches has run.
    """
    written = read_manifest(folder)
    architectures, ids = read_candidates(folder / FILE)
    each = written.of_candidates(folder, len(ids))
    rows: list[Row] = []
    for i, (name, place, (workload, served)) in enumerate(zip(ids, folder_names(ids), each, strict=True)):
        model = Model(name, architectures[i : i + 1])
        drafted = {"left_out": DRAFTED} if served.drafted else {}
        found = [*(row | drafted for row in _vllm(folder / place, workload)), *_llama_bench(folder / place, model)]
        known = {"model": name, **columns(model.architecture)}
        rows += [known | row for row in found]
    if not rows:
        raise UsageError(
            f"{folder}: expected results of bench.sh, got none; run vllm/bench.sh or llama-bench/bench.sh in the candidates' folders"
        )
    return rows_text(rows).splitlines()


def _vllm(place: Path, workload: Workload) -> Iterator[Row]:
    """T(1) is the prefill, (T(n + 1) - T(1)) / n a decode step: medians of `vllm bench latency`'s runs."""
    steps = workload.output_tokens
    files = [place / "vllm" / f"latency-{tokens}.json" for tokens in (1, steps + 1)]
    if not any(file.exists() for file in files):
        return
    common = {"engine": "vLLM", "precision": "bf16", "batch": workload.batch, "prompt_len": workload.input_tokens}
    try:
        one, all_ = (median(float(s) for s in _content(file)["latencies"]) * 1e3 for file in files)
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        yield common | {"state": f"garbled result of vllm ({type(error).__name__})"}
        return
    yield common | {"metric": "prefill_ms", "value": one, "gen_len": 0}
    yield common | {"metric": "tpot_ms", "value": (all_ - one) / steps, "gen_len": steps}


def _llama_bench(place: Path, model: Model) -> Iterator[Row]:
    """Every test of llama-bench's JSON: prompts alone are prefills, generation alone decodes."""
    file = place / "llama-bench" / "result.json"
    if not file.exists():
        return
    try:
        entries = _content(file)
        yield from [_llama_row(entry, model) for entry in entries if entry["n_prompt"] + entry["n_gen"]]
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError, OSError) as error:
        yield {"engine": "llama-bench", "state": f"garbled result of llama-bench ({type(error).__name__})"}


def _llama_row(entry: dict[str, Any], model: Model) -> Row:
    found = llama_bench.figure(entry)
    row = {"engine": f"llama-bench {entry.get('build_commit', 'unknown')}", **found.cells}
    if found.fault:
        return row | {"state": found.fault}
    try:
        slow = slow_share(model, found)
    except Unusable as error:
        return row | {"left_out": str(error)}
    return row | ({"slow_share": f"{slow:.6g}"} if slow else {})


def _content(file: Path) -> Any:
    return outside.json_of(file, 100 * outside.MB)
