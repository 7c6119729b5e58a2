"""Traces of other tools as runs: on the studies of a comparison beside its own, or by themselves."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nas.compare import execution
from nas.compare.anytime import Trace, checkpoints, measured
from nas.compare.command import opened
from nas.compare.configuration import Plan
from nas.compare.execution import ProcessPool, processors
from nas.compare.reference import Reference, union
from nas.compare.request import CompareRequest
from nas.compare.result import StudyResult
from nas.compare.scoring import Bench, aims, by_strategy, front, label_of, scored
from nas.errors import UsageError
from nas.problem.objective import Objective
from plas_bench.publish.external_results import Columns, ForeignRun, objectives_of, read_runs, studies_of, traces
from plas_bench.publish.request import PublishRequest


def recorded_plan(request: PublishRequest, folder: Path) -> Plan:
    """The plan of a comparison's folder.

    Raises:
        UsageError: it is none, or has a strategy of somebody's own that is not named.
    """
    given = {"algos": request.algos} if request.algos else {}
    return opened(CompareRequest(given, resume=folder, interim=True, quiet=True))[1]


def unfinished(plan: Plan, folder: Path, pool: ProcessPool) -> dict[tuple[str, str, int], str]:
    """Runs of a comparison that are not there, with the reason.

    Raises:
        UsageError: none is there.
    """
    wanted = list(plan.cells(folder))
    done = pool.run(execution.finished, wanted, lambda cell: False)
    if not any(done):
        raise UsageError(
            f"{folder}: expected a comparison with finished runs, got none; plas compare --resume {folder}"
        )
    return {
        label_of(cell): f"it is not finished in {folder}" for cell, there in zip(wanted, done, strict=True) if not there
    }


def comparison_results(
    plan: Plan, folder: Path, paths: Sequence[Path], columns: Columns, workers: int | None, stage: Callable[[str], None]
) -> list[StudyResult]:
    """Every study of a comparison, with the traces beside its finished runs.

    Raises:
        UsageError: no run is finished.
    """
    pool, foreign = ProcessPool(workers or processors()), Foreign(plan, tuple(paths), columns)
    try:
        failures = unfinished(plan, folder, pool)
        return scored(Bench(plan, folder, pool, failures, stage, foreign.of_study))
    finally:
        pool.close()


@dataclass(frozen=True, eq=False)
class Foreign:
    """Files of other tools' runs on the studies of a comparison."""

    plan: Plan
    paths: tuple[Path, ...]
    columns: Columns

    def of_study(self, name: str, objectives: tuple[Objective, ...], reference: Reference | None) -> list[Trace]:
        """Runs on a study, as many evaluations as ours have."""
        names = [objective.name for objective in objectives]
        runs = [run for path in self.paths for run in self.read(path, name, names)]
        return traces(runs, objectives, reference, self.plan.config.evaluations)

    def read(self, path: Path, name: str, objectives: Sequence[str]) -> list[ForeignRun]:
        """Runs of a file that belong to a study: by its name, or where there is only one without a name."""
        meant = {name, ""} if len(self.plan.studies) == 1 else {name}
        return read_runs(path, objectives, meant, self.columns)

    def check(self, path: Path) -> None:
        """Refuse a file that does not fit.

        Raises:
            UsageError: no study is meant, an objective is missing, or a strategy is called like one of ours.
        """
        objectives_of(path, self.columns)  # a column that is named and not there
        runs = []
        for name, study in self.plan.studies.items():
            runs += self.read(path, name, [objective.name for objective in study.problem.objectives])
        if not runs:
            raise UsageError(
                f"{path}: expected a column study with {' or '.join(self.plan.studies)}, got none of them; say which study a run is of"
            )
        for run in runs:
            if run.strategy in self.plan.strategies:
                raise UsageError(
                    f"{path}: expected names of strategies that are not ours, got {run.strategy}; rename it in the file"
                )

    def others(self, path: Path) -> list[str]:
        """Studies of a file that the comparison does not have."""
        names = {""} if len(self.plan.studies) == 1 else set()
        return [
            name or "no name" for name in studies_of(path, self.columns) if name not in names | set(self.plan.studies)
        ]


def trace_results(paths: Sequence[Path], columns: Columns) -> list[StudyResult]:
    """Traces of other tools by themselves: files of the same objectives together, each of their studies apart."""
    together: dict[tuple[str, ...], list[Path]] = {}
    for path in paths:
        names = sorted(objective.name for objective in objectives_of(path, columns))
        together.setdefault(tuple(names), []).append(path)
    return [result for files in together.values() for result in file_results(files, columns)]


def file_results(paths: Sequence[Path], columns: Columns) -> list[StudyResult]:
    """Every study of files with the same objectives."""
    objectives = objectives_of(paths[0], columns)
    names = [objective.name for objective in objectives]
    runs = [run for path in paths for run in read_runs(path, names, None, columns)]
    files, stem = ", ".join(path.name for path in paths), "-".join(path.stem for path in paths)[:60]
    return [
        run_results(
            "-".join(filter(None, (stem, re.sub(r"[^A-Za-z0-9_.-]", "-", study)))),
            f"{aims(objectives)}; traces of {files}{f', {study}' if study else ''}",
            objectives,
            [run for run in runs if run.study == study],
        )
        for study in dict.fromkeys(run.study for run in runs)
    ]


def run_results(name: str, what: str, objectives: tuple[Objective, ...], foreign: Sequence[ForeignRun]) -> StudyResult:
    """Runs of other tools against the union of all of them."""
    runs = traces(foreign, objectives, None, max(len(run.values) for run in foreign))
    reference = union(objectives, [front(trace) for trace in runs])
    counts = checkpoints(max(len(trace) for trace in runs))
    done = [replace(trace, ended="" if len(trace) >= counts[-1] else "stopped") for trace in runs]
    scores = [measured(trace, reference, counts) for trace in done]
    return StudyResult(name, "", what, objectives, reference, counts, by_strategy(scores), {}, {})
