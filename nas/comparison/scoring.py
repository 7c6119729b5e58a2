"""Runs read back and measured: per study one reference, then every run against it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nas.assemble import Study
from nas.comparison import cells
from nas.comparison.crew import Crew
from nas.comparison.foreign import objectives_of, read_runs, traces
from nas.comparison.measures import Measured, checkpoints, clock, measured
from nas.comparison.plan import Cell, Plan
from nas.comparison.reference import Reference, exact_reference, union
from nas.comparison.result import StudyResult
from nas.comparison.trace import Trace
from nas.errors import UsageError
from nas.objective import Objective
from nas.outcome import exact_solution
from search_spaces.arrays import FloatArray, IntArray

Label = tuple[str, str, int]  # study, strategy, seed
LONGEST_S = 1e6


@dataclass(frozen=True, eq=False)
class Bench:
    """What is to be measured: the plan's runs, those that failed with their reason, and traces of other tools."""

    plan: Plan
    folder: Path
    crew: Crew
    failures: Mapping[Label, str]
    foreign: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """One run to be measured in a worker."""

    cell: Cell
    asked: int
    reference: Reference | None
    counts: IntArray


def scored(bench: Bench) -> list[StudyResult]:
    """Every study's result, then that of traces which belong to no study."""
    results = [of_study(bench, name) for name in bench.plan.studies]
    return results + [of_file(path) for path in bench.foreign if not bench.plan.studies]


def of_study(bench: Bench, name: str) -> StudyResult:
    """The plan's runs of a study, and traces of other tools on it."""
    plan, study = bench.plan, bench.plan.studies[name]
    problem, limit = study.problem, plan.config.evaluations
    mine = [cell for cell in plan.cells(bench.folder) if cell.study == name]
    good = [cell for cell in mine if (name, cell.strategy, cell.seed) not in bench.failures]
    exact = exact_solution(problem, problem.evaluate(problem.space.genotypes(np.zeros(0, dtype=np.int64))))
    known = None if exact is None else exact_reference(problem.objectives, exact.frontier.values, exact.frontier.keys)
    fronts = [] if exact is not None else bench.crew.run(front_of, [(cell, limit) for cell in good], nothing_read)
    if exact is None:
        known = union(problem.objectives, fronts)
    others = foreign_traces(bench, name, problem.objectives, known)
    if exact is None:
        known = union(problem.objectives, [*fronts, *(_front(trace) for trace in others)])
    counts = checkpoints(limit)
    found = bench.crew.run(measure, [Task(cell, limit, known, counts) for cell in good], not_measured)
    by_label = {(run.strategy, run.seed): run for run in found}
    runs = [by_label.get((cell.strategy, cell.seed)) or _failed(cell, len(problem.objectives), counts) for cell in mine]
    runs += [measured(trace, known, counts, clock(LONGEST_S)) for trace in others]
    reasons = {f"{s} s{seed}": reason for (n, s, seed), reason in bench.failures.items() if n == name}
    skipped = {strategy: reason for (n, strategy), reason in plan.skipped.items() if n == name}
    return result(name, plan.groups[name], described(study), problem.objectives, known, counts, runs, skipped, reasons)


def result(
    name: str,
    group: str,
    what: str,
    objectives: tuple[Objective, ...],
    reference: Reference | None,
    counts: IntArray,
    runs: list[Measured],
    skipped: dict[str, str],
    failures: dict[str, str],
) -> StudyResult:
    """A study's result, its clock cut where the longest run ends."""
    longest = max((run.seconds for run in runs if run.seconds is not None), default=0.0)
    instants = clock(longest)
    cut = tuple(
        replace(run, clock=None if run.clock is None else run.clock[: len(instants)])
        for run in sorted(runs, key=lambda run: run.strategy)
    )
    return StudyResult(name, group, what, objectives, reference, counts, instants, cut, skipped, failures)


def of_file(path: Path) -> StudyResult:
    """Traces of other tools by themselves, against the union of all of them."""
    objectives = objectives_of(path)
    found = read_runs(path, [objective.name for objective in objectives])
    longest = max(len(run.values) for run in found)
    runs = traces(found, objectives, None, longest)
    known = union(objectives, [_front(trace) for trace in runs])
    counts = checkpoints(max(len(trace) for trace in runs))
    done = [replace(trace, ended="" if len(trace) >= counts[-1] else "stopped") for trace in runs]
    what = f"minimise {', '.join(objective.name for objective in objectives)}; traces of {path.name}"
    scores = [measured(trace, known, counts, clock(LONGEST_S)) for trace in done]
    return result(path.stem, "", what, objectives, known, counts, scores, {}, {})


def foreign_traces(bench: Bench, name: str, objectives: tuple[Objective, ...], known: Reference | None) -> list[Trace]:
    """Traces of other tools on a study: those that name it, or name none where there is one study only."""
    runs, alone = [], len(bench.plan.studies) == 1
    for path in bench.foreign:
        here = [
            run
            for run in read_runs(path, [o.name for o in objectives])
            if run.study == name or (alone and not run.study)
        ]
        unnamed = [run for run in here if run.strategy in bench.plan.strategies]
        if unnamed:
            raise UsageError(
                f"{path}: expected names of strategies that are not ours, got {unnamed[0].strategy}; rename it in the file"
            )
        runs += here
    return traces(runs, objectives, known, bench.plan.config.evaluations)


def front_of(task: tuple[Cell, int]) -> tuple[FloatArray, IntArray]:
    """Values and keys of what a run found, in a worker."""
    return _front(cells.trace(*task))


def _front(trace: Trace) -> tuple[FloatArray, IntArray]:
    rows = trace.merged(np.zeros(0, dtype=np.int64), 0, len(trace))
    return trace.values[rows], trace.keys[rows]


def measure(task: Task) -> Measured:
    """A run's measures, in a worker."""
    return measured(cells.trace(task.cell, task.asked), task.reference, task.counts, clock(LONGEST_S))


def not_measured(task: Task) -> Measured:
    """A run whose reading killed its worker counts as failed."""
    return _failed(task.cell, len(task.cell.assembled().problem.objectives), task.counts)


def nothing_read(task: tuple[Cell, int]) -> tuple[FloatArray, IntArray]:
    """A run whose reading killed its worker adds nothing."""
    return np.zeros((0, len(task[0].assembled().problem.objectives))), np.zeros(0, dtype=np.int64)


def _failed(cell: Cell, objectives: int, counts: IntArray) -> Measured:
    trace = Trace.failed(cell.strategy, f"s{cell.seed}", cell.seed, objectives)
    return measured(trace, None, counts, clock(LONGEST_S))


def described(study: Study) -> str:
    """Objectives, budgets, device and workload of a study in a line."""
    problem, config, device = study.problem, study.config, study.problem.scenario.device
    budgets = ", ".join(str(budget) for budget in problem.budgets) or "no budgets"
    mode = f"@{device.mode}" if device.mode else ""
    return (
        f"minimise {', '.join(o.name for o in problem.objectives)}; {budgets}; {problem.space.name} space; "
        f"{device.name}{mode}, {config.precision}, {config.input_tokens:,} in / {config.output_tokens:,} out"
    )
