"""A search without batches: an idle worker gets the next design, the strategy receives each answer as it arrives."""

import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.further_tables import Ask
from nas.record.store import Recorded, RunStore
from nas.search.delegated import Delegated
from nas.search.loop import Search
from nas.search.strategy import Strategy
from nas.search.strategy_calls import ask_strategy, finished_of, tell_strategy
from search_spaces.arrays import IntArray


class AsynchronousSearch(Search):
    """Asks whenever a worker would be idle; rows are logged in the order in which they arrive, each group a batch.

    What was asked is noted before anybody works on it. A resumed run asks and tells in the recorded order, which must lead to
    the recorded designs, then sends again what was in flight.
    """

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        store: RunStore,
        recorded: Recorded | None,
        delegated: Delegated,
        shown: Callable[[Evaluations], Evaluations],
        known: Evaluations | None = None,
    ) -> None:
        super().__init__(problem, strategy, store, recorded, evaluate=delegated, shown=shown, known=known)
        self.delegated = delegated
        self.asks: deque[Ask] = deque(store.under_way.asks() if recorded else [])
        self.logged: set[int] = set(recorded.evaluations.keys.tolist() if recorded else [])
        self.asked = 0
        self.pending: dict[int, IntArray] = {}  # genotypes by key, in the order they were asked for
        self.unlooked: list[int] = []  # keys of those that may be complete from the start

    def _restore(self) -> None:
        """A replay cannot be shortened: a strategy's state depends on what it was waiting for."""

    def _step(self, remaining: int | None) -> str | None:
        """Ask for what idle workers can begin with, then take what arrives; a reason when the search ends here."""
        while self.asks and self.asks[0].batch == self.progress.batch:
            self._replay_ask(self.asks.popleft())
        ended = None if self._left() else self._ask(remaining)
        if not self.pending:
            return self._unreplayed() or ended
        start = time.perf_counter()
        keys = self._replayed() if self._left() else self._arrived()
        self._spent("objectives", start)
        for key in keys:
            del self.pending[key]
        self.progress.batch += 1
        start = time.perf_counter()
        tell_strategy(
            self.strategy, self.shown(self.archive.rows(self.archive.index.rows(np.array(keys, dtype=np.int64))))
        )
        self._spent("strategy", start)
        return "space exhausted" if len(self.archive) == self.problem.space.size else None

    def _ask(self, remaining: int | None) -> str | None:
        """Fill up what workers have before them; why nothing more comes, if the strategy says so."""
        while (room := self._room(remaining)) > 0:
            genotypes, keys = self._proposed(room)
            wanted = None if remaining is None else remaining - len(self.pending)
            genotypes, keys = genotypes[:wanted], keys[:wanted]
            self.store.under_way.ask(self.asked, Ask(self.progress.batch, room, tuple(keys)))
            self._send(genotypes, keys)
            if not keys:
                return finished_of(self.strategy) or "nothing left to ask"
        return None

    def _room(self, remaining: int | None) -> int:
        """Designs that workers can begin with now, and those before them, so that none waits for the driver."""
        pool = self.delegated.pool
        room = pool.at_once + pool.spare - len(self.pending)
        return room if remaining is None else min(room, remaining - len(self.pending))

    def _proposed(self, at_most: int) -> tuple[IntArray, list[int]]:
        """New designs of an ask, each once, (k, g), and their keys; none where the strategy has none, or only known ones."""
        start, space = time.perf_counter(), self.problem.space
        genotypes = space.repair(ask_strategy(self.strategy, at_most, len(space.gene_sizes)))
        keys = space.keys(genotypes)
        first: dict[int, int] = {}
        for row, key in enumerate(keys.tolist()):
            if key not in self.pending:
                first.setdefault(key, row)
        rows = np.array(list(first.values()), dtype=np.int64)
        rows = rows[self.archive.index.rows(keys[rows]) < 0]
        self.progress.repeats += len(genotypes) - len(rows)
        self._spent("strategy", start)
        return genotypes[rows], keys[rows].tolist()

    def _replay_ask(self, ask: Ask) -> None:
        """One recorded ask, which must propose what it proposed then."""
        genotypes, keys = self._proposed(ask.at_most)
        wanted = len(ask.keys)
        if tuple(keys[:wanted]) != ask.keys:
            raise self._mismatch(self.asked, f"architectures {keys[:wanted]}", f"{list(ask.keys)} recorded")
        self._send(genotypes[:wanted], keys[:wanted])

    def _send(self, genotypes: IntArray, keys: Sequence[int]) -> None:
        """Genotypes that are now waited for; what the log has answers for is not sent to anybody."""
        self.asked += 1
        self.pending.update(zip(keys, genotypes, strict=True))
        self.unlooked += keys
        unknown = [row for row, key in enumerate(keys) if key not in self.logged]
        self.delegated.expect(genotypes[unknown])

    def _replayed(self) -> list[int]:
        """The next batch of the log."""
        assert self.recorded is not None
        start = self.progress.replayed
        count = int((self.recorded.batches[start:] == self.progress.batch).sum())
        part = self.recorded.evaluations[slice(start, start + count)]
        keys: list[int] = part.keys.tolist()
        if not keys or any(key not in self.pending for key in keys):
            raise self._mismatch(0, f"{len(self.pending)} architectures asked for", f"{keys} recorded as arrived")
        self._take(part)
        return keys

    def _arrived(self) -> list[int]:
        """Wait until designs are complete, and log them in the order of their proposal."""
        start = time.perf_counter()
        looked, self.unlooked = self.unlooked, []
        while not (keys := self._complete(looked)):
            looked = [key for key, _ in self.delegated.receive()]
        found = self.evaluate(np.stack([self.pending[key] for key in keys]))
        self._log(found, len(keys), time.perf_counter() - start)
        return keys

    def _complete(self, keys: Sequence[int]) -> list[int]:
        """Pending designs that are complete, in the order of their proposal; a single one is looked up directly."""
        found = {key for key in keys if key in self.pending and self.delegated.complete(key)}
        return list(found) if len(found) < 2 else [key for key in self.pending if key in found]
