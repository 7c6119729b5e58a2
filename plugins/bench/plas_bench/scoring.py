"""Traces against the exact front: gaps, shares, distances and evaluations to targets, with the measures and statistics of `plas compare`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nas.compare.anytime import Replay, checkpoints, clock, measured
from nas.compare.reference import Reference, exact_reference
from nas.compare.result import StudyResult
from nas.compare.scoring import LONGEST_S, aims, result
from nas.compare.trace import Trace
from search_spaces.arrays import IntArray

if TYPE_CHECKING:
    from plas_bench.instance import BenchProblem
    from plas_bench.traces import GivenTrace

MEASURES = ("gap", "share", "igd_plus", "epsilon")


def reported(evaluations: int) -> IntArray:
    """Evaluations that results are reported at: 10, 30, 100, 300 … and the last."""
    powers = np.outer(10 ** np.arange(1, 13), (1, 3)).ravel()
    return np.unique([*powers[powers < evaluations], evaluations])


def reference_of(bench: "BenchProblem") -> Reference:
    """The exact front as what traces are measured against."""
    front = bench.exact_front()
    found = exact_reference(bench.problem.objectives, front.values, front.keys)
    assert found is not None, "a frozen problem has feasible designs"
    return found


def trace_of(
    bench: "BenchProblem", genotypes: IntArray, algorithm: str, run: str, seed: int | None, asked: int
) -> Trace:
    """At most `asked` distinct designs of repaired genotypes (n, g), in order; a design counts once, where it first stands."""
    keys = bench.problem.space.keys(genotypes)
    first = np.sort(np.unique(keys, return_index=True)[1])[:asked]
    values, feasible = bench.true(genotypes[first])
    return Trace(algorithm, run, seed, values, feasible, keys[first], "" if len(first) >= asked else "stopped")


def score_table(bench: "BenchProblem", genotypes: IntArray) -> pd.DataFrame:
    """The measures of one trace of repaired genotypes (n, g), a row per number of evaluations."""
    trace = trace_of(bench, genotypes, "trace", "0", None, len(genotypes))
    counts, replay = reported(len(trace)), Replay(trace, reference_of(bench))
    rows = [replay.standing(int(count))[: len(MEASURES)] for count in counts]
    return pd.DataFrame(rows, columns=list(MEASURES), index=pd.Index(counts, name="evaluations"))


def scored(bench: "BenchProblem", given: Sequence["GivenTrace"], evaluations: int | None = None) -> StudyResult:
    """Traces of one problem, measured at the same numbers of evaluations up to `evaluations` (None: the longest trace)."""
    longest = max(each.distinct(bench) for each in given)
    asked = longest if evaluations is None else min(evaluations, longest)
    counts = np.unique([*checkpoints(asked), *reported(asked)])
    reference = reference_of(bench)
    traces = [trace_of(bench, each.genotypes, each.algorithm, each.run, each.seed, asked) for each in given]
    runs = [measured(trace, reference, counts, clock(LONGEST_S)) for trace in traces]
    what = f"{aims(bench.problem.objectives)}; {bench.definition.title}"
    return result(bench.name, "", what, bench.problem.objectives, reference, counts, runs, {}, {})
