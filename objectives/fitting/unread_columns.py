"""Columns of a table of trained models that no law reads: what is said of them, and which of them may tell kinds of rows apart."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from objectives.display_text import LONGEST, in_a_command
from objectives.fitting.columns import COLUMNS, bare
from objectives.fitting.kept_rows import PROGRESS, RUNS, STATUS
from objectives.table import number
from search_spaces.arrays import AnyArray

FILE = "the file"  # of the rows of several tables, as if it were a column
ROWS_EACH = 3  # rows of a kind in the mean, below which its column names rows instead
MOST_SHOWN = 12
NAMING = (
    *("run_name", "Run Name", "tags.mlflow.runName", "name", "Name", "model", "model_name"),
    *("run", "Run", "run_id", "Run ID", "id", "ID", "label", "hyper_id"),
)  # columns that call rows
OWN_USE = (*PROGRESS, *STATUS, *RUNS)  # they order, end or number rows


def beside_laws(columns: Mapping[str, Sequence[str]]) -> dict[str, AnyArray]:
    """Cells, (n,), of the columns that no law reads and that order, end or number no rows."""
    return {
        name: np.array(cells, dtype=object)
        for name, cells in columns.items()
        if name not in COLUMNS and bare(name) not in OWN_USE
    }


def row_names(columns: Mapping[str, list[str]]) -> AnyArray | None:
    """What a table calls its rows, (n,), long ones cut; None where no column does."""
    naming = [cells for name in NAMING for header, cells in columns.items() if bare(header) == name and any(cells)]
    return np.array([cell[:LONGEST] for cell in naming[0]], dtype=object) if naming else None


def offered(names: Iterable[str]) -> list[str]:
    """The line that says how a column which no law reads is read; none without any."""
    return [f"{line}; --rename OLD=NEW reads one under another name" for line in told(names)]


def told(names: Iterable[str]) -> list[str]:
    """The line that names columns which no law reads; none without any."""
    every = list(names)
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
