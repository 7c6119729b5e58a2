"""A strategy under trial: its tiny problems, its proposals, and its searches."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel

from nas.problem.evaluations import Evaluations
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.assembly import assemble
from nas.search.lifecycle import store_columns, with_columns
from nas.search.loop import Limits, Search
from nas.search.strategy import Strategy, StrategyContext, Traits
from nas.search.strategy_calls import ask_strategy, build_strategy, tell_strategy
from search_spaces.arrays import IntArray

AXES: dict[str, list[Any]] = {
    "depth": [4, 8, 12],
    "width": [768, 1024],
    "n_experts": [1, 8],
    "top_k": [1, 2],
    "expert_ffn_ratio": [0.5, 1, 2],
    "n_kv_heads": [1, 2, "n_heads"],
}  # 162 architectures with every kind of condition
OBJECTIVES = ["loss", "prefill_ms", "decode_ms", "memory_gb"]
ASKS, EVALUATIONS = 6, 70


@dataclass(eq=False)
class Subject:
    """A strategy under trial, with parameters, and a folder for the stores of its searches."""

    module: ModuleType
    given: Mapping[str, Any]
    folder: Path
    known: Evaluations | None = None
    searches: Iterator[int] = field(default_factory=itertools.count)
    problems: dict[str, Problem] = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        """The traits that the module states."""
        found: Traits = self.module.TRAITS
        return found

    @property
    def parameters(self) -> BaseModel:
        """The given parameters, checked."""
        model: type[BaseModel] = self.module.Parameters
        return model.model_validate(dict(self.given))

    def problem(self, axes: Mapping[str, Any] = AXES, objectives: int = 2, **study: Any) -> Problem:
        """A problem over a tiny space, with as many objectives as the strategy takes of those wanted."""
        most = min(objectives, self.traits.objectives or objectives)
        bare = {"algo": "random", "default_budget": "none", "baselines": [], "applications": {}}
        raw = {"space": {"axes": dict(axes)}, "objectives": OBJECTIVES[:most], **bare, **study}
        if repr(raw) not in self.problems:
            self.problems[repr(raw)] = assemble(raw, {}).problem
        found = self.problems[repr(raw)]
        return found if self.traits.constraints else replace(found, budgets=())

    def limit(self, wanted: int = EVALUATIONS) -> int | None:
        """A number of evaluations, for strategies that take one."""
        return wanted if self.traits.takes_evaluations else None

    def build(self, problem: Problem, seed: int = 0, start: IntArray | None = None, **more: Any) -> Strategy:
        """A fresh strategy."""
        start = problem.space.genotypes(np.zeros(0, dtype=np.int64)) if start is None else start
        return build_strategy(
            self.module, StrategyContext(problem, seed, start, None, known=self.known, **more), self.parameters
        )

    def hurried(self, problem: Problem) -> list[int]:
        """Keys that it proposes when it receives one or two values at a time, out of order, while others are waited for."""
        strategy, space, order = self.build(problem, asynchronous=True), problem.space, np.random.default_rng(5)
        proposed, waiting = list[int](), np.zeros(0, dtype=np.int64)
        for _ in range(EVALUATIONS):
            keys = space.keys(space.repair(ask_strategy(strategy, 3, len(space.gene_sizes))))
            proposed, waiting = proposed + keys.tolist(), order.permutation(np.concatenate([waiting, keys]))
            while len(waiting) > 3:
                now, waiting = np.split(waiting, [1 + len(waiting) % 2])
                tell_strategy(strategy, problem.evaluate(space.genotypes(now)))
        return proposed

    def transcript(
        self, problem: Problem, seed: int = 0, start: IntArray | None = None, asks: int = ASKS
    ) -> list[IntArray]:
        """Its proposals, given true values, as long as anything is left to propose."""
        strategy, proposed, seen = self.build(problem, seed, start), list[IntArray](), set[int]()
        while len(proposed) < asks and len(seen) < problem.space.size:
            genotypes = ask_strategy(strategy, problem.space.size, len(problem.space.gene_sizes))
            if len(genotypes) == 0:
                break
            proposed.append(genotypes.copy())
            repaired = problem.space.repair(genotypes)
            seen.update(problem.space.keys(repaired).tolist())
            tell_strategy(strategy, problem.evaluate(repaired))
        return proposed

    def search(
        self, problem: Problem, evaluations: int | None, seed: int = 0, stopped_after: int | None = None
    ) -> tuple[Search, str]:
        """A whole run through the study's own loop, optionally stopped once and resumed, and why it ended."""
        names = tuple(objective.name for objective in problem.objectives)
        place, genes = self.folder / f"{next(self.searches)}-{FILE}", problem.space.genes
        store = RunStore(place, problem.metric_names, names, problem.budgets, genes=genes)
        store.create({}, store_columns(problem), None if self.known is None else with_columns(self.known, problem))
        try:
            if stopped_after is not None:
                Search(problem, self.build(problem, seed), store, known=self.known).run(Limits(stopped_after))
            recorded = store.read() if stopped_after else None
            search = Search(problem, self.build(problem, seed), store, recorded, known=self.known)
            return search, search.run(Limits(evaluations))
        finally:
            store.close()
