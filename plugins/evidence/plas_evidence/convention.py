"""A published table, its source and licence, and its file in the convention of the evidence base, its counts checked against its shapes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.arithmetic import evaluated
from objectives.quantities import Name
from objectives.table import numbers_of, read_sheet
from plas_fit.fitting.kept_rows import kept
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

Varied = Literal["depth", "width", "ffn_ratio", "kv_dim", "query_dim", "n_experts", "top_k", "parameters", "tokens"]


class Reading(BaseModel):
    """How a published file becomes the convention.

    columns: published name to ours. where: conditions on published columns that keep a row, as `fit --where` takes
    them. derived: columns by formula, in this order, of published columns, ours and those derived before. embeddings:
    what is taken off published counts. counts: our counts made of the shapes, which the published ones without
    embeddings must equal within `tolerance` (a share), or published ones where ours are of the shapes because those are
    rounded; none where shapes are not known. group: columns that tell models which may be compared, of one recipe and
    text. best_of: columns of a sweep, of which the lowest loss of each design is taken.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    columns: dict[str, str] = {}
    where: tuple[str, ...] = ()
    derived: dict[str, str] = {}
    embeddings: str = "0"
    counts: dict[str, str] = {}
    tolerance: Annotated[float, Field(gt=0, le=0.01)] = 1e-9
    group: tuple[str, ...] = ()
    best_of: tuple[str, ...] = ()


class EvidenceSource(BaseModel):
    """A published table of trained models.

    laboratory: who trained them; all tables of one are left out together when a law is judged. file: the published file
    that `reading` reads. packaged: whether its rows are part of this package, as its licence allows. licence: as its repository states it,
    "none stated" where it does not. counted: what the published counts of parameters hold, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    description: str
    laboratory: Name
    url: str
    file: str
    commit: str = ""
    licence: str
    packaged: bool
    tokenizer: str = "not stated"
    unit: Literal["nats per token", "nats per byte", "as published"] = "nats per token"
    counted: str
    varies: tuple[Varied, ...]
    fitted: tuple[Name, ...] = ()
    outside: str = ""
    remarks: tuple[str, ...] = ()
    bibtex: str
    reading: Reading


MOST_ROWS = 10_000
DESIGN = (
    *("depth", "width", "query_dim", "kv_dim", "head_dim", "expert_ffn_ratio", "ffn_ratio", "n_experts", "top_k"),
    *("parameters", "active_parameters", "unique_tokens", "tokens"),
)
COLUMNS = ("group", *DESIGN, "loss")
COUNTS = ("parameters", "active_parameters")


@dataclass(frozen=True, eq=False)
class Converted:
    """Rows in the convention, by column of COLUMNS that the source has, (n,) each; `group` counts from 0.

    off: the largest share by which a published count differs from that of the shapes; None where shapes are not known.
    swept: rows of sweeps that were not the best of their design.
    """

    columns: dict[str, FloatArray]
    off: float | None
    swept: int = 0

    def __len__(self) -> int:
        return len(self.columns["loss"])


def converted(source: EvidenceSource, path: Path) -> Converted:
    """The rows of a source's published file.

    Raises:
        ValueError: not that file, or counts that do not follow from its shapes.
    """
    reading = source.reading
    sheet = read_sheet(path, "trained model", most=MOST_ROWS)
    cells = sheet.columns
    if missing := [name for name in (*reading.columns, *reading.group, *reading.best_of) if name not in cells]:
        raise ValueError(f"{path}: expected the columns of {source.file}, got none named {', '.join(missing)}")
    keep, _ = kept(cells, sheet.lines, reading.where, path)
    rows = {name: [column[i] for i in np.flatnonzero(keep)] for name, column in cells.items()}
    known: dict[str, FloatArray] = {}

    def column(name: str) -> FloatArray:
        if name not in known:
            if name not in rows:
                raise ValueError(f"{source.name}: expected a column {name} in {path}, got none")
            known[name] = numbers_of(rows[name])
        return known[name]

    known |= {ours: column(published) for published, ours in reading.columns.items()}
    for name, formula in reading.derived.items():
        known[name] = np.broadcast_to(evaluated(formula, column), (int(keep.sum()),)).astype(np.float64)
    embeddings = evaluated(reading.embeddings, column)
    for name in COUNTS:
        known[name] = column(name) - embeddings if name in known else column("parameters")
    off = _followed(source, {name: evaluated(formula, column) for name, formula in reading.counts.items()}, known)
    known["group"] = _numbered(rows[name] for name in reading.group) if reading.group else np.zeros(int(keep.sum()))
    found = {name: known[name] for name in COLUMNS if name in known}
    best = _best(found) if reading.best_of else np.ones(int(keep.sum()), dtype=bool)
    return Converted({name: values[best] for name, values in found.items()}, off, int((~best).sum()))


def _followed(source: EvidenceSource, made: dict[str, FloatArray], known: dict[str, FloatArray]) -> float | None:
    """The largest share by which counts differ from those of the shapes.

    Raises:
        ValueError: it is more than the source's tolerance.
    """
    apart = {name: np.abs(known[name] / values - 1.0) for name, values in made.items()}
    for name, off in apart.items():
        if off.max() > source.reading.tolerance:
            at = int(np.argmax(off))
            raise ValueError(
                f"{source.name}: {name}: expected counts without embeddings that follow from the shapes within "
                f"{100 * source.reading.tolerance:g} %, got {known[name][at]:.0f} for {made[name][at]:.0f} in row {at + 1}; "
                "correct the source's convention"
            )
    return float(max(off.max() for off in apart.values())) if apart else None


def _numbered(columns: Iterable[list[str]]) -> FloatArray:
    """The number of each row's combination of cells, in order of appearance, (n,)."""
    rows = list(zip(*columns, strict=True))
    order = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    return np.array([float(order[row]) for row in rows])


def _best(columns: dict[str, FloatArray]) -> BoolArray:
    """The rows of lowest loss among those of one design, the first of equal ones, (n,)."""
    designs = np.stack([values for name, values in columns.items() if name != "loss"])
    design: AnyArray = np.unique(designs, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((columns["loss"], design))
    first = np.concatenate([[True], design[order][1:] != design[order][:-1]])
    best = np.zeros(len(order), dtype=bool)
    best[order[first]] = True
    return best
