"""A store's SQLite file: opened so that no file of others runs anything, its errors in one line, its content hashed."""

import hashlib
import itertools
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nas.errors import PlasError, UsageError
from nas.files.own_files import refuse_links
from nas.problem.evaluations import Evaluations

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
        connection = sqlite3.connect(path)
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
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            raise PlasError(
                f"{path}: the disk is full or failing ({text}); free some space and continue with --resume"
            ) from None
        if "readonly" in text or "unable to open" in text:
            raise UsageError(f"{path}: expected a writable folder, got {text}; choose another with --out") from None
        if "locked" in text:
            raise UsageError(f"{path}: expected a free store, got one in use; wait for the other process") from None
        raise PlasError(
            f"{path}: expected an intact store, got {text}; it cannot be trusted, start a new run"
        ) from None
