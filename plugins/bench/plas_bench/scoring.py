"""Traces against the exact front, with the measures and statistics of `plas compare`, and the table that a reader sees."""

from collections.abc import Sequence

import numpy as np

from nas.compare.anytime import checkpoints, measured
from nas.compare.result import StudyResult
from nas.compare.scoring import aims, by_strategy
from nas.compare.statistics import quantile
from nas.compare.tables import distance, percent, titled
from nas.document.document import Table, table_of
from plas_bench.instance import BenchProblem
from plas_bench.measures import reported
from plas_bench.traces import GivenTrace


def scored(bench: BenchProblem, given: Sequence[GivenTrace], evaluations: int | None = None) -> StudyResult:
    """Traces of one problem, measured at the same numbers of evaluations up to `evaluations` (None: the longest trace)."""
    longest = max(each.distinct(bench) for each in given)
    asked = longest if evaluations is None else min(evaluations, longest)
    counts = np.unique([*checkpoints(asked), *reported(asked)])
    reference = bench.reference()
    traces = [bench.trace(each.genotypes, each.algorithm, each.run, each.seed, asked) for each in given]
    runs = [measured(trace, reference, counts) for trace in traces]
    what = f"{aims(bench.problem.objectives)}; {bench.definition.title}"
    return StudyResult(bench.name, "", what, bench.problem.objectives, reference, counts, by_strategy(runs), {}, {})


def gap_table(r: StudyResult) -> Table:
    """Median gap on the way, then share, IGD+ and epsilon at the end; the smallest gap first."""
    columns = np.flatnonzero(np.isin(r.counts, reported(int(r.counts[-1])))).tolist()
    header = (
        "algorithm",
        "runs",
        *(f"gap at {r.counts[i]:,}" for i in columns),
        "share found",
        "IGD+",
        "epsilon",
        "ended",
    )
    rows = tuple(
        (s, f"{len(r.runs_of(s))}", *_gaps(r, s, columns), *_last(r, s), r.ended(s) or "-") for s in r.ranking()
    )
    return table_of(header, rows, titled(r))


def _gaps(r: StudyResult, algorithm: str, columns: Sequence[int]) -> list[str]:
    return [percent(quantile(r.matrix(algorithm, "gap")[:, i], 0.5)) for i in columns]


def _last(r: StudyResult, algorithm: str) -> list[str]:
    medians = {name: quantile(r.last(algorithm, name), 0.5) for name in ("share", "igd_plus", "epsilon")}
    return [percent(medians["share"]), *(distance(medians[name]) for name in ("igd_plus", "epsilon"))]
