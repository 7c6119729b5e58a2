"""A table of trained models: a CSV with a loss per row, read without dropping or repairing anything silently."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from objectives.counts import FULL_HEADS
from objectives.loss_law.features import (
    COUNTS,
    FOLLOWING,
    MADE_OF,
    OF_TRAINING,
    OWNERS,
    STANDARD_FFN,
    feature,
)
from objectives.loss_law.layer_deltas import SHARES, Kind, share_of
from objectives.table import Sheet, Source, number, read_sheet, source_of, unfolded
from objectives.table_names import bare
from plas_fit.fitting.columns import (
    BITS,
    COLUMNS,
    Names,
    converged,
    named,
    not_architectures,
    numbers_in,
    out_of_range,
    own_columns,
)
from plas_fit.fitting.kept_rows import beside_laws, checkpoints, kept, lowest, offered, row_names, swept_columns, told
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import ALIASES, SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

MOST_ROWS = 10_000
MOST_VOCABULARY = 10**7
VOCABULARIES = ("vocab_size", "vocabulary", "n_vocab", "vocabulary_size", "padded_vocab_size")
NO_EXPERTS = "no row says that it has experts: designs with experts are outside of what the law is fitted on"
UNSURE = re.compile(r"(?<![a-z])(?:bits?|bpt)(?![a-z])", re.IGNORECASE)  # in the name of a loss: of which unit?
UNGROUPED = " (n_kv_heads of models without grouped queries is n_heads)"
ARCHITECTURE = {*SHAPE, *ALIASES}
SIZES = (
    "width",
    "head_dim",
    "query_dim",
    "kv_dim",
    "expert_size",
)  # alike in an architecture of one head and one expert
KV_COLUMNS = ("depth", "width", "query_dim", "kv_dim")
FROM_COLUMNS: Mapping[str, tuple[tuple[str, ...], Callable[..., FloatArray]]] = {
    "activation_rate": (("top_k", "n_experts"), lambda k, e: k / e),
    "ffn_ratio": (("top_k", "expert_ffn_ratio"), lambda k, ratio: k * ratio),
    "granularity": (("expert_ffn_ratio",), lambda ratio: STANDARD_FFN / ratio),
    "expansion_rate": (("n_experts", "expert_ffn_ratio"), lambda e, ratio: e * ratio / STANDARD_FFN),
    "attention_parameters": (KV_COLUMNS, lambda n, d, q, kv: 2 * n * d * (q + kv)),
    "active_ffn_parameters": (("depth", "width", "ffn_ratio"), lambda n, d, ratio: 3 * n * d**2 * ratio),
}  # quantities that follow from columns of ratios and dimensions, where a table gives these and no whole architecture


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that are fitted: `numbers` by column name, the line of each, notes on what was read how, the files.

    A quantity of a law is a column of its name, or follows from the architecture's columns. names: what the
    table calls each row, (n,), where it says.
    empty: columns that are not read for their empty cells, each with the fault that it is where a law needs it.
    beside: cells, (n,), of the columns that no law reads.
    """

    numbers: Mapping[str, FloatArray]
    lines: AnyArray
    notes: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    _known: dict[str, FloatArray] = field(default_factory=dict)
    names: AnyArray | None = None
    empty: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, AnyArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def loss(self) -> FloatArray:
        """Natural-log loss per token, nats, (n,)."""
        return self.numbers["loss"]

    @property
    def weight(self) -> FloatArray:
        """Weight of each row, mean 1, (n,)."""
        given = self.numbers.get("weight", np.ones(len(self)))
        return np.asarray(given / given.mean())

    def feature(self, name: str) -> FloatArray:
        """A quantity of a law, (n,).

        Raises:
            ValueError: neither a column nor a consequence of others.
        """
        if name not in self._known:
            self._known[name] = self.numbers[name] if name in self.numbers else self._derived(name)
        return self._known[name]

    def _derived(self, name: str) -> FloatArray:
        if name in self.empty:
            raise ValueError(self.empty[name])
        dense = "n_experts" not in self.empty and bool((self.numbers.get("n_experts", np.ones(1)) == 1).all())
        if name == "tokens" and {"training_flops", "parameters"} <= set(self.numbers):
            return self.numbers["training_flops"] / (6.0 * self.numbers["parameters"])
        if name == "active_parameters" and dense and "parameters" in self.numbers:
            return self.numbers["parameters"]
        if name == "parameters" and dense and "active_parameters" in self.numbers:
            return self.numbers["active_parameters"]
        if name.endswith(FULL_HEADS):
            count = self.feature(name.removesuffix(FULL_HEADS))
            return count + 2.0 * self._narrower() if self._says(KV_COLUMNS) else count
        if name in FROM_COLUMNS and self._says(FROM_COLUMNS[name][0]):
            columns, made = FROM_COLUMNS[name]
            return made(*(self.feature(column) for column in columns))
        if name in MADE_OF:
            return np.asarray(np.prod([self.feature(part) ** power for part, power in MADE_OF[name].items()], axis=0))
        if name in SHARES:
            return self.kinds.get(SHARES[name], np.zeros(len(self)))
        if name not in OWNERS:
            raise ValueError(f"{name}: expected a column of it, got none; add it")
        if name == "tokens":
            raise ValueError("tokens: expected a column of training tokens, got none; add it (or training_flops)")
        return feature(self._architectures(name), name)

    def _narrower(self) -> FloatArray:
        """What keys, or values, of as many KV heads as heads would hold more, parameters, (n,)."""
        depth, width, query, kv = (self.feature(name) for name in KV_COLUMNS)
        return depth * width * (query - kv)

    def _says(self, columns: Sequence[str]) -> bool:
        """Whether all of them are columns, or follow from columns."""
        return all(
            name in self.numbers or (name in FROM_COLUMNS and self._says(FROM_COLUMNS[name][0])) for name in columns
        )

    def _architectures(self, wanted: str) -> Architectures:
        if empty := [said for name, said in self.empty.items() if name in ARCHITECTURE]:
            raise ValueError("\n".join(empty))
        if isinstance(self._read, str):
            raise ValueError(
                f"{wanted}: expected a column of it, or those of an architecture that give it, of which {self._read} is missing or wrong"
                f"{UNGROUPED if 'n_kv_heads' in self._read else ''}; add what is missing, or --rename it"
            )
        return self._read

    @cached_property
    def _read(self) -> Architectures | str:
        """The rows as architectures; the names of what is wrong where they are none."""
        try:
            return Architectures.from_columns(own_columns(self.numbers))
        except ValueError as error:
            return ", ".join(line.partition(":")[0] for line in str(error).splitlines())

    def has(self, name: str) -> bool:
        """Whether a quantity is known."""
        try:
            self.feature(name)
        except ValueError:
            return False
        return True

    def __getitem__(self, rows: AnyArray) -> "Table":
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        known = {name: column[rows] for name, column in self._known.items()}
        names = None if self.names is None else self.names[rows]
        beside = {name: cells[rows] for name, cells in self.beside.items()}
        return replace(self, numbers=numbers, lines=self.lines[rows], _known=known, names=names, beside=beside)

    @property
    def vocabulary(self) -> int | None:
        """The one vocabulary of all rows, in a column that no law reads; None where it is not said, or differs."""
        sizes = {number(cell) for name, cells in self.beside.items() if bare(name) in VOCABULARIES for cell in cells}
        size = sizes.pop() if len(sizes) == 1 else 0.0
        return int(size) if 1 <= size <= MOST_VOCABULARY and size == int(size) else None

    @property
    def levels(self) -> dict[str, FloatArray]:
        """Distinct values of every known quantity that varies."""
        found = {name: np.unique(self.feature(name)) for name in OWNERS if name not in FOLLOWING and self.has(name)}
        if (
            "query_dim" in found
            and self.has("width")
            and np.array_equal(self.feature("query_dim"), self.feature("width"))
        ):
            del found["query_dim"]
        if np.array_equal(found.get("parameters", 0), found.get("active_parameters", 1)):
            del found["active_parameters"]
        return {name: values for name, values in found.items() if len(values) > 1}

    @property
    def sparse(self) -> BoolArray:
        """Which rows have experts, (n,): parameters that are not all active, or more experts than one."""
        if self.has("activation_rate"):
            return np.asarray(self.feature("activation_rate") < 1)
        if {"parameters", "active_parameters"} <= set(self.numbers):
            return np.asarray(self.numbers["active_parameters"] < self.numbers["parameters"])
        return np.asarray(self.numbers.get("n_experts", np.ones(len(self))) > 1)

    @property
    def with_experts(self) -> bool:
        """Whether some row has experts."""
        return bool(self.sparse.any())

    @property
    def _of_kinds(self) -> list[str]:
        """Its columns of layer kinds."""
        return [name for name in KIND_DEFAULTS if name in self.numbers]

    @property
    def kinds(self) -> dict[Kind, FloatArray]:
        """The share of the layers that are of a kind, (n,), of each kind that some row has."""
        if not self._of_kinds:
            return {}
        architectures = self._architectures("depth")
        shares = {kind: share_of(architectures, kind) for kind in SHARES.values()}
        return {kind: share for kind, share in shares.items() if share.any()}

    @property
    def design(self) -> AnyArray:
        """Number of each row's design: equal architectures trained on equal tokens share one, (n,)."""
        names = [*(name for name in OWNERS if self.has(name)), *self._of_kinds]
        stacked = np.stack([self.feature(name) for name in names]) if names else np.zeros((1, len(self)))
        return np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)

    @property
    def family(self) -> AnyArray:
        """Number of the rows that are resampled and left out together, (n,): a design, with checkpoints an architecture."""
        if "checkpoint" not in self.numbers:
            return self.design
        names = [*(name for name in OWNERS if name not in OF_TRAINING and self.has(name)), *self._of_kinds]
        stacked = np.stack([self.feature(name) for name in names])
        return np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)


def read_table(
    path: Path,
    renamed: Sequence[str] = (),
    where: Sequence[str] = (),
    last: str | None = None,
    unit: str | None = None,
    best_of: str | None = None,
) -> Table:
    """The rows of a CSV that `where` keeps, columns renamed OLD=NEW first, of each run its last, of each sweep its best run.

    last: the column that orders a run's checkpoints, "none" to keep them all, None to look for one.
    unit: "nats" or "bits" of the losses, None for what their column's name says, else nats.
    best_of: columns of a sweep, separated by commas.

    Raises:
        ValueError: a line a fault, each naming the column and the line of the file.
    """
    table, sure = read_rows(path, renamed, where, last, unit, best_of)
    return whole(table, str(path), sure=sure)


def read_rows(
    path: Path,
    renamed: Sequence[str],
    where: Sequence[str],
    last: str | None,
    unit: str | None,
    best_of: str | None,
    needs: Sequence[str] = (),
) -> tuple[Table, bool]:
    """The rows of one file, however few, and whether the unit of their losses was said.

    needs: quantities of a law; where something else is wrong, those that the file lacks are said with it.

    Raises:
        ValueError: a line a fault, those of names and of cells together.
    """
    sheet = unfolded(read_sheet(path, "trained model", most=MOST_ROWS))
    names = named(sheet.header, renamed, path)
    swept = () if best_of is None else swept_columns(best_of, sheet.header, names.columns, path)
    bits = unit == "bits" or (unit is None and bare(names.loss) in BITS)
    faults = list(names.faults)
    if unit is None and not bits and UNSURE.search(names.loss):
        faults.append(
            f"{path}:1: expected losses of a known unit, got {names.loss}; say it: --loss-unit bits or --loss-unit nats"
        )
    try:
        table = _table(_selected(sheet, names, where, last, swept, path), bits, faults, path)
    except ValueError as error:
        faults += str(error).splitlines()
    if faults:
        mended = [names.meant.get(name, name) for name in names.columns]  # as if these faults were no more
        lacks = _lacking(mended, needs)
        unread = beside_laws(dict.fromkeys(mended, ())) if lacks else ()
        raise ValueError("\n".join([*faults, *lacks, *offered(unread)]))
    table = _best(table, swept) if swept else table
    notes = (f"{names.loss} is read as bits: nats are bits · 0.693",) if bits else ()
    table = replace(table, notes=(*table.notes, *notes), sources=(source_of(sheet, len(table)),))
    return table, bits or unit is not None


@dataclass(frozen=True, eq=False)
class _Selected:
    """The cells of the rows that are kept, by names here and as written; lines, progress of kept checkpoints, notes, faults."""

    columns: dict[str, list[str]]
    as_written: dict[str, list[str]]
    lines: AnyArray
    progress: FloatArray | None
    notes: tuple[str, ...]


def _selected(
    sheet: Sheet, names: Names, where: Sequence[str], last: str | None, swept: Sequence[str], path: Path
) -> _Selected:
    """The cells of finished runs that conditions keep, of each run its last, diverged ones left out.

    Raises:
        ValueError: conditions or checkpoints that are unclear, no run that converged.
    """
    columns = {name: [row[i] for row in sheet.body] for i, name in enumerate(names.columns)}
    as_written = sheet.columns
    keep, left_out = kept({**as_written, **columns}, sheet.lines, where, path)
    columns, as_written, lines = _chosen(columns, keep), _chosen(as_written, keep), sheet.lines[keep]
    final, progress, found = checkpoints({**as_written, **columns}, lines, last, swept, path)
    finite, diverged = converged(_chosen(columns, final), lines[final], path)
    final[np.flatnonzero(final)[~finite]] = False
    notes = (*names.notes, *left_out, *found, *diverged)
    place = None if progress is None else progress[final]
    return _Selected(_chosen(columns, final), _chosen(as_written, final), lines[final], place, notes)


def _table(rows: _Selected, bits: bool, faults: list[str], path: Path) -> Table:
    """The rows as numbers; adds to `faults` what is wrong with their cells."""
    numbers, empty, unused, unread = numbers_in(rows.columns, rows.lines, path)
    faults += unread
    if rows.progress is not None:
        numbers["checkpoint"] = rows.progress
    if bits and "loss" in numbers:
        numbers["loss"] = numbers["loss"] * math.log(2.0)
    notes = (*rows.notes, *unused, *_head_sizes(numbers))
    names, beside = row_names(rows.as_written), beside_laws(rows.columns)
    table = Table(numbers, rows.lines, (*notes, *told(beside)), names=names, empty=empty, beside=beside)
    faults += out_of_range(numbers, rows.lines, path)
    faults += [] if faults else not_architectures(numbers, rows.lines, path)
    return table


def _lacking(columns: Sequence[str], needs: Sequence[str]) -> list[str]:
    """What a file with these columns would lack of the quantities of a law, were every cell right."""
    known = [name for name in columns if name in COLUMNS and name not in KIND_DEFAULTS]
    numbers = {name: np.full(1, 64.0 if name in SIZES else 1.0) for name in known}
    _head_sizes(numbers)
    table = Table(numbers, np.ones(1))
    return lacking(table, needs)


def lacking(table: Table, names: Sequence[str]) -> list[str]:
    """A line for everything that keeps a table from holding quantities of a law."""
    faults: list[str] = []
    for name in names:
        try:
            table.feature(name)
        except ValueError as error:
            faults += str(error).splitlines()
    return list(dict.fromkeys(faults))


def _head_sizes(numbers: dict[str, FloatArray]) -> list[str]:
    """Add width / heads as the size of a head where nothing says another, as Hugging Face's configurations do; what is said of it."""
    if not {"n_heads", "width"} <= set(numbers) or {"head_dim", "query_dim", "kv_dim"} & set(numbers):
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        size = numbers["width"] / numbers["n_heads"]
    if not (np.isfinite(size) & (size == np.round(size))).all():
        return []
    numbers["head_dim"] = size
    return ["head_dim is width / n_heads"]


def _best(table: Table, swept: Sequence[str]) -> Table:
    """Of each sweep its best run."""
    keep = lowest(table.numbers, swept)
    said = f"{int((~keep).sum())} rows left out by --best-of {','.join(swept)}: the lowest loss of each of {int(keep.sum())} designs is kept"
    return replace(table[keep], notes=(*table.notes, said))


def whole(table: Table, name: str, *, sure: bool, single: bool = False) -> Table:
    """All rows of a fit with what is to be said of them; `sure`: the unit of the losses was said; `single`: one row is enough.

    Raises:
        ValueError: a single row, or losses that are all the same, where these are not enough.
    """
    if len(table) < 2 and not single:
        raise ValueError(f"{name}: expected a row per trained model, got one; a law needs more rows than coefficients")
    if not np.ptp(table.loss) and not single:
        raise ValueError(
            f"{name}: loss: expected values that vary, got {table.loss[0]:g} in every row; a law has nothing to say"
        )
    return replace(table, notes=(*table.notes, *_remarks(table, sure=sure)))


def _chosen(columns: Mapping[str, list[str]], keep: AnyArray) -> dict[str, list[str]]:
    return {name: [column[i] for i in np.flatnonzero(keep)] for name, column in columns.items()}


def _remarks(table: Table, *, sure: bool) -> list[str]:
    """What a reader should know of the rows before trusting a fit; `sure`: the unit of the losses was said."""
    notes = []
    if {"training_flops", "parameters"} <= set(table.numbers) and "tokens" not in table.numbers:
        notes.append("tokens are training_flops / (6 parameters)")
    notes += [
        f"{name} is not constant: {table.numbers[name].min():.3g} to {table.numbers[name].max():.3g}"
        for name in ("tokens", "learning_rate", "batch")
        if name in table.numbers and np.ptp(table.numbers[name]) > 0.1 * table.numbers[name].min()
    ]
    notes += [] if table.with_experts else [NO_EXPERTS]
    for name in COUNTS:
        if name in table.numbers and (own := _count(table, name)) is not None:
            apart = float(np.abs(np.log(table.numbers[name] / own)).max())
            if apart > 0.02:
                notes.append(
                    f"{name} differs from the architecture's count by up to {100 * np.expm1(apart):.0f} %; the column is used"
                )
    identical = len(table) - len(np.unique(np.stack([table.design.astype(float), table.loss]), axis=1).T)
    if identical:
        notes.append(
            f"{identical} rows repeat another's design and loss to the last digit: copies, no replicates; all are kept"
        )
    if not sure and 0.9 < float(np.median(table.loss)) / 5.5 < 2.0:
        notes.append(
            "half the losses are above 4.95: check that they are nats, not bits (--loss-unit bits converts, --loss-unit nats says so)"
        )
    return notes


def _count(table: Table, name: str) -> FloatArray | None:
    try:
        return feature(table._architectures(name), name)
    except ValueError:
        return None
