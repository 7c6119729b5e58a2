"""The study of a candidate file, kept beside it: what made `next.csv` lies in `next.study.yaml`, and whoever reads the one reads the other."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.answer.past_run import study_recorded
from nas.answer.sentences import hardware
from nas.errors import UsageError
from nas.files import yaml_source
from nas.files.tables import write
from nas.record.candidates import read_candidates, read_rows, write_candidates
from nas.record.folder import checked_study, current, open_run
from nas.record.identity import at_start, free, needed
from nas.record.store import FILE as STORE
from nas.search.assembly import Study, assemble
from nas.study.catalogue import is_file
from nas.study.layers import CARRIED, layered
from objectives import outside
from search_spaces.architectures import Architectures

OF_RUN = ("frontier.csv", "picks.csv", "evaluations.csv")  # their study is the run's
LAUNCH_LIST, EXPORTED = "candidates.csv", "export.json"  # of an export
MOST_BYTES = 100_000_000


@dataclass(frozen=True, eq=False)
class Carried:
    """The recorded study that a file was made under, and what must be said of it ("" of nothing)."""

    resolved: Mapping[str, Any]
    doubt: str = ""


def beside(candidates: Path) -> Path:
    """The file of the study of a candidate file."""
    return candidates.with_suffix(".study.yaml")


def write_with_study(path: Path, columns: Mapping[str, Any], study: Study) -> None:
    """Write candidates, and the study that they were chosen in beside them.

    Raises:
        UsageError: another ending than .csv or .jsonl.
        PlasError: the folder cannot be written.
    """
    write_candidates(path, columns)
    write_study(path, study.resolved())


def write_study(path: Path, resolved: Mapping[str, Any]) -> None:
    """Write the study of a candidate file beside it: what prices designs, not how they were searched for."""
    left_out = {*free(), *at_start(), "seed_from"} - {*needed(), "name"}
    content = {key: value for key, value in resolved.items() if key not in left_out}
    mark = {"file": path.name, "sha256": _digest(path)}
    write(beside(path), yaml_source.dump({CARRIED: mark, "default_budget": "none", **content}))


def carried(source: Path) -> Carried | None:
    """The study that a candidate file was made under: beside it, or of the run whose folder it lies in; None where there is none.

    Raises:
        UsageError: a file beside it that holds no study.
    """
    if source.name in OF_RUN and (source.parent / STORE).is_file():
        run = open_run(source.parent)
        run.store.close()
        return Carried(current(run))
    path = beside(source) if source.name else source
    if not path.is_file():
        return None
    content = yaml_source.keys_of(yaml_source.read(path)[0], path, "delete it, or write the candidates again")
    mark = content.pop(CARRIED, None)
    if not isinstance(mark, dict) or any(key not in content for key in needed()):
        raise UsageError(f"{path}: expected the study of {source.name}, got another file; rename it, or give --config")
    checked_study(path, content)
    changed = "" if mark.get("sha256") == _digest(source) else f"{source} has changed since {path.name} was written"
    return Carried(
        content, changed and f"{changed}: its study is taken all the same; delete that if it is another table's"
    )


def recorded_study(source: Path | None) -> Mapping[str, Any] | None:
    """The recorded study of a run, of an export or of a candidate file; None where there is none."""
    if source is None:
        return None
    if list_of(source).is_dir():
        run = open_run(source)
        run.store.close()
        return run.resolved
    own = carried(list_of(source))
    return None if own is None else own.resolved


def study_of_file(
    source: Path, config: str | None, settings: Sequence[str], flags: Mapping[str, Any]
) -> tuple[Study, str]:
    """The study that prices a candidate file, and what must be said of it: that of --config, else its own, else the defaults; flags over it.

    Raises:
        UsageError: every fault of the study at once.
    """
    own = carried(source) if config is None else None
    if own is not None:
        return study_recorded(own.resolved, flags, settings), own.doubt
    raw, origins = layered({"algo": "random", **flags}, settings, config)
    study = assemble({**raw, "params": {}}, origins)
    if config is not None:
        return study, ""
    place = hardware(study.problem, study.config, study.calibration_note)
    law = study.problem.scenario.law.name
    return (
        study,
        f"{source} has no study beside it ({beside(source).name}): taken are law {law}, {place}; --config names another",
    )


def list_of(source: Path) -> Path:
    """The candidate file of the folder of an export; any other source as it is."""
    return source / LAUNCH_LIST if is_file(str(source / EXPORTED)) else source


def exported_design(path: Path) -> tuple[Path, Architectures] | None:
    """The launch list and the row of an exported model, named by its config.json or a folder around it; None of any other.

    Raises:
        UsageError: a launch list that cannot be read.
    """
    for folder in list(path.absolute().parents)[:3] if path.suffix == ".json" else [*path.absolute().parents][:2]:
        source = folder / LAUNCH_LIST
        if (folder / EXPORTED).is_file() and source.is_file():
            name = path.absolute().relative_to(folder).parts[0]
            rows = [i for i, row in enumerate(read_rows(source)) if row.get("folder") == name]
            return (source, read_candidates(source)[0][rows[:1]]) if rows else None
    return None


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(outside.content(path, MOST_BYTES)).hexdigest()
    except OSError:
        return None
