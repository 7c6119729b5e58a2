"""Tables that somebody paid for, as problems: their rows are the space, what was measured stands in the place of the formulas.

A new table is a CSV in `plas_bench/tables` and a definition that says what its columns are.
"""

import csv
import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import PlasError, UsageError
from nas.problem.objective import Objective, built_in
from nas.problem.problem import Problem
from objectives import outside
from plas_bench.definition import Table
from plas_bench.table_space import TableSpace
from search_spaces.architectures import Architectures, architectures_of
from search_spaces.arrays import FloatArray
from search_spaces.columns import SHAPE

FOLDER = Path(__file__).parent / "tables"
PUBLIC = "PLAS_EXTERNAL_DATA"
MOST_BYTES = 20 * outside.MB
HEAD = 16  # dimensions of a head where a table names none: its layers attend with as many as they are wide
Row = Mapping[str, str]


def of_table(name: str, table: Table, base: Problem) -> Problem:
    """The problem of a table: objectives of `base` that were measured are looked up, and have the formula as their prior.

    Raises:
        UsageError: a public table that is not there.
        PlasError: another file than the one that was frozen.
    """
    rows = [row for row in rows_of(table) if all(row[key] == value for key, value in table.where.items())]
    designs = [SHAPES[table.shape](row) | tokens_of(row, table) for row in rows]
    measured = {metric: np.array([float(row[column]) for row in rows]) for metric, column in table.measured.items()}
    return over_rows(name, designs, table.genes, measured, base)


def tokens_of(row: Row, table: Table) -> dict[str, int]:
    """The tokens of a row's training where they are searched."""
    return {"tokens": int(row["tokens"])} if "tokens" in table.genes else {}


def place_of(table: Table) -> Path:
    """Where a table lies: in this package, or in the folder of public data.

    Raises:
        UsageError: the folder of public data is not named.
    """
    if not table.external:
        return FOLDER / table.file
    public = os.environ.get(PUBLIC)
    if not public:
        raise UsageError(
            f"{PUBLIC}: expected the folder with the public table {table.file} ({table.source}), got no such variable; "
            f"put the file there and set {PUBLIC}"
        )
    return Path(public) / table.file


def rows_of(table: Table) -> list[dict[str, str]]:
    """The rows of a table, cells as text.

    Raises:
        UsageError: it cannot be read.
        PlasError: another file than the one that was frozen.
    """
    place = place_of(table)
    try:
        content = outside.content(place, MOST_BYTES)
    except OSError as error:
        raise UsageError(
            f"{place}: expected the table {table.file} ({table.source}), got {error.strerror}; put the file there"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != table.sha256:
        raise PlasError(
            f"{place}: expected the file with SHA-256 {table.sha256[:12]}, as it was frozen, got {digest[:12]}; fetch that version"
        )
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def by_columns(row: Row) -> dict[str, int]:
    """A row with our own columns."""
    return {name: int(row[name]) for name in SHAPE}


def dense(row: Row) -> dict[str, int]:
    """A dense model of a depth and a width alone: heads of 16, an FFN of four widths."""
    width = int(row["width"])
    heads = {"head_dim": HEAD, "n_heads": width // HEAD, "n_kv_heads": width // HEAD}
    return {"depth": int(row["depth"]), "width": width, **heads, "n_experts": 1, "top_k": 1, "expert_size": 4 * width}


def translator(row: Row) -> dict[str, int]:
    """The decoder of a translation model: layers, width and mean FFN; times of other parts and of heads are noise to all."""
    ffn = round(float(row["decoder_ffn_embed_dim_avg"]))
    heads = {"head_dim": 64, "n_heads": 8, "n_kv_heads": 8, "n_experts": 1, "top_k": 1}
    return {"depth": int(row["decoder_layer_num"]), "width": int(row["decoder_embed_dim"]), "expert_size": ffn, **heads}


SHAPES: dict[str, Callable[[Row], dict[str, int]]] = {"columns": by_columns, "dense": dense, "translator": translator}


def over_rows(
    name: str,
    designs: Sequence[Mapping[str, int]],
    genes: Sequence[str],
    measured: Mapping[str, FloatArray],
    base: Problem,
) -> Problem:
    """The problem over distinct designs; those that are alike are one, with the mean of what was measured."""
    every = architectures_of(designs)
    keys = np.stack([getattr(every, gene) for gene in genes], axis=1)
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    different = every[first]
    space = TableSpace(name, different, tuple(gene for gene in genes if len(np.unique(getattr(every, gene))) > 1))
    order = np.argsort(space.find(different))
    means = {
        metric: (np.bincount(place.ravel(), column) / np.bincount(place.ravel()))[order]
        for metric, column in measured.items()
    }
    return looked_up(space, means, base)


def looked_up(space: TableSpace, means: Mapping[str, FloatArray], base: Problem) -> Problem:
    """`base` over a table's rows, with what was measured, in key order, in the place of the formulas, which are its priors."""
    own = {metric: _metric(space, metric, column) for metric, column in means.items()}
    objectives = tuple(own.get(objective.name, objective) for objective in base.objectives)
    changed: Any = space
    return replace(base, space=changed, objectives=objectives, functions=tuple(own.values()))


def _metric(space: TableSpace, metric: str, column: FloatArray) -> Objective:
    shipped = built_in(metric)

    def values(architectures: Architectures) -> FloatArray:
        found: FloatArray = column[space.find(architectures)]
        return found

    return Objective(f"table:{metric}", shipped.unit, shipped.log_scale, values, prior=metric)
