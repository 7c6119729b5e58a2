"""Columns of a table of trained models that no law reads: what is said of them, and which of them may tell kinds of rows apart."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from objectives.display_text import in_a_command
from objectives.fitting.columns import COLUMNS, bare
from objectives.fitting.kept_rows import PROGRESS, RUNS, STATUS, number
from search_spaces.arrays import AnyArray

FILE = "the file"  # of the rows of several tables, as if it were a column
ROWS_EACH = 3  # rows of a kind in the mean, below which its column names rows instead
MOST_SHOWN = 12
OWN_USE = (*PROGRESS, *STATUS, *RUNS)  # they order, end or number rows


def beside_laws(columns: Mapping[str, Sequence[str]]) -> dict[str, AnyArray]:
    """Cells, (n,), of the columns that no law reads and that order, end or number no rows."""
    return {
        name: np.array([cell.strip() for cell in cells], dtype=object)
        for name, cells in columns.items()
        if name not in COLUMNS and bare(name) not in OWN_USE
    }


def told(names: Iterable[str]) -> list[str]:
    """The line that names columns which no law reads; none without any."""
    every = [name or "(no name)" for name in names]
    more = f" and {len(every) - MOST_SHOWN} more" if len(every) > MOST_SHOWN else ""
    return [f"columns that no law reads: {', '.join(every[:MOST_SHOWN])}{more}"] if every else []


def kinds_in(beside: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Columns of words that may tell kinds of rows apart, as whole numbers, (n,): two kinds at least, of three rows or more in the mean.

    Columns of numbers are results or settings of a sweep, and each other's consequences: they are none.
    """
    found = {}
    for name, cells in beside.items():
        kinds, place = np.unique(cells.astype(str), return_inverse=True)
        words = any(np.isnan(number(kind)) for kind in kinds.tolist() if kind)
        if words and 2 <= len(kinds) <= len(cells) / ROWS_EACH:
            found[name] = place.reshape(-1)
    return found


def keeping(name: str, cells: AnyArray) -> str:
    """The flag that keeps the most frequent kind alone; of several files, what to do instead."""
    if name == FILE:
        return "fit one file at a time"
    kinds, counts = np.unique(cells.astype(str), return_counts=True)
    most = next((kind for _, kind in sorted(zip(-counts, kinds.tolist(), strict=True)) if kind), "")
    return f"--where {in_a_command(f'{name}={most}')} keeps one kind"
