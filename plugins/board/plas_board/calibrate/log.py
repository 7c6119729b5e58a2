"""Logs of every format as lines of one measured CSV, with what was found out on the way."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from nas.errors import UsageError
from nas.export.candidates import columns
from nas.study.user_code import modules
from nas.terminal.console import notice
from objectives.device import Device
from objectives.measured_formats import FORMATS, format_of
from plas_board.calibrate import llama_batched, llama_bench, llama_markdown, llama_server, mlx, speeds
from plas_board.calibrate.devices import chips, contradicts, in_heading, is_same
from plas_board.calibrate.figure import PAGE, WRITTEN, Document, Figure, Reader, Unusable, format_in, refuse
from plas_board.calibrate.models import ANY, Model, file_bits, identified, key, of_library, published, shown, slow_share
from plas_board.calibrating.measurements import rows_text

#: In the order in which they are asked whether a document is theirs: what stands in other logs too comes last.
READERS: tuple[Reader, ...] = (llama_bench, llama_markdown, llama_batched, mlx, llama_server, speeds)
MOST_FIGURES = 20_000
SQL = "llama-bench's SQL"
STEPS = ("decode_tok_s", "tpot_ms")
#: Bytes that caches of a GPU may hold from step to step, and the share by which a datasheet's bandwidth may be low.
HELD, BUS_SLACK = 1.28e8, 1.05


@dataclass(frozen=True)
class Wanted:
    """Facts that a log lacks or gives twice: models by its names, its weight format, the device as it calls it, the one to calibrate."""

    models: Mapping[str, Model]
    precision: str = ""
    measured_on: str = ""
    device: Device | None = None


@dataclass(frozen=True)
class Log:
    """Lines of a measured CSV, header first, and notes on their source."""

    lines: list[str]
    told: list[str]


def reader_of(document: Document) -> Reader | None:
    """The format of a document, None for a measured CSV.

    Raises:
        UsageError: a format that is known and not read.
    """
    if "INSERT INTO llama_bench" in document.text or "CREATE TABLE IF NOT EXISTS llama_bench" in document.text:
        raise UsageError(
            f"{document.path}: expected json, jsonl, csv or md of llama-bench, got {SQL}; run it with -o json"
        )
    return next((reader for reader in readers() if _recognises(reader, document)), None)


def _recognises(reader: Reader, document: Document) -> bool:
    """Whether a document is of a format; one that a package's reader stumbles over is not."""
    try:
        return reader.recognises(document)
    except Exception as error:
        notice(_stumbled(reader, document, error))
        return False


def _figures(reader: Reader, documents: Sequence[Document]) -> list[Figure]:
    """Every figure of documents of one format.

    Raises:
        UsageError: a package's reader stumbles over them.
    """
    try:
        return list(reader.figures(documents))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(_stumbled(reader, documents[0], error)) from None


def _placed(reader: Reader, documents: Sequence[Document]) -> Iterator[Figure]:
    """Every figure, those under a heading that names a device of that one where they do not name theirs."""
    by_place: dict[str, list[Document]] = {}
    for document in documents:
        for place, part in document.parts(in_heading):
            by_place.setdefault(place, []).append(part)
    for place, parts in by_place.items():
        for figure in _figures(reader, parts) if len(by_place) == 1 or any(map(reader.recognises, parts)) else ():
            chip_named = not place or chips(figure.device)
            yield figure if chip_named else replace(figure, device=", ".join(filter(None, (place, figure.device))))


def _stumbled(reader: Reader, document: Document, error: Exception) -> str:
    """The fault of a package's reader in one line; ours are raised."""
    if reader in READERS:
        raise error
    fault = f"{type(error).__name__} of the log reader {reader.NAME} ({str(error)[:100]})"
    return f"{document.path}: expected figures or none, got {fault}; mend its package"


@cache
def readers() -> tuple[Reader, ...]:
    """Every format in the order in which it is asked: ours, those of installed packages (group `plas.logs`), and the broadest of ours last."""
    theirs = (cast(Reader, module) for _, module in modules("logs", "NAME", "recognises", "figures", broken=notice))
    return (*READERS[:-2], *theirs, *READERS[-2:])


def read_logs(documents: Sequence[tuple[Document, Reader]], wanted: Wanted) -> Log:
    """Documents of known formats as one measured CSV; figures that are not used carry the reason.

    Args:
        documents: each with its reader.
        wanted: what is given beside them.

    Raises:
        UsageError: too much, several devices, or a name that no log has.
    """
    by_reader = {reader: [d for d, own in documents if own is reader] for _, reader in documents}
    figures = [figure for reader in readers() if reader in by_reader for figure in _placed(reader, by_reader[reader])]
    figures += [Figure((), fault=reason) for document, _ in documents for reason in document.cut]
    if len(figures) > MOST_FIGURES:
        raise UsageError(
            f"{documents[0][0].path}: expected at most {MOST_FIGURES:,} figures, got {len(figures):,}; split it"
        )
    if not figures:
        raise UsageError(f"{documents[0][0].path}: expected figures, got none; {PAGE}")
    _refuse_unused(figures, wanted)
    figures = list(_of_one_device(figures, wanted.measured_on, wanted.device))
    found: dict[str, str] = {}
    faster = dict[str, str]()
    rows = [_row(figure, wanted, found, faster) for figure in figures]
    steps = sum(row.get("metric") in STEPS for row in rows)
    impossible = sum(row.get("left_out") in faster.values() for row in rows)
    if wanted.device and impossible and impossible >= steps:
        raise UsageError(
            f"--device: expected the device of the log, got {wanted.device.name}: {next(iter(faster.values()))}; give its file"
        )
    lines = rows_text(rows).splitlines()
    kinds = ", ".join(dict.fromkeys(reader.NAME for _, reader in documents))
    devices = sorted({figure.device for figure in figures if figure.device and not figure.fault})
    return Log(
        lines,
        [
            f"Read as {kinds}{f', of {devices[0]}' if devices else ''}",
            *(f"{name}: {how}" for name, how in found.items()),
        ],
    )


def _refuse_unused(figures: Sequence[Figure], wanted: Wanted) -> None:
    """Stop at a name that no figure has, and at a model or a format for figures without where all state their own.

    Raises:
        UsageError: such a flag.
    """
    there = {key(name) for figure in figures for name in figure.names}
    choices = sorted({shown(figure) for figure in figures if figure.names})
    listed = ", ".join(choices[:12]) + " …" * (len(choices) > 12)
    used = [figure for figure in figures if not figure.fault]
    for name in wanted.models:
        if name != ANY and name not in there:
            raise UsageError(
                f"--model: expected a name of the log ({listed or 'it has none'}), got {name!r}; take one of these"
            )
        if name == ANY and used and all(figure.names for figure in used):
            raise UsageError(f"--model: expected NAME=MODEL of a log that has names ({listed}), got a model alone")
    if wanted.precision and used and all(figure.cells.get("precision") or _written(figure) for figure in used):
        raise UsageError(f"--precision: expected none for a log that states its own formats, got {wanted.precision}")


def _of_one_device(figures: Sequence[Figure], wanted: str, device: Device | None) -> Iterator[Figure]:
    """Figures with those of other devices than the wanted one left out; of several, the one that is to be calibrated.

    Raises:
        UsageError: several devices and none is wanted, one that is not there, or another than the one that is calibrated.
    """
    seen = Counter(figure.device for figure in figures if figure.device)
    listed = ", ".join(f"{name} ({n})" for name, n in seen.most_common(12)) + ", …" * (len(seen) > 12)
    own = {name.casefold() for name in seen if device is not None and is_same(name, device)}
    here = {wanted.strip().casefold()} if wanted else own if len(seen) > 1 else set()
    if wanted and not any(name.casefold() in here for name in seen):
        raise UsageError(
            f"--measured-on: expected a device of the log ({listed or 'it names none'}), got {wanted!r}; take one of these"
        )
    elsewhere = [_elsewhere(figure, here, device) for figure in figures]
    if len(seen) > 1 and not here and (device is None or not all(elsewhere)):
        raise UsageError(f"measured: expected figures of one device, got {listed}; choose one with --measured-on")
    if device is not None and all(elsewhere):
        where = next(
            (name for figure, name in zip(figures, elsewhere, strict=True) if figure.device.casefold() in here),
            elsewhere[0],
        )
        raise UsageError(f"--device: expected {where}, which the log was measured on, got {device.name}; give its file")
    for figure, where in zip(figures, elsewhere, strict=True):
        yield replace(figure, fault=f"measured on {where}") if where else figure


def _elsewhere(figure: Figure, here: set[str], device: Device | None) -> str:
    """Where a figure was measured if that is not the device: its device's name, or the program that no such device runs."""
    engine = str(figure.cells.get("engine", ""))
    if here and figure.device.casefold() not in here:
        return figure.device or "a device without a name"
    return (figure.device or engine) if device is not None and contradicts(figure.device, device, engine) else ""


def _row(figure: Figure, wanted: Wanted, found: dict[str, str], faster: dict[str, str]) -> dict[str, Any]:
    """A figure as a row of a measured CSV; `found` gets how its model was found, `faster` why its steps cannot be of the device."""
    device = figure.cells.get("device", "")
    try:
        if figure.fault:
            raise Unusable(figure.fault)
        written = str(figure.cells.get("precision") or format_in(_written(figure)))
        in_library = "" if wanted.precision else of_library(figure)
        figure = replace(figure, cells={**figure.cells, "precision": written or in_library or _given(wanted.precision)})
        model, how = identified(figure, wanted.models, published())
        dense = not written and wanted.precision == "mxfp4" and model.architecture.n_experts[0] <= 1
        refuse((dense, f"mxfp4 by --precision, a format of experts, which {model.label} has not"))
        bits, slow = file_bits(model, figure), slow_share(model, figure)
        if slow and figure.cells.get("drafted"):
            raise Unusable("tokens drafted ahead and experts in slow memory together: no formula gives their time")
        if wanted.device is not None and not slow and (reason := _faster_than(wanted.device, model, figure, bits)):
            raise Unusable(faster.setdefault(model.label, reason))
    except Unusable as error:
        return {"device": device, "left_out": str(error)}
    found.setdefault(shown(figure), f"{model.label}, {how}{_unwritten(written, in_library, wanted.precision)}")
    own: dict[str, Any] = {"slow_share": f"{slow:.6g}"} if slow else {}
    if bits is not None:
        own["weight_bits"] = f"{bits:.4g}"
        found.setdefault(
            f"{shown(figure)} {figure.cells['precision']}",
            f"{bits:.4g} bits a weight by the file's size, and priced so",
        )
    return {**figure.cells, **own, "model": model.label, **columns(model.architecture)}


def _faster_than(device: Device, model: Model, figure: Figure, bits: float | None) -> str:
    """Why a device's memory cannot have given a step so fast; "" where it can, and of steps of drafts."""
    metric, cells = figure.cells.get("metric"), figure.cells
    if metric not in STEPS or cells.get("drafted"):
        return ""
    value, written = float(cells["value"]), format_of(str(cells["precision"]))
    seconds = float(cells.get("batch") or 1) / value if metric == "decode_tok_s" else value / 1e3
    read = model.read_by_a_step(bits or model.bits_of(written), written)
    rate = (read - max(device.cache or 0.0, HELD)) / seconds
    if rate <= BUS_SLACK * device.bandwidth:
        return ""
    return (
        f"{model.label} in {cells['precision']} reads {read / 1e9:.3g} GB a token, {read / seconds / 1e9:.4g} GB/s by its time, where "
        f"{device.name} has {device.bandwidth / 1e9:.4g}: another device, format or model than it says, or several tokens a step"
    )


def _unwritten(written: str, in_library: str, given: str) -> str:
    """Where a format is from that the log does not state."""
    return (
        "" if written else f"; in {in_library}, as Ollama's library has it" if in_library else f"; in {given}, as given"
    )


def _written(figure: Figure) -> str:
    """The name of a figure's that states a weight format, "" where none does."""
    return next(filter(WRITTEN.search, figure.names), "")


def _given(precision: str) -> str:
    if not precision:
        raise Unusable("the weights' format is not stated: give it with --precision")
    if precision not in FORMATS:
        raise UsageError(
            f"--precision: expected a weight format ({', '.join(FORMATS)}), got {precision!r}; take one of these"
        )
    return precision
