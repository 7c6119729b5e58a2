"""Evaluations under way in a run's store: proposals, and results that are not in the log yet."""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nas.record.database import explained, meta_digest
from objectives import outside

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
