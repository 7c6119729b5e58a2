"""The law `evidence` from tables of trainings, and how it does on laboratories that it has not seen."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import norm

from nas.evidence.predictors import outside
from nas.evidence.questions import Pairs, questions_of
from nas.evidence.tables import Asked
from objectives.evidence.joint_form import excess
from objectives.evidence.pooled_law import drawn_coordinates, law_of, ranges
from objectives.evidence.population import CENTRE, Population, fit_table, population, prior_between
from objectives.loss_law.differences import probability_below
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

WIDENINGS = np.round(np.arange(0.4, 3.01, 0.05), 2)
HELD = 0.9  # of differences in intervals of 90 %, mean over laboratories
JUDGED = ("equal tokens", "tokens")
EVIDENCE = "evidence"
MOST_PAIRS = 1_000  # of a table and question
LOOSE = 5.0  # sds of the prior of a fit to one table alone, in those of laboratories


@dataclass(frozen=True, eq=False)
class Pooled:
    """The population of some laboratories' tables, and what it was fitted on."""

    tables: Sequence[Asked]

    @cached_property
    def population(self) -> Population:
        """How these laboratories differ."""
        return population([each.trainings for each in self.tables])

    def law(self, widening: float) -> Law:
        """The law with draws so much wider."""
        fitted_on = ranges([each.trainings for each in self.tables])
        runs = sum(int(each.trainings.fitted.sum()) for each in self.tables)
        laboratories = sorted({each.laboratory for each in self.tables if each.trainings.fitted.any()})
        return law_of(
            self.population,
            widening,
            fitted_on,
            name=EVIDENCE,
            description=f"{runs:,} published trainings of {len(laboratories)} laboratories; sees size, stored and active, tokens, shape",
            runs=runs,
            data=", ".join(laboratories),
            tokenizer="of every laboratory its own",
            source="pooled from the tables of `plas list evidence`; docs/evidence.md",
            provenance={
                "widening": widening,
                "pooled": {each.name: int(each.trainings.fitted.sum()) for each in self.tables},
            },
        )


def pooled_law(tables: Sequence[Asked], stage: Callable[[str], None]) -> Law:
    """The law of all tables, its draws as much wider as laboratories left out need."""
    return Pooled(tables).law(calibrated(held_by_laboratory(tables, stage).values()))


def laws_left_out(tables: Sequence[Asked], stage: Callable[[str], None]) -> dict[str, Law]:
    """By laboratory: the law of the others, its draws as much wider as these need when left out themselves."""
    held, laboratories = held_by_laboratory(tables, stage), dict.fromkeys(each.laboratory for each in tables)
    return {
        name: Pooled([each for each in tables if each.laboratory != name]).law(
            calibrated([each for other, each in held.items() if other != name])
        )
        for name in laboratories
    }


def held_by_laboratory(tables: Sequence[Asked], stage: Callable[[str], None]) -> dict[str, FloatArray]:
    """By laboratory: the share of its measured differences that 90 % intervals of the law of the others hold, by widening (widenings,).

    A laboratory none of whose pairs is inside of what the others trained is left out.
    """
    found = {}
    for name in dict.fromkeys(each.laboratory for each in tables):
        stage(f"without {name}")
        others = Pooled([each for each in tables if each.laboratory != name])
        own = [held for each in tables if each.laboratory == name for held in _held(others, each)]
        if own:
            found[name] = np.mean(own, axis=0)
    return found


def calibrated(held: Iterable[FloatArray]) -> float:
    """The least widening with which 90 % intervals hold nine of ten differences, the mean over laboratories."""
    enough = np.stack([*held]).mean(axis=0) >= HELD
    return float(WIDENINGS[np.argmax(enough)] if enough.any() else WIDENINGS[-1])


def width_alone(of: Asked) -> float:
    """Median width of the 90 % intervals of differences that the form needs when it is fitted to this table alone, in the table's unit."""
    rows = of.trainings
    scale = fit_table(rows, CENTRE, LOOSE**2 * prior_between()).scale
    return float(2.0 * norm.ppf(0.95) * np.sqrt(2.0) * scale * rows.per)


def _held(others: Pooled, of: Asked) -> list[FloatArray]:
    """The same of one table, of each question that it has pairs for (widenings,)."""
    out = outside(others.law(1.0), of)
    found = []
    for name, pairs in questions_of(of.table, of.group).items():
        inside = np.flatnonzero(~(out[pairs.first] | out[pairs.second]))
        if name in JUDGED and len(inside):
            few = inside[np.unique(np.linspace(0, len(inside) - 1, MOST_PAIRS).astype(np.int64))]
            found.append(_held_by_widening(others.population, of, Pairs(pairs.first[few], pairs.second[few])))
    return found


def _held_by_widening(found: Population, of: Asked, pairs: Pairs) -> FloatArray:
    rows = of.trainings
    true = (rows.loss[pairs.first] - rows.loss[pairs.second]) / rows.per
    held = []
    for widening in WIDENINGS:
        theta, _ = drawn_coordinates(found, float(widening))
        losses = np.stack([excess(each, rows.of)[0] for each in theta])
        below = probability_below(losses[:, pairs.first] - losses[:, pairs.second], widening * found.misfit, true)
        held.append((np.abs(below - 0.5) <= 0.45).mean())
    return np.array(held)
