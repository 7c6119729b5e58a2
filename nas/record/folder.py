"""A run's folder: created once, locked while in use, verified before it is continued."""

import fcntl
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

from pydantic import BaseModel, Field

from nas.errors import PlasError, UsageError
from nas.files import own_files, yaml_source
from nas.files.faults import near_file
from nas.files.tables import write_json
from nas.problem.objective import Budget, rates_by_cost
from nas.record.identity import difference, free, needed
from nas.record.store import FILE, LAYOUT, RunStore, read_meta
from nas.study.configuration import StudyConfig
from nas.study.study_laws import recorded_lengths
from nas.terminal.doors import installed
from objectives.device import Device
from objectives.device_columns import recorded
from objectives.loss_law.law import Law
from objectives.plugins import DISTRIBUTION, version_of
from objectives.quantities import Name
from objectives.scenario import Requests
from search_spaces.specification import SpaceSpecification

PACKAGES = (DISTRIBUTION, "numpy", "scipy", "pymoo", "moocore", "optuna")


def create(study_name: str, out: Path | None) -> Path:
    """A new folder: `out` itself if given, else runs/<study>[-n].

    Raises:
        UsageError: it exists and is not empty, or cannot be written.
    """
    if out is not None:
        _make(out, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(
                f"out: expected a new or empty folder, got {out} with files in it; name another, or use --resume {out}"
            )
        return out
    for n in range(1, 100_000):
        path = Path("runs") / (study_name if n == 1 else f"{study_name}-{n}")
        try:
            _make(path, exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise UsageError(f"out: expected a free name for {study_name} in runs, got none; name a folder with --out")


def _make(path: Path, *, exist_ok: bool) -> None:
    try:
        path.mkdir(parents=True, exist_ok=exist_ok)
        with TemporaryFile(dir=path):
            pass
    except FileExistsError:
        if exist_ok:
            raise UsageError(f"out: expected a folder, got a file {path}; name another") from None
        raise
    except OSError as error:
        raise UsageError(
            f"out: expected a writable folder, got {path} ({error.strerror}); name another with --out"
        ) from None


def discard(path: Path) -> None:
    """Remove a folder that `create` made and nothing was written to."""
    (path / ".lock").unlink(missing_ok=True)
    path.rmdir()


@contextmanager
def locked(path: Path, *, new: bool = False) -> Iterator[None]:
    """Hold a run folder for one process; a new one that cannot be held is removed again.

    Raises:
        UsageError: another process works on it, or it cannot be written.
    """
    try:
        lock = own_files.opened(path / ".lock", 0)
    except OSError as error:
        raise UsageError(
            f"{path}: expected a writable run folder, got {error.strerror}; copy it somewhere writable"
        ) from None
    try:
        _hold(lock, path, new=new)
        own_files.clear_leftovers(path)
        yield
    finally:
        os.close(lock)


def _hold(lock: int, path: Path, *, new: bool) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: expected a free run folder, got one that another process works on; wait for it"
        ) from None
    except OSError as error:
        if new:
            discard(path)
        raise UsageError(
            f"{path}: expected a file system with locks, got one without ({error.strerror}); "
            "name a folder on a local disk with --out"
        ) from None


def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of the packages that decide results."""
    return {"python": platform.python_version()} | {package: version_of(package) for package in packages}


def now() -> str:
    """UTC time to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Manifest:
    """A run's manifest: settings, state and results."""

    path: Path
    content: dict[str, Any]

    def update(self, **changes: Any) -> None:
        """Change and write."""
        self.content |= changes
        write_json(self.path / "manifest.json", self.content)


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run folder read without executing anything in it."""

    path: Path
    resolved: dict[str, Any]
    meta: dict[str, Any]
    store: RunStore

    @property
    def workload(self) -> Requests:
        """The workload that the metrics are of."""
        return workload_of(self.resolved)


def workload_of(resolved: Mapping[str, Any]) -> Requests:
    """The workload of a resolved study."""
    return Requests(resolved["batch"], recorded_lengths(resolved)["output_tokens"], recorded(resolved))


def refuse_other(path: Path, needed: tuple[str, ...] = (FILE, "config.yaml")) -> None:
    """Say so when a path is no run folder.

    Raises:
        UsageError: no folder, or none of the needed files is in it.
    """
    try:
        found = any((path / name).is_file() for name in needed)
        reason = "" if found else "no folder" if not path.is_dir() else f"no {' or '.join(needed)} in it"
        if reason and (path / "comparison.yaml").is_file():
            reason = "a comparison, whose runs lie in its cells"
        elif reason and (path / "transfer.csv").is_file():
            reason = "a study of devices, which 'plas devices --config' repeats"
        elif reason and (command := _command_of(path)):
            reason = f"a folder of plas {command}"
        elif reason and (path / "library.yaml").is_file():
            reason = "a library of blocks or an answer from one, which blocks, select, explain and report take alone"
    except OSError as error:
        reason = str(error.strerror)
    if reason:
        hint = near_file(path, "list runs with 'ls runs'")
        raise UsageError(f"{path}: expected a run folder, got {reason}; {hint}")


def _command_of(path: Path) -> str:
    """The command of an installed package that wrote a folder, by its manifest; "" of others."""
    try:
        content = yaml_source.read(path / "manifest.json", own=True)[0]
    except UsageError:
        return ""
    return next((name for name in installed() if isinstance(content, dict) and content.get("command") == name), "")


def open_run(path: Path) -> OpenRun:
    """Open an existing run.

    Raises:
        UsageError: not a run folder.
        PlasError: a damaged one.
    """
    refuse_other(path, (FILE,))
    meta = read_meta(path / FILE)
    if meta.get("layout") != LAYOUT or "resolved" not in meta or "metrics" not in meta:
        raise PlasError(
            f"{path}: expected store layout {LAYOUT}, got {meta.get('layout')}; open it with the version that wrote it"
        )
    if isinstance(meta["resolved"], dict):
        meta["resolved"].pop("optuna_storage", None)  # the mirror of an earlier version's run
    check_description(path / FILE, meta, [*needed(), "evaluations"])
    resolved = _with_deltas(meta["resolved"])
    workload = workload_of(resolved)
    rates = rates_by_cost(resolved.get("columns", []), workload)
    units = {name: figure.unit for name, figure in workload.figures.items()}
    budgets = tuple(
        Budget(metric, limit, rates.get(metric), units.get(metric, "")) for metric, limit in resolved["budgets"].items()
    )
    genes, objectives = SpaceSpecification.model_validate(resolved["space"]).genes, tuple(resolved["objectives"])
    store = RunStore(path / FILE, tuple(meta["metrics"]), objectives, budgets, genes=genes, readonly=True)
    return OpenRun(path, resolved, meta, store)


def _with_deltas(resolved: dict[str, Any]) -> dict[str, Any]:
    """A recorded study, whose laws hold what kinds of layers cost: a run of an earlier version, which says so of none, had none beside them."""
    mixed = "layers" in resolved["space"]["axes"]
    return {**resolved, "deltas": "none"} if mixed else resolved


def current(run: OpenRun) -> dict[str, Any]:
    """The run's study with the limits of its last call, from its config.yaml.

    Raises:
        UsageError: a config.yaml that says something else than the run.
    """
    path = run.path / "config.yaml"
    if not path.exists():
        return dict(run.resolved)
    content, _ = yaml_source.read(path, own=True)
    if not isinstance(content, dict) or any(key not in content for key in needed()):
        raise UsageError(
            f"{path}: expected the run's own configuration, got another; delete it and resume, the store holds it too"
        )
    content = _with_deltas(content)
    found = difference(run.resolved, content)
    if found:
        raise UsageError(f"{path}: {found}; restore it, or start a new run with --config {path}")
    return run.resolved | {key: content[key] for key in free(recorded=True) if key in content}


LONGEST_UNIT = 200  # characters


class _Parts(BaseModel):
    """The parts of a resolved study that are embedded as a whole."""

    space: SpaceSpecification
    law: Law
    device: Device
    objectives: Annotated[list[Name], Field(min_length=1)]
    budgets: dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class _Description(BaseModel):
    """Metrics in the order of their columns, which objectives count by their logarithm, units of metrics that do not ship."""

    metrics: Annotated[list[Name], Field(min_length=1)]
    log_scale: dict[str, Annotated[bool, Field(strict=True)]]
    units: dict[str, Annotated[str, Field(max_length=LONGEST_UNIT)]] = {}  # of a user's own metrics


def check_description(path: Path, meta: Mapping[str, Any], keys: Sequence[str]) -> None:
    """See that a store describes a study that could have been run; `keys` are what it must resolve.

    Raises:
        PlasError: it does not, with the first thing that is wrong.
    """
    try:
        parts, described = _parts_of(meta["resolved"]), _Description.model_validate(meta)
        _agree(parts, described)
        if missing := [key for key in keys if key not in meta["resolved"]]:
            raise ValueError(f"{missing[0]}: expected a value, got nothing")
    except ValueError as error:
        reason = " ".join(str(error).partition("[type=")[0].split())[:200]
        raise PlasError(f"{path}: describes no study ({reason}); it was altered, start a new run") from None


def checked_study(path: Path, resolved: Mapping[str, Any]) -> None:
    """See that a file holds a study as runs record theirs.

    Raises:
        UsageError: it does not, with the first thing that is wrong.
    """
    try:
        _parts_of(resolved)
    except ValueError as error:
        reason = " ".join(str(error).partition("[type=")[0].split())[:200]
        raise UsageError(
            f"{path}: expected a recorded study, got another ({reason}); delete it, or write it again"
        ) from None


def _parts_of(resolved: Mapping[str, Any]) -> _Parts:
    StudyConfig.model_validate(resolved)
    return _Parts.model_validate(resolved)


def _agree(parts: _Parts, described: _Description) -> None:
    wanted = {*parts.objectives, *parts.budgets}
    if len(set(described.metrics)) < len(described.metrics) or not wanted <= set(described.metrics):
        raise ValueError(f"metrics: expected each once and {', '.join(sorted(wanted))}, got {described.metrics}")
    if not set(parts.objectives) <= described.log_scale.keys():
        raise ValueError(f"log_scale: expected {', '.join(parts.objectives)}, got {described.log_scale}")
