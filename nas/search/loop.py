"""The loop between strategy and objectives: repairs, answers repeats, charges, logs, tells, stops."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

import numpy as np

from nas.errors import AllFailedError, UsageError
from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem, is_mute
from nas.record.store import KNOWN, STRATEGY, BatchRecord, Recorded, RunStore
from nas.search.archive import Archive, RunningFrontier
from nas.search.strategy import (
    Restorable,
    Strategy,
    ask_strategy,
    finished_of,
    refuse_silence,
    restored,
    state_of,
    tell_strategy,
)
from nas.search.worker_pool import Pace
from search_spaces.architectures import Architectures
from search_spaces.arrays import IntArray

STALLED_ASKS = 20
STALLED_ROWS = 500
TELLING = 10  # evaluations that all fail for one reason before a metric is taken to be broken
AHEAD = 4  # blocks that workers may have begun with when one of them is awaited


@dataclass
class Progress:
    """Progress of a search."""

    repeats: int = 0
    batch: int = 0
    replayed: int = 0
    stalled_asks: int = 0
    stalled_rows: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"strategy": 0.0, "objectives": 0.0, "store": 0.0})


@dataclass(frozen=True)
class Limits:
    """When a search stops: distinct evaluations, seconds of search, evaluations without progress, or none of them."""

    evaluations: int | None = None
    time_s: float | None = None
    stable: int | None = None


class Search:
    """One strategy on one problem, logged to a store.

    A recorded log is replayed first: the strategy must ask for the recorded architectures again,
    and is told the recorded values without calling an objective; a stored state shortens this. `evaluate` turns new genotypes
    into evaluations, and `expect` hears before which ones it will be given; `pace` cuts a batch into logged blocks; `shown` is
    what the strategy is told; `known` are results from before, the log's first rows, which nobody is charged for.
    """

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        store: RunStore,
        recorded: Recorded | None = None,
        *,
        evaluate: Callable[[IntArray], Evaluations] | None = None,
        expect: Callable[[IntArray], None] = lambda genotypes: None,
        pace: Pace | None = None,
        shown: Callable[[Evaluations], Evaluations] = lambda evaluations: evaluations,
        known: Evaluations | None = None,
    ) -> None:
        self.problem, self.strategy, self.store = problem, strategy, store
        self.archive, self.progress, self.recorded = Archive(problem), Progress(), recorded
        self.evaluate, self.expect, self.shown = evaluate or problem.evaluate, expect, shown
        self.own = evaluate is None
        self.known = recorded.known if recorded else known
        self.restorable = isinstance(strategy, Restorable)  # asked once: a protocol is slow to compare with
        self.front, self.pace = RunningFrontier(), pace
        self.report: Callable[[Search], None] = lambda search: None

    def run(self, limits: Limits, report: Callable[["Search"], None] | None = None) -> str:
        """Search until a limit; returns the reason for stopping.

        `report` sees every block of rows, evaluated or replayed, before the strategy does.

        Raises:
            AllFailedError: nothing but the same failure in the first evaluations; they are logged.
        """
        started, self.report = time.monotonic(), report or self.report
        self._restore()
        self._know()
        while True:
            remaining = None if limits.evaluations is None else limits.evaluations - self.charged
            if not self._left() and (limit := self._limit(limits, remaining, started)):
                return limit
            if ended := self._step(remaining):
                return ended

    @property
    def charged(self) -> int:
        """Distinct evaluations of this search: all but those that were known before."""
        return len(self.archive) - (0 if self.known is None else len(self.known))

    def _know(self) -> None:
        """Put known results first into the archive, as in the log."""
        if not self.known or len(self.archive):
            return
        self.progress.batch = KNOWN
        self._take(self.known)
        self.progress.batch = 0

    def _limit(self, limits: Limits, remaining: int | None, started: float) -> str:
        """The limit that is reached, if any."""
        if remaining is not None and remaining <= 0:
            return f"{limits.evaluations} distinct evaluations"
        if limits.time_s is not None and time.monotonic() - started >= limits.time_s:
            return f"time limit of {limits.time_s:g} s"
        if limits.stable is not None and min(self.charged, len(self.archive) - self._improved()) >= limits.stable:
            return f"stable: nothing new on the frontier in {limits.stable} evaluations"
        return ""

    def _improved(self) -> int:
        """Evaluations at the last change of the frontier; updated on access."""
        return self.front.update(self.archive)

    def _left(self) -> int:
        """Recorded rows that were not replayed yet."""
        return 0 if self.recorded is None else len(self.recorded.evaluations) - self.progress.replayed

    def _step(self, remaining: int | None) -> str | None:
        """One ask, its evaluations and its tell; a reason when the search ends here."""
        genotypes, keys, new = self._question(remaining)
        if len(genotypes) == 0:
            refuse_silence(self.strategy, self.archive)
            return self._unreplayed() or finished_of(self.strategy) or "nothing left to ask"
        complete = self._evaluate(genotypes[new], len(genotypes), remaining)
        self.progress.batch += 1
        if not complete:
            return None
        ended = self._answer(keys, len(new))
        if (
            self.restorable
            and isinstance(self.strategy, Restorable)
            and not self._left()
            and (remaining is None or len(genotypes) < remaining)
        ):
            start = time.perf_counter()
            self.store.keep(STRATEGY, {**self._counters(), "strategy": state_of(self.strategy)})
            self._spent("store", start)
        return ended

    def _question(self, remaining: int | None) -> tuple[IntArray, IntArray, IntArray]:
        """What a strategy that waits asks next: repaired genotypes (k, g), their keys (k,), and the rows that are new."""
        start, space = time.perf_counter(), self.problem.space
        at_most = space.size if remaining is None else max(remaining, 1)
        genotypes = space.repair(ask_strategy(self.strategy, at_most, len(space.gene_sizes)))
        self._spent("strategy", start)
        keys = space.keys(genotypes)
        new = self.archive.index.unknown(keys)
        self.progress.repeats += len(genotypes) - len(new)
        return genotypes, keys, new

    def _answer(self, keys: IntArray, new: int) -> str | None:
        """Tell a strategy that waits all rows of its last ask, so many of them new; a reason when the search ends here."""
        start = time.perf_counter()
        tell_strategy(self.strategy, self.shown(self.archive.rows(self.archive.index.rows(keys))))
        self._spent("strategy", start)
        return self._stalled(len(keys), new)

    def _counters(self) -> dict[str, int]:
        """The loop's own part of a stored state: rows evaluated and the loop's counters."""
        progress = self.progress
        counted = {name: getattr(progress, name) for name in ("batch", "repeats", "stalled_asks", "stalled_rows")}
        return {"rows": len(self.archive), **counted}

    def _restore(self) -> None:
        """Skip the replay of what a stored state covers; where it does not fit the log, everything is replayed."""
        saved = self.store.kept(STRATEGY) if self.recorded and isinstance(self.strategy, Restorable) else None
        if saved is None or self.recorded is None or not isinstance(self.strategy, Restorable):
            return
        if not self._counters().keys() <= saved.keys():  # written by another version
            return
        count, found = saved["rows"], self.recorded.evaluations
        if count > len(found) or not restored(self.strategy, saved["strategy"], self.shown(found[slice(0, count)])):
            return
        batches = self.recorded.batches[:count]
        for batch in np.unique(batches).tolist():
            self.progress.batch = batch
            self._take(found[np.flatnonzero(batches == batch)])
        self.progress = replace(self.progress, **{name: saved[name] for name in self._counters() if name != "rows"})

    def _stalled(self, asked: int, new: int) -> str | None:
        """Stop when the space is exhausted, or the last asks held nothing new."""
        progress = self.progress
        if len(self.archive) == self.problem.space.size:
            return "space exhausted"
        if new:
            progress.stalled_asks = progress.stalled_rows = 0
            return None
        progress.stalled_asks, progress.stalled_rows = progress.stalled_asks + 1, progress.stalled_rows + asked
        stalled = progress.stalled_asks >= STALLED_ASKS and progress.stalled_rows >= STALLED_ROWS
        return "stalled" if stalled else None

    def _evaluate(self, new: IntArray, asked: int, remaining: int | None) -> bool:
        """Replay what is recorded of a batch, evaluate and log what the limit allows; whether that was all."""
        known = self._replay(new)
        rest = new[known:]
        if remaining is not None:
            rest = rest[: max(remaining - known, 0)]
        done = 0
        while done < len(rest):
            size = len(rest) if self.pace is None else self.pace.size
            self.expect(rest[done : done + AHEAD * size])
            block = rest[done : done + size]  # a killed process loses no more than this
            start = time.perf_counter()
            priced = self.problem.priced(block) if self.own else None
            found = self.evaluate(block) if priced is None else self.problem.evaluate(block, assessment=priced)
            spent = self._spent("objectives", start)
            if self.pace is not None:
                self.pace.took(len(block), spent)
            self._log(found, asked, spent, None if priced is None else priced.architectures)
            done += len(block)
        return known + len(rest) == len(new)

    def _log(self, found: Evaluations, asked: int, spent: float, architectures: Architectures | None = None) -> None:
        """Log what was evaluated, in so many seconds; `architectures` where they are at hand."""
        start = time.perf_counter()
        if architectures is None:
            architectures = self.problem.architectures(found.genotypes)
        record = BatchRecord(self.progress.batch, asked, self.progress.seconds["strategy"] - self._logged, spent)
        self._logged = self.progress.seconds["strategy"]
        self._keep(record, found, architectures)
        self._spent("store", start)
        reason = self.archive.only_reason(self.charged) if self.charged >= TELLING else ""
        if reason and not is_mute(self.problem, self.archive.latest):
            raise AllFailedError(reason, self.charged)

    def _keep(self, record: BatchRecord, found: Evaluations, architectures: Architectures) -> None:
        """Log a block and add it to the archive."""
        self.store.append(len(self.archive), record, found, architectures, self.problem.space.further)
        self.archive.add(found)
        self.report(self)

    _logged = 0.0

    def _replay(self, new: IntArray) -> int:
        """Take a batch's recorded rows after checking that the strategy asked for them; how many."""
        if self.recorded is None or not self._left():
            return 0
        start, rows = self.progress.replayed, self.recorded.evaluations
        count = int((self.recorded.batches[start:] == self.progress.batch).sum())
        last = start + count == len(rows)
        if count > len(new) or (count < len(new) and not last):
            raise self._mismatch(min(count, len(new)), f"{len(new)} new architectures", f"{count} recorded")
        part = rows[slice(start, start + count)]
        differs = np.flatnonzero((part.genotypes != new[:count]).any(axis=1))
        if len(differs):
            i = int(differs[0])
            raise self._mismatch(i, f"genotype {new[i].tolist()}", f"{part.genotypes[i].tolist()} recorded")
        self._take(part)
        return count

    def _replayed(self, pending: Collection[int]) -> list[int]:
        """Take the next batch of the log, whose designs, by their keys, must have been asked for."""
        assert self.recorded is not None
        start = self.progress.replayed
        count = int((self.recorded.batches[start:] == self.progress.batch).sum())
        part = self.recorded.evaluations[slice(start, start + count)]
        keys: list[int] = part.keys.tolist()
        if not keys or any(key not in pending for key in keys):
            raise self._mismatch(0, f"{len(pending)} architectures asked for", f"{keys} recorded as arrived")
        self._take(part)
        return keys

    def _take(self, part: Evaluations) -> None:
        """Recorded rows of the current batch, as if they had just been evaluated."""
        self.archive.add(part)
        self.progress.replayed += len(part)
        self.report(self)

    def _mismatch(self, row: int, proposed: str, recorded: str) -> UsageError:
        return UsageError(
            f"resume: batch {self.progress.batch}, row {row}: expected {recorded}, got {proposed} from the strategy; "
            "code or library versions differ, start a new run"
        )

    def _unreplayed(self) -> str | None:
        if self._left():
            raise self._mismatch(0, "nothing", f"{self._left()} rows recorded")
        return None

    def _spent(self, what: str, start: float) -> float:
        spent = time.perf_counter() - start
        self.progress.seconds[what] += spent
        return spent
