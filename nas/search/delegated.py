"""Genotypes whose own metrics workers evaluate: sent, kept as they arrive, judged step by step, put together again."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.record.database import Ask
from nas.record.store import BatchRecord, Recorded, RunStore
from nas.search.in_worker import Answer
from nas.search.loop import Limits, Search
from nas.search.strategy import Strategy, ask_strategy, finished_of, tell_strategy
from nas.search.successive_halving import SuccessiveHalving
from nas.search.worker_pool import Task, WorkerPool
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

Key = tuple[int, str]


class Delegated:
    """The user's metrics of a problem on workers; every other metric, and what is made of them, here.

    What arrives is in the store before anybody is told: it is asked for once, however often the driver is killed. Where a
    metric has fidelities, `halving` says who goes on from each; `logged` are the designs that the log holds already.
    """

    def __init__(self, problem: Problem, pool: WorkerPool, store: RunStore, logged: Collection[int] = ()) -> None:
        self.problem, self.pool, self.store = problem, pool, store
        self.answers: dict[Key, Answer] = dict(store.under_way.arrived())
        self.sent: set[Key] = set()
        self.screened: set[int] = set()
        self.begun: set[int] = set()  # designs that workers were let begin with, and that are not evaluated yet
        stepped = [metric for metric in problem.functions if metric.fidelities]
        together: dict[str, list[Objective]] = {}  # columns of one function, which are one task
        for metric in problem.functions:
            one = metric.place.removesuffix(f".{metric.column}") if metric.column else metric.name
            together.setdefault(one, []).append(metric)
        self.others = {first.name: tuple(others) for first, *others in together.values()}
        self.halving = SuccessiveHalving(stepped[0], store.steps, logged) if stepped else None
        self.designs: dict[int, Architectures] = {}  # under way, where some of them will go on

    def expect(self, genotypes: IntArray) -> None:
        """Let workers begin with genotypes, but for what is there, is under way, or is screened out by formulas."""
        self._begin(genotypes, self.problem.space.keys(genotypes).tolist())

    def _begin(self, genotypes: IntArray, given: Sequence[int]) -> None:
        """The same of genotypes with their keys."""
        new = [row for row, key in enumerate(given) if key not in self.begun]
        if not new:
            return
        keys, architectures = [given[row] for row in new], self.problem.architectures(genotypes[new])
        self.begun.update(keys)
        reasons = self.problem.screened(self.problem.assess(architectures)) or [""] * len(keys)
        self.screened.update(key for key, reason in zip(keys, reasons, strict=True) if reason)
        designs = {key: architectures[row : row + 1] for row, key in enumerate(keys) if key not in self.screened}
        if self.halving is not None:
            self.designs.update(designs)
        self._send(designs.items())

    def _send(self, designs: Iterable[tuple[int, Architectures]]) -> None:
        """Send the metrics that designs still lack to the workers."""
        tasks = [
            Task((key, metric.label), metric, design, self.problem.scenario, self.others[metric.name])
            for key, design in designs
            for metric in self._metrics(key)
            if metric.name in self.others
            and not ((key, metric.label) in self.sent or (key, metric.label) in self.answers)
        ]
        self.sent.update(task.key for task in tasks)
        self.pool.add(tasks)

    def _metrics(self, key: int) -> Sequence[Objective]:
        """The user's metrics, at the fidelity that a design has come to."""
        if self.halving is None:
            return self.problem.functions
        return [self.halving.at(key) if metric.fidelities else metric for metric in self.problem.functions]

    def receive(self) -> list[Key]:
        """Wait until something arrives, and keep it."""
        arrived = [
            ((task.key[0], metric.label), answer[i] if isinstance(answer, list) else answer)
            for task, answer in self.pool.arrivals()
            for i, metric in enumerate((task.metric, *task.others))
        ]
        self.store.under_way.arrive((key, metric, *answer) for (key, metric), answer in arrived)
        self.answers.update(arrived)
        self.sent.difference_update(key for key, _ in arrived)
        return [key for key, _ in arrived]

    def complete(self, key: int) -> bool:
        """Whether every metric of an architecture is there that will be; one that ended a step is judged by itself."""
        while key not in self.screened:
            if not all((key, metric.label) in self.answers for metric in self._metrics(key)):
                return False
            if not self._judged([key]):
                break
        return True

    def __call__(self, genotypes: IntArray) -> Evaluations:
        """Genotypes evaluated, once everything has arrived; those that end a step are judged together."""
        given = self.problem.space.keys(genotypes).tolist()
        self._begin(genotypes, given)
        keys = [key for key in given if key not in self.screened]
        going = keys
        while going:
            missing = {(key, metric.label) for key in going for metric in self._metrics(key)} - self.answers.keys()
            while missing:
                missing.difference_update(self.receive())
            going = self._judged(going)
        stopped = {} if self.halving is None else {key: self.halving.stopped.get(key, "") for key in keys}

        def found(metric: Objective, _: Architectures, __: Scenario) -> tuple[FloatArray, list[str]]:
            answers = [self.answers.pop((key, self._labels(key)[metric.name])) for key in keys]
            if metric.fidelities:
                answers = [(np.nan, stopped[k]) if stopped[k] else each for k, each in zip(keys, answers, strict=True)]
            return np.array([value for value, _ in answers]), [reason for _, reason in answers]

        evaluated = self.problem.evaluate(genotypes, call=found)
        self.begun.difference_update(keys)
        self._leave(keys)
        return evaluated

    def _labels(self, key: int) -> dict[str, str]:
        """Under what the answers of a design stand now, by metric."""
        return {metric.name: metric.label for metric in self._metrics(key)}

    def _judged(self, keys: Sequence[int]) -> list[int]:
        """Those of designs with answers that go on to a further step, which they are sent to."""
        if self.halving is None:
            return []
        ended = [
            key
            for key in keys
            if not (self.halving.last(key) or any(self.answers[key, m.label][1] for m in self._metrics(key)))
        ]
        if not ended:
            return []
        own = {
            metric.name: np.array([self.answers[key, self._labels(key)[metric.name]][0] for key in ended])
            for metric in self.problem.functions
        }
        going = self.halving.judge(ended, own[self.halving.metric.name], *self._placed(ended, own))
        self._send((key, self.designs[key]) for key in going)
        return going

    def _placed(self, keys: Sequence[int], own: dict[str, FloatArray]) -> tuple[FloatArray, BoolArray]:
        """Values of all objectives of designs on their scales, (n, m), and whether they hold the budgets that are known, (n,)."""
        assert self.halving is not None
        assessment = self.problem.assess(Architectures.concatenate([self.designs[key] for key in keys]))
        values = {name: own[name] if name in own else assessment[name] for name in self.problem.asked}
        told = [
            b for b in self.problem.budgets if b.metric != self.halving.metric.name
        ]  # which is another at a cheap fidelity
        within: BoolArray = np.ones(len(keys), dtype=bool)
        for budget in told:
            within &= budget.violation(values[budget.metric]) <= 0.0
        return np.stack([o.scaled(values[o.name]) for o in self.problem.objectives], axis=1), within

    def _leave(self, keys: Sequence[int]) -> None:
        """Forget designs that are evaluated, with what they answered on the way."""
        if self.halving is None:
            return
        for key in keys:
            self.halving.leave(key)
            self.designs.pop(key, None)
            for fidelity in self.halving.metric.fidelities:
                self.answers.pop((key, self.halving.metric.at(fidelity).label), None)


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
        keys = self._replayed(self.pending) if self._left() else self._arrived()
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


class ToldSearch(Search):
    """Designs that somebody else evaluates, in any order and grouping; asks and answers are logged before they count.

    A strategy that waits is told its last ask whole and in order, and so asks what it asks in `Search`; one that does not is told
    at once. A resumed search repeats the asks and answers of its log; what nobody answered is handed out again.
    """

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        store: RunStore,
        recorded: Recorded | None,
        shown: Callable[[Evaluations], Evaluations],
        known: Evaluations | None,
        limits: Limits,
        *,
        waits: bool,
    ) -> None:
        super().__init__(problem, strategy, store, recorded, shown=shown, known=known)
        self.limits, self.waits, self.started = limits, waits, time.monotonic()
        self.pending: dict[
            int, IntArray
        ] = {}  # genotypes by key that nobody has answered, in the order they were asked for
        self.out: set[int] = set()  # those of them that are handed out
        self.last: IntArray = np.zeros(0, dtype=np.int64)
        self.new, self.whole, self.asks, self.ended = 0, True, 0, ""
        asks = deque(store.under_way.asks() if recorded else [])
        self._know()
        while asks or self._left():
            while asks and asks[0].batch == self.progress.batch:
                self._ask(asks[0].at_most, asks.popleft())
            if not self._left():
                break
            self._answered(self._replayed(self.pending))

    def hand_out(self, n: int) -> IntArray:
        """At most n genotypes to evaluate, (k, g): none where the search has `ended`, or where answers must come first."""
        while (
            (room := n - len(self.pending) + len(self.out)) > 0 and not self.ended and not (self.waits and self.pending)
        ):
            left = None if self.limits.evaluations is None else self.limits.evaluations - self.charged
            self.ended = self._limit(self.limits, left, self.started)
            room = room if left is None else min(room, left - len(self.pending))
            if self.ended or room <= 0:
                break
            self._ask(room)
        keys = [key for key in self.pending if key not in self.out][:n]
        self.out.update(keys)
        space = self.problem.space
        return np.stack([self.pending[key] for key in keys]) if keys else space.genotypes(np.zeros(0, dtype=np.int64))

    def _ask(self, at_most: int, recorded: Ask | None = None) -> None:
        """One ask of the strategy, or one of the log, which must propose what it proposed then."""
        left = None if self.limits.evaluations is None else self.limits.evaluations - self.charged
        genotypes, self.last, unseen = self._question(left if self.waits else at_most)
        unseen = unseen[[int(key) not in self.pending for key in self.last[unseen]]]
        rows = unseen if left is None else unseen[: left - len(self.pending)]
        self.new, self.whole, keys = len(unseen), len(rows) == len(unseen), self.last[rows].tolist()
        if recorded is None:
            self.store.under_way.ask(self.asks, Ask(self.progress.batch, at_most, tuple(keys)))
        elif tuple(keys[: len(recorded.keys)]) != recorded.keys:
            raise self._mismatch(self.asks, f"architectures {keys[:8]}", f"{list(recorded.keys[:8])} recorded")
        self.asks += 1
        self.pending.update(zip(keys, genotypes[rows], strict=True))
        if len(genotypes) == 0 or not (keys or self.waits):
            self.ended = finished_of(self.strategy) or "nothing left to ask"
        elif not keys:
            self.ended = self._answer(self.last, 0) or ""

    def answer(self, evaluations: Evaluations) -> None:
        """Log the values of pending designs, and tell the strategy what it is to hear now."""
        record = BatchRecord(self.progress.batch, len(evaluations), 0.0, 0.0)
        self._keep(record, evaluations, self.problem.architectures(evaluations.genotypes))
        self._answered(evaluations.keys.tolist())

    def _answered(self, keys: Sequence[int]) -> None:
        for key in keys:
            del self.pending[key]
        self.out.difference_update(keys)
        self.progress.batch += 1
        if not self.waits:
            tell_strategy(self.strategy, self.shown(self.archive.rows(self.archive.index.rows(np.array(keys)))))
            self.ended = "space exhausted" if len(self.archive) == self.problem.space.size else self.ended
        elif self.whole and not self.pending:
            self.ended = self._answer(self.last, self.new) or ""
