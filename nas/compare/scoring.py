"""Runs read back and measured: per study one reference, then every run against it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nas.compare import execution
from nas.compare.anytime import Measured, Trace, checkpoints, measured
from nas.compare.configuration import Plan, RunSpec
from nas.compare.execution import ProcessPool
from nas.compare.reference import Reference, exact_reference, union
from nas.compare.result import StudyResult
from nas.errors import PlasError
from nas.exact.solution import quick_frontier
from nas.problem.objective import Objective
from nas.search.assembly import Study
from objectives.loss_law.law import origin_line
from search_spaces.arrays import FloatArray, IntArray

Label = tuple[str, str, int]  # study, strategy, seed
Front = tuple[FloatArray, IntArray]  # values, keys
DIED = "the worker process died"


@dataclass(frozen=True, eq=False)
class Bench:
    """The runs to score: the plan's, and those that failed with their reason.

    stage: hears what begins.
    """

    plan: Plan
    folder: Path
    pool: ProcessPool
    failures: Mapping[Label, str]
    stage: Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Task:
    """One run to be measured in a worker."""

    cell: RunSpec
    asked: int
    reference: Reference | None
    counts: IntArray


def scored(bench: Bench) -> list[StudyResult]:
    """Every study's result."""
    return [study_result(bench, name) for name in bench.plan.studies]


def study_result(bench: Bench, name: str) -> StudyResult:
    """The plan's runs of a study."""
    plan, study = bench.plan, bench.plan.studies[name]
    problem, limit = study.problem, plan.config.evaluations
    bench.stage(f"measuring the runs of {name}")
    objectives = tuple(replace(objective, function=None) for objective in problem.objectives)
    mine = [cell for cell in plan.cells(bench.folder) if cell.study == name]
    good = [cell for cell in mine if label_of(cell) not in bench.failures]
    exact = quick_frontier(problem)
    reference = None if exact is None else exact_reference(objectives, exact.frontier.values, exact.frontier.keys)
    if exact is None:
        fronts = bench.pool.run(front_of, [(cell, limit) for cell in good], lambda task: None)
        reference = union(objectives, [members for members in fronts if members is not None])
    counts = checkpoints(limit)
    read = bench.pool.run(measure, [Task(cell, limit, reference, counts) for cell in good], lambda task: DIED)
    measures = {cell: run for cell, run in zip(map(label_of, good), read, strict=True) if isinstance(run, Measured)}
    runs = [measures.get(label_of(cell)) or _failed(cell, len(objectives), counts) for cell in mine]
    unread = {label_of(cell): run for cell, run in zip(good, read, strict=True) if isinstance(run, str)}
    reasons = {f"{s} s{seed}": why for (n, s, seed), why in {**bench.failures, **unread}.items() if n == name}
    skipped = {strategy: reason for (n, strategy), reason in plan.skipped.items() if n == name}
    chosen = {s: setup.config.auto for (n, s), setup in plan.setups.items() if n == name and setup.config.auto}
    what, ordered = described(study), by_strategy(runs)
    return StudyResult(name, plan.groups[name], what, objectives, reference, counts, ordered, skipped, reasons, chosen)


def by_strategy(runs: list[Measured]) -> tuple[Measured, ...]:
    """Runs in the order of their strategies' names."""
    return tuple(sorted(runs, key=lambda run: run.strategy))


def label_of(cell: RunSpec) -> Label:
    """The key of a run."""
    return cell.study, cell.strategy, cell.seed


def front_of(task: tuple[RunSpec, int]) -> Front | None:
    """Values and keys of what a run found, in a worker; None of a run that cannot be read."""
    try:
        return front(execution.trace(*task))
    except PlasError:
        return None


def front(trace: Trace) -> Front:
    """Values and keys of a run's frontier."""
    rows = trace.merged(np.zeros(0, dtype=np.int64), 0, len(trace))
    return trace.values[rows], trace.keys[rows]


def measure(task: Task) -> Measured | str:
    """A run's measures, in a worker; the reason of a run that cannot be read."""
    try:
        return measured(execution.trace(task.cell, task.asked), task.reference, task.counts)
    except PlasError as error:
        return str(error)


def _failed(cell: RunSpec, objectives: int, counts: IntArray) -> Measured:
    trace = Trace.failed(cell.strategy, f"s{cell.seed}", cell.seed, objectives)
    return measured(trace, None, counts)


def aims(objectives: Sequence[Objective]) -> str:
    """`minimise a, b; maximise c`: an objective whose name begins with - is a column that is maximised."""
    up = [o.name[1:] for o in objectives if o.name.startswith("-")]
    down = [o.name for o in objectives if not o.name.startswith("-")]
    parts = (("minimise", down), ("maximise", up))
    return "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names)


def described(study: Study) -> str:
    """Objectives, budgets, device and workload of a study in a line."""
    problem, config, device = study.problem, study.config, study.problem.scenario.device
    budgets = ", ".join(str(budget) for budget in problem.budgets) or "no budgets"
    mode = f"@{device.mode}" if device.mode else ""
    origin = origin_line(problem.scenario.law)
    return (
        f"{aims(problem.objectives)}; {budgets}; {problem.space.name} space; "
        f"{device.name}{mode}, {config.precision}, {config.request_words}" + (f"; {origin}" if origin else "")
    )
