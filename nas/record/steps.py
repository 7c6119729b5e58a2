"""Fidelity steps in a run's store: every design that ended one, and whether it went on."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

from nas.record.database import explained, meta_digest
from objectives import outside

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
        rows = [(*_row(step), _digest(step)) for step in steps]
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
        return [step for step, written in read if _digest(step) == written]


def _step(
    key: int, fidelity: float, value: float, point: str, within: int, place: int, designs: int, goes_on: int
) -> Step:
    return Step(key, fidelity, value, tuple(outside.parsed(point)), bool(within), place, designs, bool(goes_on))


def _row(step: Step) -> tuple[int | float | str, ...]:
    return (
        *(step.key, step.fidelity, step.value, json.dumps(step.point)),
        *(int(step.within), step.place, step.designs, int(step.goes_on)),
    )


def _digest(step: Step) -> str:
    return meta_digest({str(place): repr(part) for place, part in enumerate(astuple(step))})
