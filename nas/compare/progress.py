"""A comparison in progress, read from its folder: which of its runs are finished, and how many evaluations there are."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas.answer.progress import manifest_of
from nas.errors import PlasError
from nas.files import yaml_source
from nas.record.database import connect, explained
from nas.record.store import FILE

PLAN, REPORT = "comparison.yaml", "report.md"


@dataclass(frozen=True)
class ComparisonProgress:
    """Where a comparison stands: its runs by state, evaluations over all, finished runs of each strategy."""

    comparison: str
    state: str
    runs: int
    expected: int | None
    finished: int
    failed: int
    evaluations: int
    strategies: dict[str, int]

    @property
    def going_on(self) -> bool:
        """Whether more may come."""
        return self.state == "running"

    def lines(self) -> list[str]:
        """Lines for a reader, one per subject."""
        of = f" of {self.expected:,}" if self.expected is not None else ""
        counts = ", ".join(f"{name} {count}" for name, count in self.strategies.items()) or "none"
        return [
            f"{self.comparison}: comparison, {self.state}",
            f"{self.finished:,}{of} runs finished, {self.runs - self.finished:,} begun, {self.failed:,} failed, "
            f"{self.evaluations:,} architectures",
            f"finished runs of each strategy: {counts}",
        ]

    def json(self) -> dict[str, Any]:
        """The same for a program."""
        return asdict(self)


class ComparisonFollower:
    """Looks at a comparison again and again; a finished run is counted once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settled: dict[tuple[Path, float], int] = {}

    def look(self) -> ComparisonProgress:
        """The comparison as it stands."""
        places = sorted(place for place in (self.path / "cells").glob("*/*/*") if place.is_dir())
        states = {place: manifest_of(place)["state"] for place in places}
        strategies: dict[str, int] = {}
        for place, state in states.items():
            strategies[place.parent.name] = strategies.get(place.parent.name, 0) + (state == "finished")
        finished = sum(state == "finished" for state in states.values())
        return ComparisonProgress(
            str(self.path),
            "finished" if self._reported(places) and finished == len(places) else "running",
            len(places),
            self._expected(),
            finished,
            sum(state == "failed" for state in states.values()),
            sum(self._counted(place, state) for place, state in states.items()),
            strategies,
        )

    def _reported(self, places: list[Path]) -> bool:
        """Whether the report was written after the last run ended."""
        report = self.path / REPORT
        written = [place.stat().st_mtime for place in places]
        return report.is_file() and report.stat().st_mtime >= max(written, default=0.0)

    def _expected(self) -> int | None:
        """Runs that the plan asks for; None where it does not say."""
        try:
            plan = yaml_source.read(self.path / PLAN, own=True)[0]
            return len(plan["studies"]) * len(plan["algos"]) * int(plan["seeds"])
        except (PlasError, OSError, KeyError, TypeError, ValueError):
            return None

    def _counted(self, place: Path, state: str) -> int:
        """Evaluations in a run's store; 0 where it is not laid out yet."""
        store = place / FILE
        if not store.is_file():
            return 0
        stamp = (place, store.stat().st_mtime)
        if stamp not in self.settled:
            try:
                count = rows_in(store)
            except PlasError:
                return 0
            if state != "finished":
                return count
            self.settled[stamp] = count
        return self.settled[stamp]


def rows_in(store: Path) -> int:
    """Rows of a run's store, nothing else of it read.

    Raises:
        PlasError: it is none, or damaged.
    """
    connection = connect(store, readonly=True)
    try:
        with explained(store):
            return int(connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])
    finally:
        connection.close()
