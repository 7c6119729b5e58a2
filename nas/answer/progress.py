"""A run in progress, read from its folder: how far it is, how fast, and the best so far. Nothing is locked or written."""

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from nas.errors import PlasError
from nas.files.tables import write_json
from nas.problem.evaluations import non_dominated, rounded
from nas.problem.picks import PickRule
from nas.problem.problem import UNCOVERED
from nas.problem.wording import in_words
from nas.record.database import explained
from nas.record.folder import OpenRun, current, open_run
from nas.record.store import BLOCK, FILE, KNOWN
from nas.terminal.console import duration
from nas.terminal.doors import command
from objectives import outside
from objectives.display_text import in_a_command
from objectives.loss_law.law import Law, origin_line
from search_spaces.arrays import FloatArray
from search_spaces.space import SearchSpace
from search_spaces.specification import FURTHER_AXES, OF_HEADS

STATES = ("running", "finished", "interrupted", "failed")
SILENT_S = 60.0
SHAPE = ("depth", "width", "n_experts", "top_k", "expert_ffn_ratio", "n_kv_heads")
OF_LAYERS = ("n_local", "window", "n_kv_shared", "n_linear", "n_conv")
WHERE_SEARCHED = (*OF_LAYERS, *OF_HEADS, *FURTHER_AXES)
RANKS = PickRule(None).deciding  # of two designs the one with less is better
LARGEST = 1_000_000  # bytes of a manifest.json that is one


@dataclass(frozen=True)
class Progress:
    """Where a run stands: counts, evaluations per second, seconds left and since the last one, the best within budgets."""

    run: str
    state: str
    algo: str
    seed: int
    evaluations: int
    limit: int | None
    failed: int
    not_covered: int
    rate_per_s: float | None
    left_s: float | None
    silent_s: float
    frontier: int
    best: dict[str, float | str] | None
    budgets: dict[str, float]
    stop_reason: str | None
    law: str = ""
    dashboard: str = ""

    @property
    def going_on(self) -> bool:
        """Whether more may come."""
        return self.state == "running"

    def lines(self) -> list[str]:
        """Lines for a reader, one per subject."""
        state = self.state
        if self.going_on and self.evaluations == self.limit:
            state += ", all evaluated, writing the answer"
        elif self.going_on:
            state += f", last evaluation {duration(self.silent_s)} ago"
            if self.silent_s > SILENT_S:
                state += f" (killed? {command('run')} --resume {in_a_command(self.run)} goes on)"
        elif self.stop_reason:
            state += f", {self.stop_reason}"
        seen = f"dashboard of its cluster: {self.dashboard}" if self.dashboard and self.going_on else ""
        head = f"{self.run}: {self.algo}, seed {self.seed}, {state}"
        return [line for line in (head, self.law, self._counted(), self._best(), seen) if line]

    def _counted(self) -> str:
        of = "" if self.limit is None else f" of {self.limit:,}"
        rate = "" if not self.rate_per_s else f", {self.rate_per_s:,.0f}/s"
        uncovered = f", {self.not_covered:,} not covered by the law" if self.not_covered else ""
        left = "" if self.left_s is None else f", {duration(self.left_s)} left"
        return f"{self.evaluations:,}{of} architectures{rate}{left}, {self.failed:,} failed{uncovered}"

    def _best(self) -> str:
        within = ", ".join(f"{metric} <= {limit:g}" for metric, limit in self.budgets.items()) or "no budget"
        if self.best is None:
            return f"nothing feasible yet within {within}"
        shown = {name: value for name, value in self.best.items() if name != "index"}
        values = ", ".join(
            f"{name} {value:.5g}{' nats' * (name == 'loss')}"
            for name, value in shown.items()
            if name not in (*SHAPE, *WHERE_SEARCHED)
        )
        shape = ", ".join(f"{in_words(n)} {_short(shown[n])}" for n in (*SHAPE, *WHERE_SEARCHED) if n in shown)
        return f"frontier {self.frontier:,}; best within {within}: {values} (index {self.best['index']:g}: {shape})"

    def json(self) -> dict[str, Any]:
        """The same for a program."""
        return asdict(self)


class RunFollower:
    """Looks at a run again and again; each look reads only the rows that are new."""

    def __init__(self, path: Path) -> None:
        self.path, self.read, self.known, self.failed, self.uncovered = path, 0, 0, 0, 0
        self.values: FloatArray | None = None
        self.best: dict[str, float | str] | None = None
        self.least: tuple[float, ...] = (np.inf,)
        self.seen: tuple[float, int] | None = None

    def look(self) -> Progress:
        """The run as it stands.

        Raises:
            UsageError: no run folder.
            PlasError: a damaged one.
        """
        run = open_run(self.path)
        try:
            with explained(self.path / FILE):
                self._take(run)
                spent = run.store.seconds()
                mended = run.store.connection.execute("SELECT COUNT(*) FROM retried WHERE reason = ''").fetchone()[0]
        finally:
            run.store.close()
        return self._progress(run, sum(spent), int(mended))

    def _take(self, run: OpenRun) -> None:
        """Add the rows that are new to the frontier so far."""
        limits, shape = [f"violation_{metric}" for metric in run.resolved["budgets"]], shape_of(run)
        names = [*run.resolved["objectives"], *RANKS, *shape, *limits]
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        state = f"CASE WHEN reason LIKE '{UNCOVERED}%' THEN 'not covered' ELSE state END"
        asked = f'SELECT "index", {state}, {columns} FROM evaluations WHERE "index" >= ? ORDER BY "index"'
        cursor = run.store.connection.execute(asked, (self.read,))
        while rows := cursor.fetchmany(BLOCK):
            self._take_block(rows, len(limits), run.resolved["objectives"], shape)
        before = run.store.connection.execute("SELECT TOTAL(rows) FROM batches WHERE batch = ?", (KNOWN,))
        self.known = int(before.fetchone()[0])

    def _take_block(
        self, rows: Sequence[tuple[Any, ...]], limits: int, objectives: list[str], shape: tuple[str, ...]
    ) -> None:
        """Merge rows of index, state, objectives, ranks, shape and violations of so many limits into the frontier and the best.

        The values of an architecture stay as they are stored, some are words.
        """
        states = [row[1] for row in rows]
        self.read += len(rows)
        self.failed, self.uncovered = self.failed + states.count("failed"), self.uncovered + states.count("not covered")
        fit, m = [row for row in rows if row[1] == "ok"], len(objectives)
        shapes = slice(2 + m + len(RANKS), 2 + m + len(RANKS) + len(shape))
        beyond = _numbers(fit, slice(shapes.stop, shapes.stop + limits))
        within = [fit[i] for i in np.flatnonzero((beyond <= 0.0).all(axis=1))]
        if not within:
            return
        numbers = _numbers(within, slice(2, shapes.start))
        values, ranks = numbers[:, :m], rounded(numbers[:, m:])
        known = values if self.values is None else np.concatenate([self.values, values])
        self.values = known[non_dominated(known)]
        place = np.lexsort(tuple(ranks.T[::-1]))[0]
        if (least := tuple(ranks[place].tolist())) < self.least:
            self.least = least
            row = (within[place][0], *numbers[place, : m + 1].tolist(), *within[place][shapes])
            self.best = dict(zip(["index", *objectives, "loss", *shape], row, strict=True))

    def _progress(self, run: OpenRun, spent: float, mended: int) -> Progress:
        manifest = manifest_of(self.path)
        asked = current(run)["evaluations"]
        limit = manifest.get("limit", asked)
        limit = limit if isinstance(limit, int) else None
        rate = self._rate(spent) if manifest["state"] == "running" else None
        evaluated = self.read - self.known
        left = None if not rate or limit is None else max(limit - evaluated, 0) / rate
        reason = manifest.get("stop_reason")
        return Progress(
            str(self.path),
            manifest["state"],
            str(run.resolved["algo"]),
            int(run.resolved["seed"]),
            evaluated,
            limit,
            max(self.failed - mended, 0),
            self.uncovered,
            rate,
            left,
            silence(self.path / FILE),
            0 if self.values is None else len(self.values),
            self.best,
            {str(metric): float(limit) for metric, limit in run.resolved["budgets"].items()},
            reason if isinstance(reason, str) else None,
            origin_line(Law.model_validate(run.resolved["law"])),
            dashboard[:200] if isinstance(dashboard := manifest.get("dashboard"), str) else "",
        )

    def _rate(self, spent: float) -> float | None:
        """Evaluations per second since the look before; at first those of the whole run's working time."""
        now, before = time.monotonic(), self.seen
        self.seen = (now, self.read)
        if before is None:
            return (self.read - self.known) / spent if spent > 0 else None
        return (self.read - before[1]) / max(now - before[0], 1e-9)


def _numbers(rows: Sequence[tuple[Any, ...]], columns: slice) -> FloatArray:
    """Columns of numbers of stored rows, (n, k), NaN where one is empty."""
    table = [[np.nan if value is None else value for value in row[columns]] for row in rows]
    return np.array(table, dtype=np.float64).reshape(len(rows), -1 if rows else 0)


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def shape_of(run: OpenRun) -> tuple[str, ...]:
    """The columns of an architecture that are shown; layers, heads and settings where the space has axes of them."""
    space = SearchSpace.from_mapping(run.resolved["space"])
    searched = {*space.genes, *space.mixes.names}
    return (*SHAPE, *(name for name in WHERE_SEARCHED if name in searched))


def manifest_of(path: Path) -> dict[str, Any]:
    """A run's manifest with a known state; a file that is none says that the run is only beginning."""
    with suppress(OSError, ValueError):
        content = outside.json_of(path / "manifest.json", LARGEST, own=True)
        if isinstance(content, dict) and content.get("state") in STATES:
            return content
    return {"state": "running"}


def silence(store: Path) -> float:
    """Seconds since a store was last written."""
    written = [place.stat().st_mtime for place in (store, store.with_name(f"{store.name}-wal")) if place.is_file()]
    return max(time.time() - max(written, default=time.time()), 0.0)


NAME = "progress.json"
EVERY_S = 2.0


def this_machine() -> str:
    """The name that distinguishes machines that share a folder."""
    return socket.gethostname()


class ProgressFile:
    """Keeps `progress.json` in the folder of a run that goes on here; it costs at most a fiftieth of the run's time."""

    def __init__(self, folder: Path) -> None:
        self.path, self.follower, self.due = folder / NAME, RunFollower(folder), time.monotonic() + EVERY_S

    def __call__(self) -> None:
        """Write where the run stands, when it is time."""
        began = time.monotonic()
        if began < self.due:
            return
        with suppress(PlasError):  # nobody's result depends on it
            write_json(self.path, self.follower.look().json())
        now = time.monotonic()
        self.due = now + max(EVERY_S, 50 * (now - began))

    def close(self) -> None:
        """Leave nothing: a run that does not go on is read from its store."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def going_on_elsewhere(folder: Path) -> bool:
    """Whether another machine works on a run, as its manifest says."""
    manifest = manifest_of(folder)
    return bool(manifest["state"] == "running" and manifest.get("host", this_machine()) != this_machine())


def read(folder: Path) -> Progress | None:
    """Content of the file of a run that goes on elsewhere; None where there is none, or it is none of ours."""
    place = folder / NAME
    try:
        content, written = outside.json_of(place, LARGEST, own=True), place.lstat().st_mtime
        found = TypeAdapter(Progress).validate_python(content, strict=False)
    except (OSError, ValueError, ValidationError):
        return None
    return replace(found, run=str(folder), silent_s=found.silent_s + max(time.time() - written, 0.0))


class Elsewhere:
    """Follows a run on another machine by its file, and by its store once that is written no more."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, RunFollower(folder)

    def look(self) -> Progress:
        """The run as it stood when it was last noted.

        Raises:
            PlasError: nothing is noted, or a damaged store.
        """
        if not going_on_elsewhere(self.folder):
            return self.store.look()
        found = read(self.folder)
        if found is None:
            raise PlasError(
                f"{self.folder}: expected {NAME}, which the machine that runs it writes, got none; look again"
            )
        return found
