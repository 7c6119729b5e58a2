"""Several tables of trained models as one: each read by itself, their rows one under another."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from objectives.loss_law.features import OWNERS
from plas_fit.fitting.kept_rows import FILE
from plas_fit.fitting.trained_models import MOST_ROWS, Table, read_rows, whole
from search_spaces.arrays import AnyArray, FloatArray
from search_spaces.columns import ALIASES, SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

DERIVED = {*SHAPE, *ALIASES, *OWNERS}
ALWAYS = ("checkpoint", *KIND_DEFAULTS)  # which rows belong together, layers of a kind: 0 where a table has none


def read_tables(
    paths: Sequence[Path],
    renamed: Sequence[str] = (),
    where: Sequence[str] = (),
    last: str | None = None,
    unit: str | None = None,
    best_of: str | None = None,
    *,
    needs: Sequence[str] = (),
    single: bool = False,
) -> Table:
    """The rows of all files, each read as `read_table` reads one; a quantity that one of them lacks is left out and said.

    needs: quantities of a law, whose lack is said with other faults. single: one row, or losses that are all the same, are enough.

    Raises:
        ValueError: a line a fault; one table twice; weights in some tables alone; more rows than a fit takes.
    """
    found, faults = [], list[str]()
    for path in paths:
        try:
            found.append(read_rows(path, renamed, where, last, unit, best_of, needs))
        except ValueError as error:
            faults += str(error).splitlines()
    if faults:
        raise ValueError("\n".join(dict.fromkeys(faults)))
    tables, sure = [table for table, _ in found], all(said for _, said in found)
    names = ", ".join(str(path) for path in paths)
    _refuse(paths, tables)
    return whole(tables[0] if len(tables) == 1 else _joined(tables), names, sure=sure, single=single)


def _refuse(paths: Sequence[Path], tables: Sequence[Table]) -> None:
    digests = [table.sources[0].sha256 for table in tables]
    for place, digest in enumerate(digests):
        if digest in digests[:place]:
            first = paths[digests.index(digest)]
            raise ValueError(
                f"{paths[place]}: expected tables that differ, got the rows of {first} again; name it once"
            )
    weighted = ["weight" in table.numbers for table in tables]
    if any(weighted) and not all(weighted):
        lacking = paths[weighted.index(False)]
        raise ValueError(f"{lacking}: weight: expected it in every table or in none, got none here; add or remove it")
    if (count := sum(map(len, tables))) > MOST_ROWS:
        raise ValueError(f"runs: expected at most {MOST_ROWS:,} rows in all, got {count:,}; name fewer tables")


def _joined(tables: Sequence[Table]) -> Table:
    """The rows of several tables; a line is told with the name of its file."""
    every = list(dict.fromkeys(name for table in tables for name in table.numbers))
    shared = [name for name in every if name in ALWAYS or all(_has(table, name) for table in tables)]
    numbers = {name: np.concatenate([_column(table, name) for table in tables]) for name in shared}
    sources = tuple(source for table in tables for source in table.sources)
    lines = [f"{source.name}:{line}" for table, source in zip(tables, sources, strict=True) for line in table.lines]
    notes = [f"{source.name}: {note}" for table, source in zip(tables, sources, strict=True) for note in table.notes]
    for name in every:
        if name not in shared:
            lacking = ", ".join(t.sources[0].name for t in tables if not _has(t, name))
            notes.append(f"{name} is not used: {lacking} has no such column")
    called = None if all(table.names is None for table in tables) else np.concatenate(list(map(_called, tables)))
    empty = {name: said for table in tables for name, said in table.empty.items()}
    joined = Table(numbers, np.array(lines), (*notes,), sources, names=called, empty=empty)
    return replace(joined, beside=_beside(tables))


def _beside(tables: Sequence[Table]) -> dict[str, AnyArray]:
    """Cells that no law reads, empty where a table has no such column, and the file of each row."""
    names = dict.fromkeys(name for table in tables for name in table.beside)
    cells = {
        name: np.concatenate([table.beside.get(name, np.full(len(table), "", dtype=object)) for table in tables])
        for name in names
    }
    files = np.concatenate([np.full(len(table), table.sources[0].name, dtype=object) for table in tables])
    return {**cells, FILE: files}


def _called(table: Table) -> AnyArray:
    """What a table calls its rows, nothing where it does not."""
    return np.full(len(table), "", dtype=object) if table.names is None else table.names


def _has(table: Table, name: str) -> bool:
    """Whether a table holds a column, or an architecture that it follows from."""
    return name in table.numbers or (name in DERIVED and table.has(name))


def _column(table: Table, name: str) -> FloatArray:
    """A column of a table, or what follows from its columns."""
    return np.zeros(len(table)) if name in ALWAYS and name not in table.numbers else table.feature(name)
