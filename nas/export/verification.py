"""`export --verify`: every candidate rebuilt from the written files and compared, field by field, with the launch list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.document.document import Document, Section
from nas.errors import PlasError, UsageError
from nas.export.folder import Written, folder_names, read_manifest
from nas.export.hf_config import built_parameters, transformers_version
from nas.export.launch_list import FILE
from nas.export.model import Model
from nas.export.request import ExportRequest
from nas.export.stack_files import differences
from nas.export.stack_protocol import PIVOT, shown, stack, stack_names
from nas.export.tokenizer import tokenizer_for
from nas.record.candidates import read_candidates
from nas.terminal.console import notice
from nas.terminal.tables import show
from objectives import counts
from objectives.plugins import normalised


@dataclass(frozen=True)
class Finding:
    """One candidate in one stack: how many fields were compared, and which differ."""

    candidate: str
    stack: str
    fields: int
    faults: list[str]


def check(request: ExportRequest) -> None:
    """Check the export that --verify names and say what was found.

    --to names the stacks of installed packages that may be imported for it: whoever wrote the export does not choose.

    Raises:
        UsageError: not an export, or a stack that is not in it.
        PlasError: something differs; the differences were printed.
    """
    folder = request.verify
    assert folder is not None
    written = read_manifest(folder)
    typed, left = _named(written, request.stacks or "")
    results = findings(folder, written, typed)
    wrong = [f for f in results if f.faults]
    show(_document(results, left), as_json=request.json)
    for name, distribution in left.items():
        notice(f"{name}: not checked, a stack of {distribution}; add --to {name}, which imports that package's code")
    if wrong:
        raise PlasError(
            f"{folder}: expected every field as exported, got {len(wrong)} of {len(results)} with differences; "
            "export into another folder to have the files as they were"
        )


def _named(written: Written, to: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Stacks of packages that the user named, and the others of the export with their distributions."""
    typed = tuple(name for name in (stack_names(to) if to else ()) if name != PIVOT)
    absent = [shown(name) for name in typed if name not in written.stacks and shown(name) not in written.plugins]
    if absent:
        raise UsageError(f"to: expected stacks of this export, got {', '.join(absent)}; leave them out")
    theirs = tuple(name for name in typed if shown(name) in written.plugins)
    for name in theirs:
        stack(name)
    return theirs, {name: of for name, of in written.plugins.items() if normalised(name) not in theirs}


def findings(folder: Path, written: Written, typed: Sequence[str] = ()) -> list[Finding]:
    """Every candidate in every stack of ours and every one that was named.

    Raises:
        UsageError: workloads of fewer or more candidates.
    """
    architectures, ids = read_candidates(folder / FILE)
    served_as = written.of_candidates(folder, len(ids))
    results = []
    for i, (identity, place, (workload, served)) in enumerate(zip(ids, folder_names(ids), served_as, strict=True)):
        try:
            tokenizer = tokenizer_for(str(folder / place / PIVOT))
        except UsageError as error:
            results.append(Finding(identity, PIVOT, 0, [str(error)]))
            continue
        how = (written.recipe, workload, written.weights, written.seed, written.gguf)
        model = Model(identity, place, architectures[i : i + 1], tokenizer, *how, served=served)
        results += [_checked(model, name, folder / place / shown(name)) for name in (*written.stacks, *typed)]
    return results


def _checked(model: Model, name: str, place: Path) -> Finding:
    """One stack's files read back; whatever they hold is a finding, never a traceback."""
    try:
        one = stack(name)
        wanted, got = one.fields(model), one.loaded(model, place) if hasattr(one, "loaded") else one.read(place)
        faults = differences(wanted, got)
        if name == PIVOT:
            faults += _counts(model, place)
        return Finding(model.id, shown(name), len(wanted), faults)
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or "nothing"
        return Finding(model.id, shown(name), 0, [f"{type(error).__name__}: {reason}"])


def _counts(model: Model, place: Path) -> list[str]:
    """Parameters as transformers builds the directory, where it is installed."""
    if transformers_version() is None:
        return []
    wanted: dict[str, Any] = {
        "params_total": int(counts.total(model.architecture)[0]),
        "params_active": int(counts.active(model.architecture)[0]),
    }
    return differences(wanted, built_parameters(place))


def _document(results: Sequence[Finding], left: Mapping[str, str]) -> Document:
    """A line a stack, and what differs in it."""
    version = transformers_version()
    by = f"transformers {version} (config, and parameters of the model that it builds)" if version else "our own reader"
    lines = []
    for name in dict.fromkeys(f.stack for f in results):
        own = [f for f in results if f.stack == name]
        good, fields = sum(not f.faults for f in own), max(f.fields for f in own)
        reader = f"; read by {by}" if name == PIVOT else ""
        lines.append(f"{name}: {good:,} of {len(own):,} candidates as exported, {fields} fields each{reader}")
        lines += [f"  {finding.candidate}: {fault}" for finding in own for fault in finding.faults]
    data = {"transformers": version, "findings": [f.__dict__ for f in results]} | ({"unchecked": left} if left else {})
    return Document("", (Section("", tuple(lines)),), data)
