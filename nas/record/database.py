"""A store's SQLite file: opened so that no file of others runs anything, its errors in one line, its content hashed."""

import hashlib
import itertools
import json
import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from nas.errors import PlasError, UsageError
from nas.files.own_files import refuse_links
from nas.problem.evaluations import Evaluations
from objectives import outside

LONGEST = 100_000_000  # bytes of one cell
TABLES = ("meta", "evaluations", "batches", "retried", "notes", "arrived", "asks", "steps")


def meta_digest(written: Mapping[str, str]) -> str:
    """Hash of texts by name."""
    return hashlib.blake2b(json.dumps(sorted(written.items())).encode(), digest_size=16).hexdigest()


def digest(rows: Evaluations) -> str:
    """Hash of what a batch's rows say: keys, genotypes, metrics and reasons; SQLite keeps no sign of zero."""
    content = hashlib.blake2b(np.column_stack([rows.keys, rows.genotypes]).astype("<i8").tobytes(), digest_size=16)
    values = np.array([*rows.metrics.values()]) + 0.0
    values[np.isnan(values)] = np.nan
    content.update(values.astype("<f8", copy=False).tobytes())
    content.update("\0".join(rows.reasons if rows.reasons and any(rows.reasons) else ()).encode())
    return content.hexdigest()


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """An open store file; read-only works in folders that cannot be written."""
    beside = (path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))
    refuse_links(path, *beside, writing=not readonly)
    with explained(path):
        if readonly:
            return _connect_readonly(path)
        connection = sqlite3.connect(path, check_same_thread=False)  # an optimizer's threads take turns
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _connect_readonly(path: Path) -> sqlite3.Connection:
    """Shares the log of a run that goes on; a finished run is opened without leaving files beside it."""
    going_on = path.with_name(path.name + "-wal").exists()
    address = path.resolve().as_uri()
    connection = sqlite3.connect(f"{address}?{'mode=ro' if going_on else 'immutable=1'}", uri=True)
    try:
        connection.execute("SELECT name FROM sqlite_master LIMIT 1")
    except sqlite3.OperationalError:
        connection.close()
        connection = sqlite3.connect(f"{address}?immutable=1", uri=True)
    _refuse_code(connection, path)
    return connection


def _refuse_code(connection: sqlite3.Connection, path: Path) -> None:
    """Tables hold rows; views, triggers, virtual tables and computed columns compute, without end if they like.

    Raises:
        PlasError: a trigger, or one of our names that is no table.
    """
    calls = itertools.count(1)
    most = 100 + path.stat().st_size // 1_000
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    connection.set_progress_handler(lambda: next(calls) > most, 1_000_000)
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        virtual = kind == "table" and re.match(r"\s*CREATE\s+VIRTUAL", str(sql), re.IGNORECASE)
        if kind == "trigger" or virtual or (kind == "view" and str(name).lower() in TABLES):
            connection.close()
            what = "virtual table" if virtual else kind
            raise PlasError(f"{path}: expected plain tables, got a {what} {str(name)!r:.60}; start a new run")
        if kind == "table" and re.search(r"\bAS\s*\(", str(sql), re.IGNORECASE):
            connection.close()
            raise PlasError(
                f"{path}: expected plain tables, got {str(name)!r:.60} with computed columns; start a new run"
            )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors as one clear line."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        raise PlasError(
            f"{path}: expected an intact store, got {error}; it cannot be trusted, start a new run"
        ) from None
    except sqlite3.Error as error:
        raise _explained(path, error) from None


FAULTS: Mapping[int, tuple[type[PlasError], str]] = {
    **dict.fromkeys(
        (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
        (PlasError, "the disk is full or failing ({}); free some space and continue with --resume"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
        (UsageError, "expected a writable folder, got {}; choose another with --out"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        (UsageError, "expected a free store, got one in use; wait for the other process"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERRUPT),
        (PlasError, "expected an intact store, got {}; it cannot be trusted, start a new run"),
    ),
}  # by SQLite's code
FAILED = "expected to read and write it, got {}; what it holds is as it was: continue with --resume"


def _explained(path: Path, error: sqlite3.Error) -> PlasError:
    """What an error of SQLite says of a store; one of the calls to it, such as one after its end, says nothing of its content."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
        return UsageError(f"{path}: expected an open store, got {error}; open it again (resume)")
    kind, text = FAULTS.get((code or 0) & 0xFF, (PlasError, FAILED))
    return kind(f"{path}: {text.format(error)}")


Arrived = tuple[int, str, float, str]  # key of the architecture, metric, value, reason of failure
ARRIVED = (
    "CREATE TABLE IF NOT EXISTS arrived (key INTEGER NOT NULL, metric TEXT NOT NULL, value REAL, reason TEXT NOT NULL, "
    "digest TEXT NOT NULL, PRIMARY KEY (key, metric))"
)
ASKS = (
    "CREATE TABLE IF NOT EXISTS asks (number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, at_most INTEGER NOT NULL, "
    "keys TEXT NOT NULL, digest TEXT NOT NULL)"
)


@dataclass(frozen=True)
class Ask:
    """One ask of a strategy that does not wait for answers: batches told before, how many at most, new keys in order."""

    batch: int
    at_most: int
    keys: tuple[int, ...]


class UnderWay:
    """Two further tables of a store, laid out when something is first kept in them."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection
        self.keeping = False

    def arrive(self, results: Iterable[Arrived]) -> None:
        """Keep what workers found until it is logged: a killed driver pays for nothing twice."""
        rows = [
            (key, metric, value, reason, _digest(key, metric, value, reason)) for key, metric, value, reason in results
        ]
        with explained(self.path), self.connection:
            if not self.keeping:
                self.connection.execute(ARRIVED)
                self.keeping = True
            self.connection.executemany("INSERT OR REPLACE INTO arrived VALUES (?, ?, ?, ?, ?)", rows)

    def arrived(self) -> Mapping[tuple[int, str], tuple[float, str]]:
        """Value and reason by architecture and metric; a row that is not what was written is as good as none."""
        with explained(self.path):
            self.keeping = self._there("arrived")
            rows = self.connection.execute("SELECT * FROM arrived").fetchall() if self.keeping else []
        read = [(key, metric, math.nan if value is None else value, *rest) for key, metric, value, *rest in rows]
        return {
            (key, metric): (value, reason)
            for key, metric, value, reason, written in read
            if _digest(key, metric, value, reason) == written
        }

    def logged(self, keys: Iterable[int]) -> None:
        """Forget what is in the log now; within the transaction that put it there."""
        if self.keeping:
            self.connection.executemany("DELETE FROM arrived WHERE key = ?", ((key,) for key in keys))

    def forget_failures(self) -> None:
        """Forget what failed, which is to be tried again."""
        with explained(self.path), self.connection:
            if self._there("arrived"):
                self.connection.execute("DELETE FROM arrived WHERE reason != ''")

    def ask(self, number: int, ask: Ask) -> None:
        """Record an ask before a worker takes it."""
        keys = json.dumps(ask.keys)
        with explained(self.path), self.connection:
            if number == 0:
                self.connection.execute(ASKS)
            row = (number, ask.batch, ask.at_most, keys, _digest(number, ask.batch, ask.at_most, keys))
            self.connection.execute("INSERT INTO asks VALUES (?, ?, ?, ?, ?)", row)

    def asks(self) -> list[Ask]:
        """Every ask in order, up to the first that is not what was written."""
        found: list[Ask] = []
        with explained(self.path):
            rows = (
                self.connection.execute("SELECT * FROM asks ORDER BY number").fetchall() if self._there("asks") else []
            )
            for number, batch, at_most, keys, written in rows:
                if number != len(found) or _digest(number, batch, at_most, keys) != written:
                    break
                found.append(Ask(batch, at_most, tuple(outside.parsed(keys))))
        return found

    def _there(self, table: str) -> bool:
        asked = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
        return bool(self.connection.execute(asked, (table,)).fetchone()[0])


def _digest(*parts: object) -> str:
    return meta_digest({str(place): repr(part) for place, part in enumerate(parts)})


STEPS = (
    "CREATE TABLE IF NOT EXISTS steps (number INTEGER PRIMARY KEY, key INTEGER NOT NULL, fidelity REAL NOT NULL, "
    "value REAL NOT NULL, point TEXT NOT NULL, within INTEGER NOT NULL, place INTEGER NOT NULL, designs INTEGER NOT NULL, "
    "goes_on INTEGER NOT NULL, digest TEXT NOT NULL, UNIQUE (key, fidelity))"
)


@dataclass(frozen=True)
class Step:
    """A design that ended a step: its metric's value there, and its place among the designs that had ended it by then.

    point: values of all objectives on their scales, (m,); within: whether it holds the budgets that could be told.
    """

    key: int
    fidelity: float
    value: float
    point: tuple[float, ...]
    within: bool
    place: int
    designs: int
    goes_on: bool


class Steps:
    """One further table of a store, laid out when a design first ends a step; rows in the order of their judgement."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection

    def add(self, steps: Iterable[Step]) -> None:
        """Keep steps; a design that is judged again, after a kill, has the later judgement."""
        rows = [(*_row(step), _steps_digest(step)) for step in steps]
        with explained(self.path), self.connection:
            self.connection.execute(STEPS)
            self.connection.executemany(
                "INSERT OR REPLACE INTO steps (key, fidelity, value, point, within, place, designs, goes_on, digest) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def read(self) -> list[Step]:
        """Every step in order; a row that is not what was written is as good as none."""
        with explained(self.path):
            found = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'steps'"
            there = self.connection.execute(found).fetchone()[0]
            ordered = (
                "SELECT key, fidelity, value, point, within, place, designs, goes_on, digest FROM steps ORDER BY number"
            )
            rows = self.connection.execute(ordered).fetchall() if there else []
            read = [(_step(*row[:-1]), row[-1]) for row in rows]
        return [step for step, written in read if _steps_digest(step) == written]


def _step(
    key: int, fidelity: float, value: float, point: str, within: int, place: int, designs: int, goes_on: int
) -> Step:
    return Step(key, fidelity, value, tuple(outside.parsed(point)), bool(within), place, designs, bool(goes_on))


def _row(step: Step) -> tuple[int | float | str, ...]:
    return (
        *(step.key, step.fidelity, step.value, json.dumps(step.point)),
        *(int(step.within), step.place, step.designs, int(step.goes_on)),
    )


def _steps_digest(step: Step) -> str:
    return meta_digest({str(place): repr(part) for place, part in enumerate(astuple(step))})
