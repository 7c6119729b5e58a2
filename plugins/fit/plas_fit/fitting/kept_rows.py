"""Selects the rows of a table to fit: those that conditions keep, of finished runs, the last of each run, the best of each sweep."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from objectives.display_text import LONGEST, in_a_command
from objectives.table import listed, number, numbers_of, numbers_or_empty
from objectives.table_names import ALIAS, DONE, OUR_DONE, STATES, STATUS, bare
from plas_fit.fitting.columns import COLUMNS
from search_spaces.arrays import AnyArray, BoolArray, FloatArray
from search_spaces.columns import ALIASES, SHAPE
from search_spaces.layer_kinds import KIND_DEFAULTS

COMPARISONS: dict[str, Callable[[AnyArray, AnyArray], BoolArray]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
PROGRESS = (
    *("step", "_step", "global_step", "train_step", "training_step"),
    *("iteration", "iter", "epoch", "checkpoint_step", "checkpoint"),
)
RUNS = ("run", "run_id", "run_name", "run_uuid", "Run", "Run ID", "Run Name")
NAMES = ("name", "id", "Name", "ID")
SETTINGS = ("learning_rate", "batch", "weight_decay", "warmup", "warmup_steps")
DESIGN = (*SHAPE, *ALIASES, *KIND_DEFAULTS, "parameters", "active_parameters", "seed")
TRAINED = ("tokens", "training_flops")
KEEP_ALL = "none"
Columns = Mapping[str, list[str]]


def kept(columns: Columns, lines: AnyArray, where: Sequence[str], path: Path) -> tuple[BoolArray, list[str]]:
    """Rows (n,) of finished runs that every condition keeps, and how many each left out.

    Raises:
        ValueError: a condition that cannot be read, or no row left.
    """
    keep, notes = np.ones(len(lines), dtype=bool), []
    passing = [(condition, _passes(condition, columns, lines, path)) for condition in where]
    for said, passes in [*_finished(columns), *passing]:
        out = lines[keep & ~passes]
        notes.append(f"{len(out)} rows left out by {said}{listed(out)}")
        keep &= passes
    if not keep.any():
        raise ValueError(
            f"where: expected conditions that leave rows, got {' and '.join(where) or 'no finished run'}; {path} has none"
        )
    return keep, notes


def _finished(columns: Columns) -> list[tuple[str, BoolArray]]:
    """Rows of finished runs, where a tracker's column says how each ended."""
    for name, cells in columns.items():
        ends = [cell.lower() for cell in cells]
        if bare(name) in STATUS and (set(ends) <= STATES or OUR_DONE in ends):
            done = np.array([end in DONE for end in ends])
            left = ", ".join(sorted(end or "(empty)" for end in set(ends) - DONE))
            return [] if done.all() else [(f"{name} {left}", done)]
    return []


def _passes(condition: str, columns: Columns, lines: AnyArray, path: Path) -> BoolArray:
    parts = re.fullmatch(r"\s*(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+?)\s*", condition)
    if parts is None or (parts[1] not in columns and parts[1] != "tokens_per_parameter"):
        known = ", ".join(columns)
        raise ValueError(
            f"where: expected COLUMN<VALUE with a column of {path} ({known}), got {condition!r}; correct it"
        )
    name, sign, text = parts.groups()
    limit = number(text)
    if np.isfinite(limit):
        if name not in columns:
            cells = _tokens_per_parameter(columns)
        elif sign in ("=", "!="):
            cells = numbers_of(columns[name])
        else:
            cells = numbers_or_empty(name, columns[name], lines, path)
        return np.asarray(COMPARISONS[sign](cells, np.asarray(limit)))
    if sign not in ("=", "!="):
        raise ValueError(f"where: expected a number after {sign}, got {text!r}; correct it")
    return np.asarray(COMPARISONS[sign](np.array(columns[name]), np.asarray(text)))


def _tokens_per_parameter(columns: Columns) -> FloatArray:
    """Training tokens per parameter, (n,)."""
    if "parameters" in columns:
        parameters = numbers_of(columns["parameters"])
        if "tokens" in columns:
            return np.asarray(numbers_of(columns["tokens"]) / parameters)
        if "training_flops" in columns:
            return np.asarray(numbers_of(columns["training_flops"]) / (6.0 * parameters**2))
    raise ValueError("where: expected columns tokens and parameters for tokens_per_parameter; add them")


def checkpoints(
    columns: Columns, lines: AnyArray, last: str | None, swept: Sequence[str], path: Path
) -> tuple[BoolArray, FloatArray | None, list[str]]:
    """The last row of each run (n,), the progress of rows where all are kept, and what was found.

    Rows of one run (by a column of its name) or of one architecture and seed are checkpoints where a
    column of progress tells them apart. `last`: the column of progress, "none" to keep all rows, None
    to look for one. swept: columns of a sweep, which tell runs apart.

    Raises:
        ValueError: no such column, or rows that may be checkpoints or runs of their own.
    """
    everything = np.ones(len(lines), dtype=bool)
    told, place = _progress(columns, lines, last, path)
    if place is None:
        return everything, None, []
    groups = _grouped(columns, place, swept)
    if not groups:
        return everything, None, []
    if last is None:
        _refuse_unclear(columns, lines, groups, told, path)
    if last == KEEP_ALL:
        said = f"{sum(map(len, groups))} rows are checkpoints of {len(groups)} runs (by {told}): not independent, no replicates; resampled together"
        return everything, place, [said]
    keep = everything.copy()
    scored = np.array([bool(cell) for cell in columns.get("loss", ["?"] * len(lines))])
    for rows in groups:
        usable = rows[scored[rows]] if scored[rows].any() else rows
        at_end = usable[place[usable] == place[usable].max()]
        _refuse_twice(columns, lines, at_end, told, path)
        keep[np.setdiff1d(rows, at_end)] = False
    said = f"{int((~keep).sum())} rows are earlier checkpoints of {len(groups)} runs (by {told}) and left out; --last none keeps them"
    return keep, None, [said]


def _progress(columns: Columns, lines: AnyArray, last: str | None, path: Path) -> tuple[str, FloatArray | None]:
    """The column that says how far a run was, and its numbers, −∞ where it has none."""
    if last not in (None, KEEP_ALL):
        assert last is not None
        if last not in columns:
            raise ValueError(f"last: expected a column of {path} or none, got {last!r}; it has {', '.join(columns)}")
        names = [last]
    else:
        names = [name for wanted in PROGRESS for name in columns if bare(name).rpartition("/")[2] == wanted]
        names += [name for name in TRAINED if name in columns and _run_columns(columns)]
    for name in names:
        values = numbers_of(columns[name])
        if np.isfinite(values).any():
            values = numbers_or_empty(name, columns[name], lines, path)
            return name, np.where(np.isfinite(values), values, -np.inf)
    if last not in (None, KEEP_ALL):
        raise ValueError(f"last: expected numbers in the column {last} of {path}, got none; name another")
    return "", None


def _run_columns(columns: Columns) -> list[str]:
    """Columns that name a run; beside a tracker's state of each run, its name and id do."""
    ends = [cell.lower() for name in columns if bare(name) in STATUS for cell in columns[name]]
    tracked = bool(ends) and OUR_DONE not in ends  # a row of ours is a training, its id that of a candidate
    return [name for name in columns if bare(name) in RUNS or (tracked and bare(name) in NAMES)]


def _grouped(columns: Columns, place: FloatArray, swept: Sequence[str]) -> list[AnyArray]:
    """Rows of each run that has several rows of different progress."""
    names = [*_run_columns(columns), *(name for name in (*DESIGN, *swept) if name in columns)]
    found: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(zip(*(columns[name] for name in names), strict=True)):
        found.setdefault(key, []).append(row)
    groups = [np.array(rows) for rows in found.values()]
    return [rows for rows in groups if len(np.unique(place[rows])) > 1]


def _refuse_unclear(columns: Columns, lines: AnyArray, groups: list[AnyArray], told: str, path: Path) -> None:
    """Refuse rows that no column calls one run, while others differ as between runs."""
    if _run_columns(columns):
        return
    labels = [
        name for name in columns
        if bare(name) in (*SETTINGS, *TRAINED, *NAMES, "model", "label", "experiment", "trial") or bare(name).endswith("_id")
    ]  # fmt: skip
    for name in labels:
        if all(len({columns[name][row] for row in rows}) == len(rows) for rows in groups):
            shown = ", ".join(str(line) for line in lines[groups[0][:3]].tolist())
            raise ValueError(
                f"{path}: expected a row per trained model, got rows of one architecture and seed (lines {shown}) that differ in "
                f"{told} and {name}; --last {told} keeps the last of each run, --last none takes all as they are"
            )


def _refuse_twice(columns: Columns, lines: AnyArray, at_end: AnyArray, told: str, path: Path) -> None:
    """Refuse a run with two losses at its end; without a name of the run they are two runs."""
    if _run_columns(columns) and len({columns.get("loss", [""] * len(lines))[row] for row in at_end}) > 1:
        shown = ", ".join(str(line) for line in lines[at_end[:3]].tolist())
        raise ValueError(
            f"{path}: expected one loss at the end of each run, got several (lines {shown}) at its last {told}; leave out all but one"
        )


def swept_columns(written: str, header: Sequence[str], names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Columns of a list such as "lr,batch" by the names they have here (`names`, of the columns of `header`).

    Raises:
        ValueError: no column of the file.
    """
    found, here = [], dict(zip(header, names, strict=True))
    for each in (part.strip() for part in written.split(",")):
        plain = bare(each)
        name = here.get(each, ALIAS.get(plain, plain))
        if name not in names:
            raise ValueError(f"best_of: expected columns of {path} ({', '.join(header)}), got {each!r}; correct it")
        found.append(name)
    return tuple(found)


def lowest(numbers: Mapping[str, FloatArray], swept: Sequence[str]) -> BoolArray:
    """The row of lowest loss among those that are alike in every column that is read but the swept ones; of ties the first, (n,)."""
    loss = numbers["loss"]
    alike = [column for name, column in numbers.items() if name not in ("loss", *swept)]
    stacked = np.stack(alike) if alike else np.zeros((1, len(loss)))
    group = np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((loss, group))
    keep = np.zeros(len(loss), dtype=bool)
    keep[order[np.unique(group[order], return_index=True)[1]]] = True
    return keep


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
