"""Genotypes whose own metrics workers evaluate: sent, kept as they arrive, put together again."""

import numpy as np

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.record.store import RunStore
from nas.search.in_worker import Answer
from nas.search.worker_pool import Task, WorkerPool
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray, IntArray

Key = tuple[int, str]


class Delegated:
    """The user's metrics of a problem on workers; every other metric, and what is made of them, here.

    What arrives is in the store before anybody is told: it is asked for once, however often the driver is killed.
    """

    def __init__(self, problem: Problem, pool: WorkerPool, store: RunStore) -> None:
        self.problem, self.pool, self.store = problem, pool, store
        self.answers: dict[Key, Answer] = dict(store.under_way.arrived())
        self.sent: set[Key] = set()
        self.screened: set[int] = set()

    def expect(self, genotypes: IntArray) -> None:
        """Let workers begin with genotypes, but for what is there, is under way, or is screened out by formulas."""
        keys, architectures = self.problem.space.keys(genotypes).tolist(), self.problem.architectures(genotypes)
        reasons = self.problem.screened(self.problem.assess(architectures)) or [""] * len(keys)
        self.screened.update(key for key, reason in zip(keys, reasons, strict=True) if reason)
        tasks = [
            Task((key, metric.name), metric, architectures[row : row + 1], self.problem.scenario)
            for row, key in enumerate(keys)
            for metric in self.problem.functions
            if not ((key, metric.name) in self.sent or (key, metric.name) in self.answers or key in self.screened)
        ]
        self.sent.update(task.key for task in tasks)
        self.pool.add(tasks)

    def receive(self) -> list[Key]:
        """Wait until something arrives, and keep it."""
        arrived = [(task.key, answer) for task, answer in self.pool.arrivals()]
        self.store.under_way.arrive((key, metric, *answer) for (key, metric), answer in arrived)
        self.answers.update(arrived)
        self.sent.difference_update(key for key, _ in arrived)
        return [key for key, _ in arrived]

    def complete(self, key: int) -> bool:
        """Whether every metric of an architecture is there that will be."""
        return key in self.screened or all((key, metric.name) in self.answers for metric in self.problem.functions)

    def __call__(self, genotypes: IntArray) -> Evaluations:
        """Genotypes evaluated, once everything has arrived."""
        self.expect(genotypes)
        keys = [key for key in self.problem.space.keys(genotypes).tolist() if key not in self.screened]
        missing = {(key, metric.name) for key in keys for metric in self.problem.functions} - self.answers.keys()
        while missing:
            missing.difference_update(self.receive())

        def found(metric: Objective, _: Architectures, __: Scenario) -> tuple[FloatArray, list[str]]:
            answers = [self.answers.pop((key, metric.name)) for key in keys]
            return np.array([value for value, _ in answers]), [reason for _, reason in answers]

        return self.problem.evaluate(genotypes, call=found)
