"""Meaning of another tool's columns, and the point and bounds that its hypervolumes were published with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nas.errors import UsageError
from nas.problem.indicators import too_many, volume
from nas.problem.objective import Objective
from search_spaces.arrays import FloatArray

LABELS = ("strategy", "run", "study", "evaluation", "violation", "key")
FORM = "run=COLUMN, key=COLUMN (or {}), NAME=COLUMN, minimize:COLUMN or maximize:COLUMN".format(
    ", ".join(name for name in LABELS if name not in ("run", "key"))
)


@dataclass(frozen=True)
class Columns:
    """labels: what a row is of, by column; objectives: column and sign by name, of which a maximised one is negated."""

    labels: Mapping[str, str] = field(default_factory=dict)
    objectives: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether any column was given."""
        return bool(self.labels or self.objectives)


def columns_of(texts: Sequence[str]) -> Columns:
    """Columns by `--column`: `run=seed`, `key=Sub-network`, `total_ms=Latency (ms)`, `maximize:BLEU`.

    Raises:
        UsageError: another form, or a name twice.
    """
    labels: dict[str, str] = {}
    objectives: dict[str, tuple[str, float]] = {}
    for text in texts:
        direction = re.fullmatch(r"(minimi[sz]e|maximi[sz]e):(.+)", text.strip())
        name, sign, column = text.partition("=")
        if direction is not None:
            column = direction[2].strip()
            worse = 1.0 if direction[1].startswith("min") else -1.0
            name, sign = (column if worse > 0 else f"-{column}"), ":"
        else:
            name, column, worse = name.strip(), column.strip(), 1.0
        if not sign or not name or not column:
            raise UsageError(f"--column: expected {FORM}, got {text!r}; write for example --column maximize:accuracy")
        if name in labels or name.removeprefix("-") in {known.removeprefix("-") for known in objectives}:
            raise UsageError(f"--column: expected each name once, got {name} twice; leave one out")
        if name in LABELS:
            labels[name] = column
        else:
            objectives[name] = (column, worse)
    return Columns(labels, objectives)


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


def bounds_by_name(texts: Sequence[str]) -> dict[str, list[float]]:
    """`accuracy=0.5:0.8` texts.

    Raises:
        UsageError: another form.
    """
    found: dict[str, list[float]] = {}
    for text in texts:
        name, _, ends = text.rpartition("=")
        try:
            low, high = (float(end) for end in ends.split(":"))
        except ValueError:
            raise UsageError(f"--bounds: expected NAME=LOW:HIGH, got {text!r}; write accuracy=0.5:0.8") from None
        found[name.strip()] = [low, high]
    return found


def reference_by_name(texts: Sequence[str]) -> dict[str, float]:
    """`accuracy=0.5` texts.

    Raises:
        UsageError: another form.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--reference: expected NAME=VALUE, got {text!r}; write accuracy=0.5") from None
    return found
