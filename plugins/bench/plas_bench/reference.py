"""Reference results that ship: every strategy of ours with seeds on every problem, a row per run; `benchmarks/bench_reference.py` wrote them."""

import csv
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from nas.compare.statistics import quantile
from nas.compare.tables import distance, percent
from nas.document.document import Table, table_of
from objectives import outside
from search_spaces.arrays import FloatArray

FILE = Path(__file__).parent / "reference.csv"
COUNTS = (10, 20, 30, 50, 100, 300, 1000)
COLUMNS = (
    "problem",
    "algorithm",
    "seed",
    "evaluations",
    *(f"gap_{count}" for count in COUNTS),
    "share",
    "igd_plus",
    "epsilon",
)
MEASURED = (*(f"gap_{count}" for count in COUNTS), "share", "igd_plus", "epsilon")


@dataclass(frozen=True, eq=False)
class ReferenceRuns:
    """Runs of one strategy on one problem: a measure of each run by name, (runs,), NaN where none is reported."""

    algorithm: str
    measures: dict[str, FloatArray]

    @property
    def evaluations(self) -> int:
        """Distinct evaluations that were asked for; a run that ended before keeps its last values."""
        return max(count for count in COUNTS if not np.isnan(self.measures[f"gap_{count}"]).all())

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.measures["share"])

    def median(self, measure: str) -> float:
        """The median over runs; NaN where one lacks it."""
        values = self.measures[measure]
        return float("nan") if np.isnan(values).any() else quantile(values, 0.5)


@cache
def _rows() -> dict[str, list[dict[str, str]]]:
    """Rows by problem."""
    text = outside.text(FILE, outside.MB)
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        found.setdefault(row["problem"], []).append(row)
    return found


def reference_runs(problem: str) -> list[ReferenceRuns]:
    """What ships for a problem, the smallest median gap at the end first."""
    by_algorithm: dict[str, list[dict[str, str]]] = {}
    for row in _rows().get(problem, []):
        by_algorithm.setdefault(row["algorithm"], []).append(row)
    found = [
        ReferenceRuns(
            algorithm,
            {name: np.array([float(row[name] or "nan") for row in rows]) for name in MEASURED},
        )
        for algorithm, rows in by_algorithm.items()
    ]
    return sorted(found, key=lambda each: (-each.evaluations, each.median(f"gap_{each.evaluations}"), each.algorithm))


def reference_table(problem: str) -> Table:
    """Median gaps of the reference runs of a problem on the way, and share, IGD+ and epsilon at the end."""
    found = reference_runs(problem)
    counts = [count for count in COUNTS if any(not np.isnan(each.median(f"gap_{count}")) for each in found)]
    header = (
        "strategy",
        "runs",
        "evaluations",
        *(f"gap at {count:,}" for count in counts),
        "share found",
        "IGD+",
        "epsilon",
    )
    rows = tuple(
        (
            each.algorithm,
            str(each.runs),
            f"{each.evaluations:,}",
            *(percent(each.median(f"gap_{count}")) for count in counts),
            percent(each.median("share")),
            *(distance(each.median(name)) for name in ("igd_plus", "epsilon")),
        )
        for each in found
    )
    return table_of(header, rows, f"{problem}: reference results, medians")
