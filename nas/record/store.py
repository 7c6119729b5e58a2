"""The run's store: every distinct architecture evaluated, in order, in one SQLite file."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas.errors import PlasError
from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget
from nas.record.database import Steps, UnderWay, connect, digest, explained, meta_digest
from objectives import outside
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray, IntArray
from search_spaces.space import SearchSpace
from search_spaces.specification import GENES

GENE = "gene_"  # before the name of a gene: the column of its indices
KNOWN = -1  # the batch of results from before a run, which nobody is charged for


@dataclass(frozen=True)
class BatchRecord:
    """One ask of the strategy: rows asked and seconds of strategy and objectives."""

    batch: int
    asked: int
    strategy_s: float
    objectives_s: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """The content of a store: evaluations in order, the batch of each, and the batches."""

    evaluations: Evaluations
    batches: IntArray
    retried: tuple[IntArray, Evaluations]

    @property
    def known(self) -> Evaluations:
        """The results known before the run, its first rows."""
        return self.evaluations[slice(0, known_in(self.batches))]

    @property
    def charged(self) -> int:
        """Evaluations of the run itself."""
        return len(self.evaluations) - known_in(self.batches)


def known_in(batches: IntArray) -> int:
    """How many rows of a log, by the batch of each, were known before the run."""
    return int((batches == KNOWN).sum())


def final(told: Evaluations, retried: tuple[IntArray, Evaluations]) -> Evaluations:
    """The current values: the rows given to the strategy, failed ones replaced by their retries."""
    rows, found = retried
    if len(rows) == 0:
        return told
    reasons = list(told.reasons or ("",) * len(told))
    for row, reason in zip(rows.tolist(), found.reasons or ("",) * len(found), strict=True):
        reasons[row] = reason
    metrics = {name: column.copy() for name, column in told.metrics.items()}
    for name, column in metrics.items():
        column[rows] = found.metrics[name]
    return replace(told, metrics=metrics, reasons=tuple(reasons) if any(reasons) else None)


def holds(space: SearchSpace, found: Evaluations) -> bool:
    """Whether every genotype is one of the space, under its own key."""
    genes = found.genotypes.astype(np.int64)
    return bool(space.is_canonical(genes).all()) and np.array_equal(space.keys(genes), found.keys)


FILE = "evaluations.sqlite"
LAYOUT = "1"
NOTES = "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, text TEXT NOT NULL, digest TEXT NOT NULL)"
STRATEGY, SOLVING = "strategy", "solving"
BLOCK = 20_000


class RunStore:
    """Append-only log; WAL and synchronous=NORMAL, one transaction a batch, unique key per architecture."""

    def __init__(
        self,
        path: Path,
        metrics: tuple[str, ...],
        objectives: tuple[str, ...],
        budgets: tuple[Budget, ...],
        *,
        genes: tuple[str, ...] = GENES,
        readonly: bool = False,
    ) -> None:
        self.path, self.metrics, self.objectives, self.budgets = path, metrics, objectives, budgets
        self.genes = genes
        self.connection = connect(path, readonly=readonly)
        self.under_way, self.steps = UnderWay(path, self.connection), Steps(path, self.connection)

    def create(
        self,
        meta: Mapping[str, Any],
        columns: Mapping[str, str],
        known: tuple[Evaluations, Mapping[str, AnyArray]] | None = None,
    ) -> None:
        """Lay out a store; `columns` are the architecture columns with their SQL types, `known` its first rows with theirs."""
        genes = ", ".join(f"{GENE}{gene} INTEGER NOT NULL" for gene in self.genes)
        described = "".join(f", {_quoted(name)} {kind}" for name, kind in columns.items())
        values = "".join(
            f", {_quoted(name)} REAL"
            for name in (*self.metrics, *(f"violation_{budget.metric}" for budget in self.budgets))
        )
        with explained(self.path), self.connection:
            self.connection.execute("BEGIN")
            self.connection.execute(
                'CREATE TABLE evaluations ("index" INTEGER PRIMARY KEY, batch INTEGER NOT NULL, key INTEGER NOT NULL UNIQUE, '
                f"state TEXT NOT NULL, reason TEXT NOT NULL, {genes}{described}{values})"
            )
            self.connection.execute(
                "CREATE TABLE batches (start INTEGER PRIMARY KEY, batch INTEGER, rows INTEGER, asked INTEGER, "
                "strategy_s REAL, objectives_s REAL, digest TEXT NOT NULL)"
            )
            self.connection.execute(
                'CREATE TABLE retried ("index" INTEGER PRIMARY KEY, reason TEXT NOT NULL, digest TEXT NOT NULL'
                + "".join(f", {_quoted(name)} REAL" for name in self.metrics)
                + ")"
            )
            self.connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            content = [("layout", LAYOUT), *((name, json.dumps(value)) for name, value in meta.items())]
            self.connection.executemany(
                "INSERT INTO meta VALUES (?, ?)", [*content, ("digest", json.dumps(meta_digest(dict(content))))]
            )
            self.connection.execute(f"PRAGMA user_version = {LAYOUT}")
            if known is not None:
                self._insert(0, BatchRecord(KNOWN, 0, 0.0, 0.0), *known)

    def append(
        self,
        start: int,
        record: BatchRecord,
        evaluations: Evaluations,
        architectures: Architectures,
        further: Collection[str] = (),
    ) -> None:
        """Add a batch's new rows, whole or not at all, with the columns of their architectures, those `further` too; rows are numbered from `start`."""
        columns = architectures.columns(further)
        with explained(self.path), self.connection:
            self._insert(start, record, evaluations, columns)
            self.under_way.logged(evaluations.keys.tolist())

    def _insert(
        self, start: int, record: BatchRecord, evaluations: Evaluations, columns: Mapping[str, AnyArray]
    ) -> None:
        n = len(evaluations)
        reasons = evaluations.reasons or ("",) * n
        rows = zip(
            range(start, start + n),
            [record.batch] * n,
            evaluations.keys.tolist(),
            ["failed" if reason else "ok" for reason in reasons],
            reasons,
            *(column.tolist() for column in evaluations.genotypes.T),
            *(column.tolist() for column in columns.values()),
            *(evaluations.metrics[name].tolist() for name in self.metrics),
            *(column.tolist() for column in evaluations.violations.T),
            strict=True,
        )
        places = ", ".join("?" * (5 + len(self.genes) + len(columns) + len(self.metrics) + len(self.budgets)))
        self.connection.executemany(f"INSERT INTO evaluations VALUES ({places})", rows)
        self.connection.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)",
            (start, record.batch, n, record.asked, record.strategy_s, record.objectives_s, digest(evaluations)),
        )

    def read(self) -> Recorded:
        """Every evaluation in order.

        Raises:
            PlasError: rows are missing or out of order.
        """
        wanted = [
            '"index"',
            "batch",
            "key",
            "reason",
            *(f"{GENE}{gene}" for gene in self.genes),
            *map(_quoted, self.metrics),
        ]
        with explained(self.path), self._snapshot():
            n = int(self.connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])
            cursor = self.connection.execute(f'SELECT {", ".join(wanted)} FROM evaluations ORDER BY "index"')
            batches, keys = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
            genotypes: AnyArray = np.zeros((n, len(self.genes)), dtype=np.int32)
            values, reasons, start = np.zeros((len(self.metrics), n)), dict[int, str](), 0
            while rows := cursor.fetchmany(BLOCK):
                columns, part = list(zip(*rows, strict=True)), slice(start, start + len(rows))
                if columns[0] != tuple(range(part.start, part.stop)):
                    raise PlasError(
                        f"{self.path}: expected rows numbered from {part.start}, got a gap; the store was altered, start a new run"
                    )
                batches[part], keys[part] = columns[1], columns[2]
                reasons.update((start + i, reason) for i, reason in enumerate(columns[3]) if reason)
                genotypes[part] = np.array(columns[4 : 4 + len(self.genes)]).T
                values[:, part] = [_floats(column) for column in columns[4 + len(self.genes) :]]
                start = part.stop
            told = tuple(reasons.get(row, "") for row in range(n)) if reasons else None
            metrics = dict(zip(self.metrics, values, strict=True))
            found = Evaluations(genotypes, keys, metrics, told, self.objectives, self.budgets)
            self._verify(found, batches)
            return Recorded(found, batches, self.retried(found))

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Several reads of one state, while another process may be writing."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.rollback()

    def batches(self) -> IntArray:
        """Batch of every evaluation, in order, (n,)."""
        with explained(self.path):
            parts = self.connection.execute("SELECT batch, rows FROM batches ORDER BY start").fetchall()
        numbers, counts = np.array(parts, dtype=np.int64).reshape(-1, 2).T
        return np.repeat(numbers, counts)

    def retry(self, rows: IntArray, found: Evaluations) -> None:
        """Record results of failed rows that were evaluated again; the log of evaluations stays as it is."""
        places = ", ".join("?" * (3 + len(self.metrics)))
        content = [
            (
                row,
                (found.reasons or ("",) * len(found))[i],
                digest(found[slice(i, i + 1)]),
                *(float(found.metrics[name][i]) for name in self.metrics),
            )
            for i, row in enumerate(rows.tolist())
        ]
        with explained(self.path), self.connection:
            self.connection.executemany(f"INSERT OR REPLACE INTO retried VALUES ({places})", content)
            self.under_way.logged(found.keys.tolist())

    def retried(self, told: Evaluations) -> tuple[IntArray, Evaluations]:
        """Rows that were evaluated again, and what they gave."""
        with explained(self.path):
            rows = self.connection.execute('SELECT * FROM retried ORDER BY "index"').fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * (3 + len(self.metrics))
        indices = np.array(columns[0], dtype=np.int64)
        if len(indices) and indices[-1] >= len(told):
            raise PlasError(
                f"{self.path}: a retried row {indices[-1]} was never evaluated; the store was altered, start a new run"
            )
        metrics = {name: _floats(column) for name, column in zip(self.metrics, columns[3:], strict=True)}
        found = replace(told[indices], metrics=metrics, reasons=tuple(columns[1]))
        for i, written in enumerate(columns[2]):
            if digest(found[slice(i, i + 1)]) != written:
                raise PlasError(
                    f"{self.path}: retried row {indices[i]} is not what was written; the store is damaged, start a new run"
                )
        return indices, found

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep plain content that helps to continue, with its hash, in place of what the name held; no result depends on it."""
        text = json.dumps(content)
        with explained(self.path), self.connection:
            self.connection.execute(NOTES)
            self.connection.execute(
                "INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (name, text, meta_digest({name: text}))
            )

    def kept(self, name: str) -> dict[str, Any] | None:
        """The value stored under a name; None where there is none, or where it was changed since."""
        with explained(self.path):
            tables = self.connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
            found = "SELECT text, digest FROM notes WHERE name = ?"
            row = self.connection.execute(found, (name,)).fetchone() if tables else None
        if row is None or row[1] != meta_digest({name: row[0]}):
            return None
        return dict(outside.parsed(row[0], exact=True))

    def check(self) -> None:
        """Refuse a file whose structure is damaged before anything is added to it."""
        with explained(self.path):
            state = self.connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if state != "ok":
            raise PlasError(
                f"{self.path}: expected an intact store, got {state}; it cannot be trusted, start a new run"
            )

    def _verify(self, found: Evaluations, batches: IntArray) -> None:
        """Every batch must still hash to what was written: a flipped bit is never taken for a result."""
        with explained(self.path):
            parts = self.connection.execute("SELECT start, rows, digest, batch FROM batches ORDER BY start").fetchall()
        covered = 0
        for start, rows, written, batch in parts:
            part = slice(start, start + rows)
            if start != covered or digest(found[part]) != written or (batches[part] != batch).any():
                raise PlasError(
                    f"{self.path}: rows {start} to {start + rows - 1} are not what was written; the store is damaged, start a new run"
                )
            covered += rows
        if covered != len(found):
            raise PlasError(
                f"{self.path}: expected {covered} rows, got {len(found)}; the store was altered, start a new run"
            )

    def seconds(self) -> tuple[float, float]:
        """Seconds of strategy and of objectives over all batches, interruptions included."""
        with explained(self.path):
            strategy, objectives = self.connection.execute(
                "SELECT TOTAL(strategy_s), TOTAL(objectives_s) FROM batches"
            ).fetchone()
        return float(strategy), float(objectives)

    def spent(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Per logged block, in order: its rows, seconds of strategy, seconds of objectives; each (blocks,)."""
        with explained(self.path):
            parts = self.connection.execute(
                "SELECT rows, strategy_s, objectives_s FROM batches ORDER BY start"
            ).fetchall()
        rows, strategy, objectives = np.array(parts, dtype=np.float64).reshape(-1, 3).T
        return rows.astype(np.int64), strategy, objectives

    def close(self) -> None:
        """Fold the write-ahead log in and close."""
        with explained(self.path):
            self.connection.close()


def begun(path: Path) -> bool:
    """Whether a store was laid out; one that was killed before holds nothing."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    connection = connect(path, readonly=True)
    with explained(path):
        found = connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
        connection.close()
    return bool(found)


def read_meta(path: Path) -> dict[str, Any]:
    """The description that a store was created with."""
    connection = connect(path, readonly=True)
    with explained(path):
        written = dict(connection.execute("SELECT name, value FROM meta"))
        connection.close()
        if written.pop("digest", "") != json.dumps(meta_digest(written)):
            raise PlasError(f"{path}: its description is not what was written; the store is damaged, start a new run")
        return {
            name: value if name == "layout" else outside.parsed(value, exact=True) for name, value in written.items()
        }


def _floats(column: tuple[Any, ...]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in column], dtype=np.float64)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
