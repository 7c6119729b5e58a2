"""Traces of other tools: a CSV of run, order of evaluation and objectives, whose columns the flags name, read as runs."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nas.compare.anytime import Trace
from nas.compare.reference import Reference
from nas.errors import UsageError
from nas.problem.evaluations import rounded
from nas.problem.objective import Objective, built_in
from nas.problem.quantiles import ships
from objectives import outside
from objectives.display_text import LACKING, lacking_row, read_cell, shown_name
from objectives.table import NOT_FINITE, Sheet, mended, number, read_sheet
from search_spaces.arrays import BoolArray, FloatArray, IntArray

LABELS = ("strategy", "run", "study", "evaluation", "violation", "key")
FORM = "run=COLUMN, key=COLUMN (or {}), NAME=COLUMN, minimize:COLUMN or maximize:COLUMN".format(
    ", ".join(name for name in LABELS if name not in ("run", "key"))
)


@dataclass(frozen=True)
class Columns:
    """labels: what a row is of, by column; objectives: column and sign by name, of which a maximised one is negated."""

    labels: Mapping[str, str] = field(default_factory=dict)
    objectives: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether any column was given."""
        return bool(self.labels or self.objectives)


def columns_of(texts: Sequence[str]) -> Columns:
    """Columns by `--column`: `run=seed`, `key=Sub-network`, `total_ms=Latency (ms)`, `maximize:BLEU`.

    Raises:
        UsageError: another form, or a name twice.
    """
    labels: dict[str, str] = {}
    objectives: dict[str, tuple[str, float]] = {}
    for text in texts:
        direction = re.fullmatch(r"(minimi[sz]e|maximi[sz]e):(.+)", text.strip())
        name, sign, column = text.partition("=")
        if direction is not None:
            column = direction[2].strip()
            worse = 1.0 if direction[1].startswith("min") else -1.0
            name, sign = (column if worse > 0 else f"-{column}"), ":"
        else:
            name, column, worse = name.strip(), column.strip(), 1.0
        if not sign or not name or not column:
            raise UsageError(f"--column: expected {FORM}, got {text!r}; write for example --column maximize:accuracy")
        if name in labels or name.removeprefix("-") in {known.removeprefix("-") for known in objectives}:
            raise UsageError(f"--column: expected each name once, got {name} twice; leave one out")
        if name in LABELS:
            labels[name] = column
        else:
            objectives[name] = (column, worse)
    return Columns(labels, objectives)


def bounds_by_name(texts: Sequence[str]) -> dict[str, list[float]]:
    """`accuracy=0.5:0.8` texts.

    Raises:
        UsageError: another form.
    """
    bounds: dict[str, list[float]] = {}
    for text in texts:
        name, _, ends = text.rpartition("=")
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            raise UsageError(f"--bounds: expected NAME=LOW:HIGH, got {text!r}; write accuracy=0.5:0.8") from None
        bounds[name.strip()] = [low, high]
    return bounds


def reference_by_name(texts: Sequence[str]) -> dict[str, float]:
    """`accuracy=0.5` texts.

    Raises:
        UsageError: another form.
    """
    point: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            point[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--reference: expected NAME=VALUE, got {text!r}; write accuracy=0.5") from None
    return point


MOST_BYTES = 400 * outside.MB
Row = dict[str, str]
AS_NAMED = Columns()


@dataclass(frozen=True, eq=False)
class ForeignRun:
    """One run as the file has it: values (n, m) in order of evaluation, NaN where a cell is empty.

    designs: what tells designs apart, (n,), None without a key: then every row is an evaluation of its own.
    """

    strategy: str
    run: str
    study: str
    values: FloatArray
    within: BoolArray
    designs: tuple[str, ...] | None = None


def objectives_of(path: Path, columns: Columns = AS_NAMED) -> tuple[Objective, ...]:
    """The objectives of a file: those given, else every column that is no label, on our scale where we know the metric.

    Raises:
        UsageError: none, or a column that is said and not there.
    """
    header = _sheet(path).header
    for column in (*columns.labels.values(), *(column for column, _ in columns.objectives.values())):
        if column not in header:
            raise UsageError(f"{path}: expected a column {column}, got {', '.join(header)}; correct --column")
    labels = (*LABELS, *columns.labels.values())
    names = list(columns.objectives) or [name for name in header if name not in labels]
    if not names:
        raise UsageError(f"{path}: expected columns run and one per objective, got {', '.join(header)}; add them")
    return tuple(built_in(name) if ships(name) else Objective(name) for name in names)


def studies_of(path: Path, columns: Columns = AS_NAMED) -> list[str]:
    """Names of studies in a file, in its order, "" where a row has none."""
    return list(dict.fromkeys(row.get("study", "") for _, row in _labelled(path, columns)))


def read_runs(
    path: Path, objectives: Sequence[str], studies: Collection[str] | None = None, columns: Columns = AS_NAMED
) -> list[ForeignRun]:
    """Every run of a file, or those of the given studies, in the order in which they begin.

    Columns: run; one per objective; optionally evaluation (the order, else the file's), strategy (else
    the file's name), study, violation (feasible at ≤ 0), and key (what tells designs apart); `columns` says
    which are called otherwise. Without a column run, and with some said, a file is one run.

    Raises:
        UsageError: unreadable, a column missing, or a cell that is no number.
    """
    rows = _labelled(path, columns)
    chosen = [(line, row) for line, row in rows if studies is None or row.get("study", "") in studies]
    sources = {name: columns.objectives.get(name, (name, 1.0)) for name in objectives}
    for name in ("run", *(column for column, _ in sources.values())) if chosen else ():
        if name not in rows[0][1]:
            raise UsageError(f"{path}: expected a column {name}, got {', '.join(rows[0][1])}; rename or add it")
    _refuse_blanks(path, chosen)
    grouped: dict[tuple[str, str, str], list[tuple[int, Row]]] = {}
    for line, row in chosen:
        label = (_label(path, row.get("strategy") or path.stem), _label(path, row["run"]), row.get("study", ""))
        grouped.setdefault(label, []).append((line, row))
    return [_run(path, label, found, sources.values()) for label, found in grouped.items()]


def _refuse_blanks(path: Path, chosen: Sequence[tuple[int, Row]]) -> None:
    """Refuse a row that lacks the label which others have.

    Raises:
        UsageError: there is one.
    """
    for name in ("strategy", "run"):
        if (place := lacking_row(row.get(name) for _, row in chosen)) is not None:
            raise UsageError(f"{path}:{chosen[place][0]}: {name}: {LACKING}")


def _labelled(path: Path, columns: Columns) -> list[tuple[int, Row]]:
    """Rows of a file with labels under our names, and their lines."""
    sheet = _sheet(path)
    given = {name: column for name, column in columns.labels.items() if column in sheet.header}
    alone = {"run": path.stem} if columns.given and "run" not in {*sheet.header, *given} else {}
    labelled = ({**row, **{name: row[column] for name, column in given.items()}, **alone} for row in sheet.rows)
    return list(zip(sheet.lines.tolist(), labelled, strict=True))


def _label(path: Path, text: str) -> str:
    try:
        return shown_name(read_cell(text))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _run(
    path: Path, label: tuple[str, str, str], rows: list[tuple[int, Row]], sources: Collection[tuple[str, float]]
) -> ForeignRun:
    if "evaluation" in rows[0][1]:
        rows = sorted(rows, key=lambda item: _place(path, *item))
    values = [[sign * _number(path, line, row, name) for name, sign in sources] for line, row in rows]
    within = [_number(path, line, row, "violation") <= 0 if "violation" in row else True for line, row in rows]
    designs = tuple(row["key"] for _, row in rows) if "key" in rows[0][1] else None
    return ForeignRun(*label, np.array(values, dtype=np.float64), np.array(within, dtype=bool), designs)


def _sheet(path: Path) -> Sheet:
    try:
        return read_sheet(path, "evaluation", most_bytes=MOST_BYTES)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _place(path: Path, line: int, row: Row) -> float:
    place = _number(path, line, row, "evaluation")
    if np.isnan(place):
        raise UsageError(f"{path}:{line}: evaluation: expected a number, got nothing; number every row or none")
    return place


def _number(path: Path, line: int, row: Row, name: str) -> float:
    """A cell's number; NaN where it is empty, or not finite: of an evaluation that failed."""
    cell = row[name]
    if cell in NOT_FINITE:
        return float(cell)
    if cell and not np.isfinite(number(cell)):
        raise UsageError(f"{path}:{line}: {name}: expected a number or nothing, got {cell!r}; {mended(name, cell)}")
    return number(cell)


def traces(
    runs: Sequence[ForeignRun], objectives: tuple[Objective, ...], known: Reference | None, asked: int
) -> list[Trace]:
    """Runs as traces of at most `asked` evaluations: every row is one that was paid, or with keys the first of each design.

    A value that is not finite, or has no logarithm where its objective needs one, is a failed evaluation.
    """
    if not runs:
        return []
    keys = keys_by_value(np.concatenate([run.values for run in runs]), known)
    parts = np.split(keys, np.cumsum([len(run.values) for run in runs])[:-1])
    all_traces = []
    for run, own in zip(runs, parts, strict=True):
        scaled = np.stack([o.scaled(_positive(o, column)) for o, column in zip(objectives, run.values.T, strict=True)])
        usable = np.isfinite(run.values).all(axis=1) & np.isfinite(scaled).all(axis=0)
        first = np.arange(len(own)) if run.designs is None else np.sort(np.unique(run.designs, return_index=True)[1])
        first = first[:asked]
        ended = "" if len(first) >= asked else "stopped"
        within = (usable & run.within)[first]
        all_traces.append(Trace(run.strategy, run.run, None, run.values[first], within, own[first], ended))
    return all_traces


def _positive(objective: Objective, values: FloatArray) -> FloatArray:
    return np.where(values > 0, values, np.nan) if objective.log_scale else values


def keys_by_value(values: FloatArray, known: Reference | None) -> IntArray:
    """A number per design where only values are known: a member of the reference with equal values (12 digits), else one's own."""
    comparable = rounded(np.where(np.isfinite(values), values, 0.0))
    members = (
        {}
        if known is None
        else {row.tobytes(): key for row, key in zip(rounded(known.values), known.keys, strict=True)}
    )
    own: dict[bytes, int] = {}
    for row in comparable:
        own.setdefault(row.tobytes(), members.get(row.tobytes(), -1 - len(own)))
    return np.array([own[row.tobytes()] for row in comparable], dtype=np.int64)
