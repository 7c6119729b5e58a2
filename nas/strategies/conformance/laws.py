"""The laws, one function each: its first line is printed where a strategy breaks it."""

import inspect
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Objective
from nas.problem.problem import Problem
from nas.record.store import FILE, RunStore
from nas.search.assembly import assemble
from nas.search.lifecycle import store_columns, with_columns
from nas.search.loop import Limits, Search
from nas.search.strategy import Strategy, StrategyContext, Traits, ask_strategy, build_strategy, tell_strategy
from search_spaces.arrays import FloatArray, IntArray

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


SMALL = [{**{name: values[-1:] for name, values in AXES.items()}, "depth": AXES["depth"][:n]} for n in (1, 2, 3)]
BUDGETS: list[dict[str, float]] = [{}, {"total_ms": 30}, {"total_ms": 60, "memory_gb": 1, "decode_ms": 15}]


def flat(batches: list[IntArray]) -> list[list[list[int]]]:
    """A transcript that compares."""
    return [batch.tolist() for batch in batches]


def states(subject: Subject) -> None:
    """It states what a study must know."""
    module = subject.module
    fields = module.Parameters.model_fields
    assert isinstance(module.TRAITS, Traits), "TRAITS: expected nas.search.strategy.Traits"
    assert (module.__doc__ or "").strip(), "expected a first docstring line, which 'plas list strategies' shows"
    assert module.Parameters.model_config.get("extra") == "forbid", "Parameters: expected ConfigDict(extra='forbid')"
    bare = [name for name, about in fields.items() if not about.description or about.is_required()]
    assert not bare, f"Parameters: expected a default and a description for each, not so {', '.join(bare)}"
    expected = ["context", "parameters"]
    found = list(inspect.signature(module.build).parameters)
    assert found == expected, f"build: expected {expected}, got {found}"


def proposes_in_range(subject: Subject) -> None:
    """It proposes integers (k, g), each an index into its axis."""
    problem = subject.problem()
    batches = subject.transcript(problem)
    assert batches, "the first ask held nothing"
    for genotypes in batches:
        outside = (genotypes < 0) | (genotypes >= problem.space.gene_sizes)
        wrong = genotypes[outside.any(axis=1)]
        assert not len(wrong), f"expected genes below {problem.space.gene_sizes.tolist()}, got {wrong[0].tolist()}"


def repeats_itself(subject: Subject) -> None:
    """The same seed and the same answers give the same questions."""
    for seed in (0, 2**32 - 1):
        problem = subject.problem(budgets=BUDGETS[1])
        assert flat(subject.transcript(problem, seed)) == flat(subject.transcript(problem, seed)), (
            f"two searches of seed {seed} differ; every random number comes from context.generator"
        )


def leaves_others_alone(subject: Subject) -> None:
    """It neither reads nor moves the generators of the process, and shares nothing with another search."""
    problem, batches = subject.problem(), []
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        for poison in (1, 2):
            np.random.seed(poison)  # noqa: NPY002
            random.seed(poison)
            before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
            batches.append(flat(subject.transcript(problem, 7)))
            moved = before != (repr(np.random.get_state()), random.getstate())  # noqa: NPY002
            assert not moved, "numpy.random or random was used; draw from context.generator"
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])
    assert batches[0] == batches[1], "numpy.random or random decides; draw from context.generator"
    pair = [subject.build(problem, 7), subject.build(problem, 7)]
    for batch in batches[0]:
        for strategy in pair:
            genotypes = ask_strategy(strategy, problem.space.size, len(problem.space.gene_sizes))
            assert genotypes.tolist() == batch, "two searches at once disturb each other; keep state in the object"
            tell_strategy(strategy, problem.evaluate(problem.space.repair(genotypes)))


def takes_objectives_and_budgets(subject: Subject) -> None:
    """One to four objectives, under no budget, one and several, are searched up to the number of evaluations."""
    for count in range(1, min(len(OBJECTIVES), subject.traits.objectives or len(OBJECTIVES)) + 1):
        for budgets in BUDGETS:
            problem = subject.problem(objectives=count, budgets=budgets)
            search, reason = subject.search(problem, subject.limit())
            wanted = subject.limit() or problem.space.size
            assert len(search.archive) == wanted, (
                f"{count} objectives, {len(problem.budgets)} budgets: expected {wanted} evaluations, "
                f"got {len(search.archive)} and the end {reason!r}"
                + (", the last 20 asks held nothing new; see nas.search.archive" if reason == "stalled" else "")
            )


def goes_on_after_a_stop(subject: Subject) -> None:
    """A run that was stopped and resumed from its log asks what it would have asked at once."""
    if not subject.traits.takes_evaluations:
        return
    problem = subject.problem(budgets=BUDGETS[1])
    at_once = subject.search(problem, EVALUATIONS)[0].archive.all().keys.tolist()
    resumed = subject.search(problem, EVALUATIONS, stopped_after=EVALUATIONS // 2)[0].archive.all().keys.tolist()
    same = next((i for i, pair in enumerate(zip(at_once, resumed, strict=False)) if pair[0] != pair[1]), len(resumed))
    assert at_once == resumed, f"they differ from evaluation {same} on; restore must leave what state was taken of"


def goes_on_where_nothing_is_feasible(subject: Subject) -> None:
    """It goes on where nothing meets the budgets."""
    problem = subject.problem(budgets={"total_ms": 1e-6, "memory_gb": 1e-6})
    search, reason = subject.search(problem, subject.limit())
    assert len(search.archive) >= EVALUATIONS, (
        f"expected {EVALUATIONS} evaluations, got {len(search.archive)}: {reason}"
    )


def goes_on_after_failures(subject: Subject) -> None:
    """It goes on where an objective of the user's fails for some architectures (their values are NaN)."""

    def failing(architectures: Any) -> FloatArray:
        found: FloatArray = np.where(architectures.depth == 8, np.nan, architectures.depth / architectures.width)
        return found

    own = Objective("nas.strategies.conformance.laws:failing", function=failing)
    problem = subject.problem(objectives=1)
    kept = problem.objectives[: (subject.traits.objectives or 2) - 1]
    search, reason = subject.search(replace(problem, objectives=(*kept, own), functions=(own,)), subject.limit(100))
    assert len(search.archive) >= 100, f"expected 100 evaluations, got {len(search.archive)} and the end {reason!r}"


def covers_small_spaces(subject: Subject) -> None:
    """In a space smaller than its batch it evaluates every architecture, and the search stops."""
    for axes in (*SMALL, AXES):
        problem = subject.problem(axes)
        search, reason = subject.search(problem, None)
        covered = len(search.archive) == problem.space.size and reason in ("space exhausted", "nothing left to ask")
        assert covered, f"expected all {problem.space.size}, got {len(search.archive)} and the end {reason!r}"


def starts_from_given_designs(subject: Subject) -> None:
    """With TRAITS.seedable the designs of context.start are proposed first, in their order."""
    if not subject.traits.seedable:
        return
    problem = subject.problem()
    start = problem.space.genotypes(np.array([150, 3, 77]))
    first = problem.space.repair(np.concatenate(subject.transcript(problem, start=start)))[: len(start)]
    assert first.tolist() == start.tolist(), f"expected {start.tolist()}, got {first.tolist()}"


def takes_known_results(subject: Subject) -> None:
    """Results from before the search cost nothing: it evaluates its number besides them, and goes on after a stop."""
    problem = subject.problem(budgets=BUDGETS[1])
    for n in (1, 60):
        informed = replace(subject, known=problem.evaluate(problem.space.genotypes(np.arange(0, 2 * n, 2))))
        search, reason = informed.search(problem, subject.limit())
        wanted = subject.limit() or problem.space.size - n
        text = f"{n} known: expected {wanted} evaluations besides, got {search.charged} and the end {reason!r}"
        assert search.charged == wanted, f"{text}; see context.known"
        goes_on_after_a_stop(informed)


def need_not_wait(subject: Subject) -> None:
    """With TRAITS.asynchronous it may be asked before it was told everything, is told in any order, and asks nothing twice."""
    for problem in (subject.problem(budgets=BUDGETS[1]), subject.problem(SMALL[1])) * subject.traits.asynchronous:
        first = subject.hurried(problem)
        assert first == subject.hurried(problem), "two searches of one seed with answers in one order differ"
        wanted = min(EVALUATIONS, problem.space.size)
        assert len(set(first)) == len(first) >= wanted, f"expected {wanted} designs, each once, got {len(set(first))}"


LAWS: tuple[Callable[[Subject], None], ...] = (
    states,
    proposes_in_range,
    repeats_itself,
    leaves_others_alone,
    takes_objectives_and_budgets,
    goes_on_after_a_stop,
    goes_on_where_nothing_is_feasible,
    goes_on_after_failures,
    covers_small_spaces,
    starts_from_given_designs,
    takes_known_results,
    need_not_wait,
)
