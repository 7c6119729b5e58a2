"""Results from before a search that only teach: architectures of any shape with the numbers that each row happens to have."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import UsageError
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.problem.quantiles import ships
from nas.record.given import TRAININGS, given_table
from objectives.plugins import importable
from plas_prior.prior_columns import Designs, Wanted
from search_spaces.architectures import architectures_of
from search_spaces.arrays import FloatArray, IntArray
from search_spaces.columns import DEFAULTS, FILE_COLUMNS, SHAPE

MOST = 500  # rows; a model of n values takes time that grows with n³
TABLES = ("evaluations.csv", TRAININGS)  # of a run folder, of a folder of trainings
BOOKKEEPING = ("index", "batch", "violation_")  # beginnings of columns of a run's own table


def known_rows(given: Any, named: Collection[str]) -> list[dict[str, Any]]:
    """Rows of architectures with numbers: of a file or folder, of several, or written out.

    named: shipped metrics whose columns are kept; those of others are what a formula said.

    Raises:
        ValueError: a file that cannot be read, rows that are no architectures, or too many.
    """
    parts = given if isinstance(given, list) else [given]
    rows = [row for part in parts for row in (_of_file(part, named) if isinstance(part, str) else [part])]
    if len(rows) > MOST:
        raise ValueError(f"expected at most {MOST} rows, got {len(rows):,}; choose fewer")
    if wrong := [row for row in rows if not isinstance(row, Mapping)]:
        raise ValueError(f"expected a table, a folder, or rows of numbers by name, got {wrong[0]!r:.40}; name a file")
    if rows:
        architectures_of([_shape(row) for row in rows])
    return [dict(row) for row in rows]


def _of_file(place: str, named: Collection[str]) -> list[dict[str, Any]]:
    """The rows of one table as plain content."""
    path = next((Path(place) / name for name in TABLES if (Path(place) / name).is_file()), Path(place))
    try:
        given = given_table(path)
    except UsageError as error:
        raise ValueError(str(error)) from None
    kept = {n: c for n, c in given.numbers.items() if (n in named or not ships(n)) and not n.startswith(BOOKKEEPING)}
    columns = {name: getattr(given.architectures, name).tolist() for name in SHAPE}
    columns |= {name: column.tolist() for name, column in given.architectures.further_columns().items()}
    return [
        {name: column[row] for name, column in columns.items()}
        | {name: float(column[row]) for name, column in kept.items() if np.isfinite(column[row])}
        for row in np.flatnonzero(~given.failed).tolist()
    ]


def _shape(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in FILE_COLUMNS or name in DEFAULTS}


@dataclass(frozen=True, eq=False)
class Known:
    """Known results: designs of any shape, in the space or not, with numbers by name, each (n,), NaN where a row has none.

    columns: which of the numbers is a metric's value, where neither its name nor that of its function is.
    """

    designs: Designs
    numbers: dict[str, FloatArray]
    columns: Mapping[str, str]

    def values(self, metric: Objective) -> FloatArray:
        """Values of a metric in the rows, (n,), NaN where they have none."""
        name = self.columns.get(metric.name) or self._by_name(metric)
        values = self.numbers.get(name, np.full(len(self.designs), np.nan))
        usable = self.designs.ok & ((values > 0) | (not metric.log_scale))
        return np.where(usable, values, np.nan)

    def complete(self, problem: Problem) -> IntArray:
        """Keys of the space's designs among the rows whose every expensive metric is known, ascending."""
        keys = problem.space.find(self.designs.architectures)
        for metric in problem.functions:
            if metric.name in problem.asked:
                keys = np.where(np.isfinite(self.values(metric)), keys, -1)
        return np.unique(keys[keys >= 0])

    def _by_name(self, metric: Objective) -> str:
        """Its own name, else its function's, `latency_ms` of `board:latency_ms`, unless a shipped metric is called so."""
        own = metric.name.rpartition(":")[2]
        return metric.name if metric.name in self.numbers or own in importable("objectives.metrics") else own


def known_of(problem: Problem, rows: list[dict[str, Any]], columns: Mapping[str, str], wanted: Wanted) -> Known | None:
    """Known rows beside what is wanted of their designs; their keys are negative, as they need not be of the space."""
    if not rows:
        return None
    architectures = problem.headed(architectures_of([_shape(row) for row in rows]))
    keys = np.arange(-len(rows), 0)
    genotypes = np.zeros((len(rows), len(problem.space.gene_sizes)), dtype=np.int64)
    designs = Designs(keys, genotypes, architectures, *wanted.columns(problem, architectures))
    names = dict.fromkeys(name for row in rows for name in row if name not in _shape(row))
    numbers = {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}
    return Known(designs, numbers, columns)


def refuse_without_values(problem: Problem, rows: list[dict[str, Any]], columns: Mapping[str, str]) -> None:
    """Refuse known results without a value of the metrics to be learned.

    Raises:
        UsageError: no column is a value of one of the user's metrics, or one is said to be and is not there.
    """
    own = {metric.name: metric for metric in problem.functions}
    names = list(dict.fromkeys(name for row in rows for name in row if name not in _shape(row)))
    for metric, column in columns.items():
        if metric not in own or column not in names:
            raise UsageError(
                f"params.evidence_as: expected a metric of your own ({', '.join(own) or 'none here'}) with a column of the known "
                f"results ({', '.join(names) or 'none there'}), got {metric}: {column}; correct it"
            )
    called = {*columns, *own, *(name.rpartition(":")[2] for name in own)} - set(importable("objectives.metrics"))
    if rows and not columns and not called & set(names):
        raise UsageError(
            f"params.evidence: expected a column {' or '.join(own) or 'of a metric of your own'}, got {', '.join(names) or 'none'}; "
            "say which column is which metric, --param 'evidence_as={\"board:latency_ms\": total_ms}'"
        )
