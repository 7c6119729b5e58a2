"""Fits curves to a table of scores, and judges them by laboratories left out."""

from dataclasses import asdict, dataclass

import numpy as np

from objectives.scores.curves import FamilyCurve, Scores
from objectives.scores.estimate import Rows, drawn
from objectives.scores.predicted import interval
from objectives.scores.table import ScoreTable
from search_spaces.arrays import AnyArray, FloatArray

FEWEST = 5  # models of a family
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Family:
    """Models that have every task of a family: their rows of the table, the mean score, the ends of it."""

    name: str
    tasks: list[str]
    rows: AnyArray
    score: FloatArray
    chance: float
    top: float


@dataclass(frozen=True)
class LeftOut:
    """A laboratory that was left out, predicted by the others: RMSE in the score's unit, that of the mean of the others and of the nearest of them in bits per byte.

    inside: share of its scores in the 90 % interval.
    """

    family: str
    laboratory: str
    models: int
    rmse: float
    mean_rmse: float
    nearest_rmse: float
    inside: float


def families_of(table: ScoreTable) -> list[Family]:
    """The families of a table, each with the models that have all of its tasks.

    Raises:
        ValueError: too few models, or all of one score.
    """
    found, faults = [], []
    for name, tasks in table.families.items():
        columns = np.array([table.scores[task] for task in tasks])
        rows = np.flatnonzero(np.isfinite(columns).all(axis=0))
        if len(np.unique(table.bits[rows])) < FEWEST:
            counted = f"{len(np.unique(table.bits[rows]))} of {len(table)}"
            faults.append(
                f"{name}: expected at least {FEWEST} models of different bits per byte with all of its tasks, got {counted}; add models, or leave out a task"
            )
            continue
        score = columns[:, rows].mean(axis=0)
        if np.ptp(score) == 0.0:
            faults.append(f"{name}: expected scores that differ, got {score[0]:g} in all models; leave it out")
            continue
        chance = float(np.mean([table.chance.get(task, 0.0) for task in tasks]))
        top = float(np.mean([table.top.get(task, 1.0) for task in tasks]))
        found.append(Family(name, tasks, rows, score, chance, top))
    if faults:
        raise ValueError("\n".join(faults))
    return found


def fitted(table: ScoreTable, name: str, seed: int) -> Scores:
    """The curves of a table; of a laboratory that it does not have where it has several, else of its own.

    Raises:
        ValueError: too few models.
    """
    several = len(set(table.laboratory.tolist())) > 1
    everything = np.ones(len(table), dtype=bool)
    curves = {each.name: _curve(each, table, everything, seed, new_laboratory=several) for each in families_of(table)}
    return Scores(
        name=name,
        text=table.text,
        centre=centre(table),
        fitted_on=(round(float(table.bits.min()), DIGITS), round(float(table.bits.max()), DIGITS)),
        models=len(table),
        laboratories=sorted(set(table.laboratory.tolist())),
        new_laboratory=several,
        families=curves,
        source=asdict(table.source),
    )


def centre(table: ScoreTable) -> float:
    """The mean of the table's bits per byte, b₀."""
    return round(float(table.bits.mean()), DIGITS)


def left_out(table: ScoreTable, seed: int) -> list[LeftOut]:
    """Each laboratory predicted by a fit to the others, family by family; none of one laboratory."""
    found, laboratories = [], sorted(set(table.laboratory.tolist()))
    for each in families_of(table):
        for laboratory in laboratories if len(laboratories) > 1 else []:
            own = table.laboratory[each.rows] == laboratory
            if own.any() and len(np.unique(table.bits[each.rows][~own])) >= FEWEST:
                found.append(_judged(each, table, laboratory, seed))
    return found


def _judged(family: Family, table: ScoreTable, laboratory: str, seed: int) -> LeftOut:
    out = table.laboratory == laboratory
    curve = _curve(family, table, ~out, seed, new_laboratory=True)
    own = out[family.rows]
    bits, score = table.bits[family.rows], family.score
    value, low, high = interval(curve, bits[own] - centre(table))
    nearest = np.abs(bits[own][:, None] - bits[~own]).argmin(axis=1)
    errors = (value - score[own], score[~own].mean() - score[own], score[~own][nearest] - score[own])
    model, mean, near = (float(np.sqrt((each**2).mean())) for each in errors)
    inside = float(((low <= score[own]) & (score[own] <= high)).mean())
    return LeftOut(family.name, laboratory, int(own.sum()), model, mean, near, inside)


def _curve(family: Family, table: ScoreTable, kept: AnyArray, seed: int, *, new_laboratory: bool) -> FamilyCurve:
    here = kept[family.rows]
    rows, span = family.rows[here], family.top - family.chance
    share = (family.score[here] - family.chance) / span
    draws = drawn(
        Rows(table.bits[rows] - centre(table), share, table.laboratory[rows]), seed, new_laboratory=new_laboratory
    )
    draws[:, 2] *= span
    return FamilyCurve(
        tasks=[task.partition(":")[2].strip() for task in family.tasks],
        chance=family.chance,
        top=family.top,
        models=len(rows),
        draws=[
            (round(a, DIGITS), round(b, DIGITS), max(round(c, DIGITS), 10.0**-DIGITS)) for a, b, c in draws.tolist()
        ],
    )
