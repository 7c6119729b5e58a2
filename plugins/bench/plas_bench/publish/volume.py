"""Hypervolumes as published: within a given point, on given bounds, objectives linear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas.compare.result import StudyResult
from nas.errors import UsageError
from nas.problem.evaluations import APPROXIMATE, too_many, volume
from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Volume:
    """Hypervolume as published: within a given point, on given bounds of each objective; all (m,), minimised."""

    reference: FloatArray
    best: FloatArray
    worst: FloatArray

    def hypervolume(self, values: FloatArray) -> float:
        """Volume that a front (n, m) dominates, its objectives linear, each in units of its bounds; of too many points approximate."""
        extent = self.worst - self.best
        points, at = (values - self.best) / extent, (self.reference - self.best) / extent
        return volume(points, at, approximate=too_many(values))


def volume_of(
    objectives: Sequence[Objective], reference: Mapping[str, float], bounds: Mapping[str, Sequence[float]]
) -> Volume | None:
    """The given point and bounds in the order of the objectives; None where neither is given.

    Without a point it is the worst bound; without bounds values are as they are. A maximised objective is
    named as its column, and its numbers are the column's.

    Raises:
        UsageError: an objective that lacks one, or a name that is no objective.
    """
    if not reference and not bounds:
        return None
    names = [objective.name.removeprefix("-") for objective in objectives]
    signs = np.array([-1.0 if objective.name.startswith("-") else 1.0 for objective in objectives])
    for flag, given in (("reference", reference), ("bounds", bounds)):
        if given and set(given) != set(names):
            raise UsageError(
                f"--{flag}: expected one for each of {', '.join(names)}, got {', '.join(given)}; give all or none"
            )
    ends = np.array([sorted(bounds[name]) if bounds else (0.0, 1.0) for name in names], dtype=np.float64)
    if (ends[:, 0] >= ends[:, 1]).any() or not np.isfinite(ends).all():
        raise UsageError("--bounds: expected two finite numbers that differ, got others; write accuracy=0.5:0.8")
    best = np.where(signs > 0, ends[:, 0], -ends[:, 1]) if bounds else np.zeros(len(names))
    worst = np.where(signs > 0, ends[:, 1], -ends[:, 0]) if bounds else np.ones(len(names))
    at = signs * np.array([reference[name] for name in names], dtype=np.float64) if reference else worst
    return Volume(at, best, worst)


def volume_rows(results: Sequence[StudyResult], volumes: Mapping[str, Volume]) -> list[dict[str, Any]]:
    """Hypervolume of what every run found in the end, by study and run."""
    return [
        {
            "study": r.name,
            "strategy": run.strategy,
            "run": run.run,
            "evaluations": int(r.counts[-1]),
            "hypervolume": volumes[r.name].hypervolume(run.front),
        }
        for r in results
        if r.name in volumes
        for run in r.runs
        if run.ended != "failed"
    ]


def volume_line(r: StudyResult, rows: Sequence[Mapping[str, Any]]) -> str:
    """Median hypervolumes of a study's strategies, the largest first, from the rows of all studies."""
    mine = [row for row in rows if row["study"] == r.name]
    medians = {
        name: float(np.median([row["hypervolume"] for row in mine if row["strategy"] == name])) for name in r.strategies
    }
    ordered = ", ".join(f"{name} {medians[name]:.6g}" for name in sorted(medians, key=lambda name: -medians[name]))
    rough = f"; {APPROXIMATE}" if any(too_many(run.front) for run in r.runs) else ""
    return f"{r.name}: hypervolume as given (median of runs, largest first{rough}): {ordered}."
