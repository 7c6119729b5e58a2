"""Tables of a score as a reader sees them: gaps at 10, 30, 100 …, distances at the end, evaluations to targets."""

from collections.abc import Sequence

import numpy as np

from nas.compare.result import StudyResult
from nas.compare.statistics import quantile
from nas.compare.tables import Table, distance, percent, titled
from plas_bench.scoring import reported


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
    return Table(titled(r), header, rows)


def _gaps(r: StudyResult, algorithm: str, columns: Sequence[int]) -> list[str]:
    return [percent(quantile(r.matrix(algorithm, "gap")[:, i], 0.5)) for i in columns]


def _last(r: StudyResult, algorithm: str) -> list[str]:
    medians = {name: quantile(r.last(algorithm, name), 0.5) for name in ("share", "igd_plus", "epsilon")}
    return [percent(medians["share"]), *(distance(medians[name]) for name in ("igd_plus", "epsilon"))]
