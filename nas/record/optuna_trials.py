"""Trials of an Optuna study as rows of architectures and numbers, read without writing to its storage."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import optuna
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from nas.errors import UsageError
from nas.record.store import GENE
from objectives import outside
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import BoolArray, FloatArray
from search_spaces.columns import NAMES, near_column

MOST_BYTES = 1_000 * outside.MB  # of a journal


def read_trials(path: Path, name: str, *, database: bool) -> tuple[Architectures, Mapping[str, FloatArray], BoolArray]:
    """Architectures of a study's finished trials, their values and attributes by name, each (n,), and which failed, (n,).

    Parameters are called as columns of architectures are, or as genes (`gene_depth`), beside attributes that are so called. Values are called as the study calls its objectives, else
    `value`, or `value_0`, `value_1` of several.

    Raises:
        UsageError: no storage, several studies and none named, or parameters that are no architectures.
    """
    study = _study(path, name, database=database)
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    try:
        architectures = architectures_of([_design(trial) for trial in trials])
    except ValueError as error:
        raise UsageError(f"{path}: study {study.study_name!r:.60}: {error}") from None
    rows = [_numbers(trial, _value_names(study)) for trial in trials]
    names = dict.fromkeys(name for row in rows for name in row)
    numbers = {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}
    return architectures, numbers, np.array([trial.state != TrialState.COMPLETE for trial in trials])


def _design(trial: FrozenTrial) -> dict[str, Any]:
    """Columns of a trial's architecture: its parameters, or its attributes where the parameters are indices of genes; a misspelt one stays."""
    columns = trial.user_attrs if any(name.startswith(GENE) for name in trial.params) else trial.params
    return {name: value for name, value in columns.items() if name in NAMES or near_column(name, columns)}


def _study(path: Path, name: str, *, database: bool) -> Study:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = _storage(path, database=database)
        names = [study.study_name for study in storage.get_all_studies()]
        if name not in names and (name or len(names) != 1):
            raise UsageError(
                f"{path}: expected {'the study ' + repr(name) if name else 'one study'}, got {', '.join(names)[:200] or 'none'}; "
                f"name one: {path}#STUDY"
            )
        return optuna.load_study(study_name=name or names[0], storage=storage)
    except UsageError:
        raise
    except Exception as error:  # whatever a storage raises of a file that is none
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(
            f"{path}: expected a table (.csv, .jsonl), a run's folder or store, or an Optuna storage, got none of these ({message}); "
            "name another file"
        ) from None
    finally:
        optuna.logging.set_verbosity(before)


def _storage(path: Path, *, database: bool) -> BaseStorage:
    """The storage in a file that is there, opened to read."""
    if not database:
        return JournalStorage(JournalFileBackend(str(outside.checked(path, MOST_BYTES))))
    return RDBStorage(f"sqlite:///file:{quote(str(path.resolve()))}?mode=ro&uri=true", skip_table_creation=True)


def _value_names(study: Study) -> list[str]:
    count = len(study.directions)
    return study.metric_names or (["value"] if count == 1 else [f"value_{i}" for i in range(count)])


def _numbers(trial: FrozenTrial, names: list[str]) -> dict[str, float]:
    """A trial's attributes and values that are numbers."""
    told: dict[str, Any] = {**trial.user_attrs, **dict(zip(names, trial.values or [], strict=False))}
    return {name: float(value) for name, value in told.items() if type(value) in (int, float)}
