"""Results from before a run as they are given: tables, folders and stores of runs, Optuna storages; nothing in them is executed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import PlasError, UsageError
from nas.files.faults import near_file
from nas.record.candidates import read_candidates, read_failed, read_numbers
from nas.record.database import connect
from nas.record.folder import open_run
from nas.record.store import FILE, final, holds
from objectives import outside
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray
from search_spaces.space import SearchSpace

TRAININGS = "trainings.csv"  # of a folder of `plas train`
TABLES = (".csv", ".jsonl")
SQLITE = b"SQLite format 3\0"
DATABASE = "sqlite:///"


@dataclass(frozen=True, eq=False)
class Given:
    """Architectures with numbers by name, each (n,), NaN where a row has none, and which rows failed, (n,).

    resolved: the study that they were evaluated in, where they are a run's.
    """

    architectures: Architectures
    numbers: Mapping[str, FloatArray]
    failed: BoolArray
    resolved: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.architectures)


def read_given(source: str) -> Given:
    """Read the results in a source: a table, a run's folder or store, a folder of trainings, an Optuna storage (FILE#STUDY of several).

    Raises:
        UsageError: it is none of these, or cannot be read.
        PlasError: a damaged run.
    """
    path, name = _split(source)
    if os.path.isdir(path):
        return _in_folder(path)
    try:
        beginning = outside.beginning(path, len(SQLITE))
    except OSError as error:
        hint = near_file(path, "name a table, a run folder or an Optuna storage")
        raise UsageError(f"{path}: expected a file, got {error.strerror}; {hint}") from None
    if path.suffix in TABLES:
        return given_table(path)
    if beginning == SQLITE and path.name == FILE:
        return given_run(path.parent)
    from nas.record.optuna_trials import read_trials

    if beginning == SQLITE:
        connect(path, readonly=True).close()  # refuses what would compute
    return Given(*read_trials(path, name, database=beginning == SQLITE))


def _split(source: str) -> tuple[Path, str]:
    """The file of a source, and the study that is named in it."""
    place, _, name = source.removeprefix(DATABASE).rpartition("#")
    whole = Path(source.removeprefix(DATABASE))
    return (Path(place), name) if place and not os.path.exists(whole) else (whole, "")


def _in_folder(path: Path) -> Given:
    if (path / FILE).is_file():
        return given_run(path)
    if (path / TRAININGS).is_file():
        return given_table(path / TRAININGS)
    raise UsageError(
        f"{path}: expected the folder of a run ({FILE}) or of trainings ({TRAININGS}), got neither in it; name a file"
    )


def given_table(path: Path) -> Given:
    """A candidate file with further columns."""
    architectures, _ = read_candidates(path)
    return Given(architectures, read_numbers(path), np.array(read_failed(path)))


def given_run(path: Path) -> Given:
    """Everything that a run evaluated, and what it knew before."""
    run = open_run(path)
    recorded = run.store.read()
    run.store.close()
    space, found = SearchSpace.from_mapping(run.resolved["space"]), final(recorded.evaluations, recorded.retried)
    if not holds(space, found):
        raise PlasError(f"{path}: expected architectures of its space, got others; it was altered, name another source")
    architectures = space.architectures(found.genotypes.astype(np.int64))
    return Given(architectures, found.metrics, ~found.ok, run.resolved)
