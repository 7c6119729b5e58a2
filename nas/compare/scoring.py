"""Runs read back and measured: per study one reference, then every run against it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nas.compare import execution
from nas.compare.anytime import Measured, Trace, checkpoints, measured
from nas.compare.configuration import ComparisonConfig, Plan, RunSpec
from nas.compare.execution import ProcessPool
from nas.compare.external_results import Columns, ForeignRun, columns_of, objectives_of, read_runs, studies_of, traces
from nas.compare.reference import Reference, Volume, exact_reference, union, volume_of
from nas.compare.result import StudyResult
from nas.errors import PlasError, UsageError
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
    """The runs to score: the plan's, those that failed with their reason, and traces of other tools.

    `stage` hears what begins.
    """

    plan: Plan
    folder: Path
    pool: ProcessPool
    failures: Mapping[Label, str]
    foreign: tuple[Path, ...]
    stage: Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Task:
    """One run to be measured in a worker."""

    cell: RunSpec
    asked: int
    reference: Reference | None
    counts: IntArray


def scored(bench: Bench) -> list[StudyResult]:
    """Every study's result, then that of traces which belong to no study."""
    results = [study_result(bench, name) for name in bench.plan.studies]
    return results or trace_results(bench.foreign, bench.plan.config)


def study_result(bench: Bench, name: str) -> StudyResult:
    """The plan's runs of a study, and traces of other tools on it."""
    plan, study = bench.plan, bench.plan.studies[name]
    problem, limit = study.problem, plan.config.evaluations
    bench.stage(f"measuring the runs of {name}")
    objectives = tuple(replace(objective, function=None) for objective in problem.objectives)
    mine = [cell for cell in plan.cells(bench.folder) if cell.study == name]
    good = [cell for cell in mine if label_of(cell) not in bench.failures]
    exact = quick_frontier(problem)
    reference = None if exact is None else exact_reference(objectives, exact.frontier.values, exact.frontier.keys)
    fronts: list[Front] = []
    if exact is None:
        read_fronts = bench.pool.run(front_of, [(cell, limit) for cell in good], lambda task: None)
        fronts = [front for front in read_fronts if front is not None]
        reference = union(objectives, fronts)
    others = foreign_traces(bench, name, objectives, reference)
    if exact is None:
        reference = union(objectives, [*fronts, *(_front(trace) for trace in others)])
    reference = within(reference, volume_of(objectives, plan.config.reference, plan.config.bounds))
    counts = checkpoints(limit)
    read = bench.pool.run(measure, [Task(cell, limit, reference, counts) for cell in good], lambda task: DIED)
    measures = {cell: run for cell, run in zip(map(label_of, good), read, strict=True) if isinstance(run, Measured)}
    runs = [measures.get(label_of(cell)) or _failed(cell, len(objectives), counts) for cell in mine]
    runs += [measured(trace, reference, counts) for trace in others]
    unread = {label_of(cell): run for cell, run in zip(good, read, strict=True) if isinstance(run, str)}
    reasons = {f"{s} s{seed}": why for (n, s, seed), why in {**bench.failures, **unread}.items() if n == name}
    skipped = {strategy: reason for (n, strategy), reason in plan.skipped.items() if n == name}
    chosen = {s: setup.config.auto for (n, s), setup in plan.setups.items() if n == name and setup.config.auto}
    what, ordered = described(study), by_strategy(runs)
    return StudyResult(name, plan.groups[name], what, objectives, reference, counts, ordered, skipped, reasons, chosen)


def by_strategy(runs: list[Measured]) -> tuple[Measured, ...]:
    """Runs in the order of their strategies' names."""
    return tuple(sorted(runs, key=lambda run: run.strategy))


def within(reference: Reference | None, volume: Volume | None) -> Reference | None:
    """A reference with the point and bounds of hypervolumes."""
    return None if reference is None else replace(reference, volume=volume)


def trace_results(paths: Sequence[Path], config: ComparisonConfig) -> list[StudyResult]:
    """Traces of other tools by themselves: files of the same objectives together, each of their studies apart."""
    together: dict[tuple[str, ...], list[Path]] = {}
    columns = columns_of(config.columns)
    for path in paths:
        names = sorted(objective.name for objective in objectives_of(path, columns))
        together.setdefault(tuple(names), []).append(path)
    return [result for files in together.values() for result in file_results(files, columns, config)]


def file_results(paths: Sequence[Path], columns: Columns, config: ComparisonConfig) -> list[StudyResult]:
    """Every study of files with the same objectives."""
    objectives = objectives_of(paths[0], columns)
    volume = volume_of(objectives, config.reference, config.bounds)
    names = [objective.name for objective in objectives]
    runs = [run for path in paths for run in read_runs(path, names, None, columns)]
    files, stem = ", ".join(path.name for path in paths), "-".join(path.stem for path in paths)[:60]
    return [
        run_results(
            "-".join(filter(None, (stem, re.sub(r"[^A-Za-z0-9_.-]", "-", study)))),
            f"{aims(objectives)}; traces of {files}{f', {study}' if study else ''}",
            objectives,
            [run for run in runs if run.study == study],
            volume,
        )
        for study in dict.fromkeys(run.study for run in runs)
    ]


def run_results(
    name: str, what: str, objectives: tuple[Objective, ...], foreign: Sequence[ForeignRun], volume: Volume | None
) -> StudyResult:
    """Runs of other tools against the union of all of them."""
    runs = traces(foreign, objectives, None, max(len(run.values) for run in foreign))
    reference = within(union(objectives, [_front(trace) for trace in runs]), volume)
    counts = checkpoints(max(len(trace) for trace in runs))
    done = [replace(trace, ended="" if len(trace) >= counts[-1] else "stopped") for trace in runs]
    scores = [measured(trace, reference, counts) for trace in done]
    return StudyResult(name, "", what, objectives, reference, counts, by_strategy(scores), {}, {})


def foreign_traces(
    bench: Bench, name: str, objectives: tuple[Objective, ...], reference: Reference | None
) -> list[Trace]:
    """Traces of other tools on a study."""
    names = [objective.name for objective in objectives]
    columns = columns_of(bench.plan.config.columns)
    runs = [run for path in bench.foreign for run in read_runs(path, names, meant(bench.plan, name), columns)]
    return traces(runs, objectives, reference, bench.plan.config.evaluations)


def meant(plan: Plan, name: str) -> set[str]:
    """Names by which a trace's study may belong to a study: its name, or nothing where there is only one."""
    return {name, ""} if len(plan.studies) == 1 else {name}


def check_traces(plan: Plan, path: Path) -> None:
    """Refuse traces that could not be read after hours of search.

    Raises:
        UsageError: no study is meant, an objective is missing, or a strategy is called like one of ours.
    """
    columns, config = columns_of(plan.config.columns), plan.config
    named = objectives_of(path, columns)  # a column that is said and not there
    if not plan.studies:
        read_runs(path, [objective.name for objective in named], None, columns)
        volume_of(named, config.reference, config.bounds)
        return
    runs = []
    for name, study in plan.studies.items():
        runs += read_runs(path, [o.name for o in study.problem.objectives], meant(plan, name), columns)
    if not runs:
        raise UsageError(
            f"{path}: expected a column study with {' or '.join(plan.studies)}, got none of them; say which study a run is of"
        )
    for run in runs:
        if run.strategy in plan.strategies:
            raise UsageError(
                f"{path}: expected names of strategies that are not ours, got {run.strategy}; rename it in the file"
            )


def unmeant(plan: Plan, path: Path) -> list[str]:
    """Studies of a file of traces that the comparison does not have."""
    names = {""} if len(plan.studies) == 1 else set()
    named = studies_of(path, columns_of(plan.config.columns))
    return [name or "no name" for name in named if plan.studies and name not in names | set(plan.studies)]


def label_of(cell: RunSpec) -> Label:
    """The key of a run."""
    return cell.study, cell.strategy, cell.seed


def front_of(task: tuple[RunSpec, int]) -> Front | None:
    """Values and keys of what a run found, in a worker; None of a run that cannot be read."""
    try:
        return _front(execution.trace(*task))
    except PlasError:
        return None


def _front(trace: Trace) -> Front:
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
