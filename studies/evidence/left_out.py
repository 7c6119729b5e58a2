"""The law `evidence` from tables of trainings, and how it does on laboratories that it has not seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from plas_evidence.judging import Pairs, questions_of
from plas_evidence.tables import GroupedTable
from scipy.stats import norm

from objectives.loss_law.draws import probability_below
from objectives.loss_law.law import Law
from plas_fit.evidence.joint_form import excess
from studies.evidence.population import (
    CENTRE,
    Population,
    drawn_coordinates,
    fit_table,
    law_of,
    population,
    prior_between,
)

FACTORS = [round(0.05 * step, 2) for step in range(10, 61)]
HELD = 0.9  # of differences in intervals of 90 %, mean over laboratories
DESIGNS = "equal tokens"
JUDGED = (DESIGNS, "tokens")  # pairs that decide how wide intervals are
EVIDENCE = "evidence"
CANNOT_SEE = ("vocabulary", "text", "KV heads, FFN share and head size beyond their parameters")
LEAST_PAIRS, MOST_PAIRS = 5, 1_000  # of a table and question
NO_PAIRS = Pairs(*np.zeros((2, 0), dtype=np.int64))
LOOSE = 5.0  # sds of the prior of a fit to one table alone, in those of laboratories


@dataclass(frozen=True, eq=False)
class Pooled:
    """The population of some laboratories' tables, and what it was fitted on."""

    tables: Sequence[GroupedTable]

    @cached_property
    def population(self) -> Population:
        """How these laboratories differ."""
        return population([table.trainings for table in self.tables])

    def law(self, widening: float) -> Law:
        """The law with draws so much wider."""
        rows = [table.trainings for table in self.tables]
        runs = sum(int(table.trainings.fitted.sum()) for table in self.tables)
        laboratories = sorted({table.laboratory for table in self.tables if table.trainings.fitted.any()})
        return law_of(
            self.population,
            widening,
            rows,
            name=EVIDENCE,
            description=f"{runs:,} published trainings of {len(laboratories)} laboratories; sees size, stored and active, tokens, shape",
            runs=runs,
            data=", ".join(laboratories),
            tokenizer="of every laboratory its own",
            cannot_see=CANNOT_SEE,
            source="pooled from the tables of `plas list evidence`; docs/evidence.md",
            provenance={
                "widening": widening,
                "pooled": {table.name: int(table.trainings.fitted.sum()) for table in self.tables},
            },
        )


def pooled_law(tables: Sequence[GroupedTable], without: Sequence["LeftOut"]) -> Law:
    """The law of all tables, its draws as much wider as laboratories left out need."""
    return Pooled(tables).law(calibrated(without))


def laws_left_out(without: Sequence["LeftOut"]) -> dict[str, Law]:
    """By laboratory: the law of the others, its draws as much wider as these need when left out themselves."""
    return {
        one.laboratory: one.others.law(calibrated([other for other in without if other is not one])) for one in without
    }


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A laboratory, the others pooled, and its pairs of rows that would be fitted, by question a list of (table, pairs)."""

    laboratory: str
    others: Pooled
    pairs: Mapping[str, list[tuple[GroupedTable, Pairs]]]


@cache
def held(one: LeftOut, widening: float) -> float | None:
    """The share of the measured differences that 90 % intervals hold, the mean over questions and tables; None without any."""
    pooled, shares = one.others.population, []
    theta = drawn_coordinates(pooled, widening)[0]
    for of, pairs in (own for question in JUDGED for own in one.pairs[question]):
        rows = of.trainings
        true = (rows.loss[pairs.first] - rows.loss[pairs.second]) / rows.per
        losses = excess(theta, rows.of)
        gaps = losses[:, pairs.first] - losses[:, pairs.second]
        below = probability_below(gaps, widening * pooled.misfit, true)
        shares.append(float((np.abs(below - 0.5) <= HELD / 2).mean()))
    return float(np.mean(shares)) if shares else None


def left_out(tables: Sequence[GroupedTable], stage: Callable[[str], None]) -> list[LeftOut]:
    """Every laboratory left out in turn."""
    without = []
    for name in dict.fromkeys(table.laboratory for table in tables):
        stage(f"without {name}")
        others = Pooled([table for table in tables if table.laboratory != name])
        own = [table for table in tables if table.laboratory == name]
        pairs = {question: [(table, p) for table in own if len(p := _fitted(table, question))] for question in JUDGED}
        without.append(LeftOut(name, others, pairs))
    return without


def calibrated(without: Sequence[LeftOut]) -> float:
    """The factor with which 90 % intervals hold nine of ten differences, the mean over laboratories: no less, and no more than that takes."""
    low, high = 0, len(FACTORS) - 1
    while low < high:  # wider intervals hold more
        middle = (low + high) // 2
        shares = [held(one, FACTORS[middle]) for one in without]
        if np.mean([share for share in shares if share is not None]) >= HELD:
            high = middle
        else:
            low = middle + 1
    return FACTORS[low]


def width_alone(of: GroupedTable) -> float:
    """Median width of the 90 % intervals of differences that the form needs when it is fitted to this table alone, in the table's unit."""
    rows = of.trainings
    scale = fit_table(rows, CENTRE, LOOSE**2 * prior_between()).scale
    return float(2.0 * norm.ppf(0.95) * np.sqrt(2.0) * scale * rows.per)


def _fitted(of: GroupedTable, question: str) -> Pairs:
    """A question's pairs of a table among rows that would be fitted, MOST_PAIRS of them at most, evenly taken; none of fewer than LEAST_PAIRS."""
    pairs, rows = questions_of(of.table, of.group).get(question, NO_PAIRS), of.trainings.fitted
    kept = np.flatnonzero(rows[pairs.first] & rows[pairs.second])
    if len(kept) < LEAST_PAIRS:
        return NO_PAIRS
    few = kept[np.unique(np.linspace(0, len(kept) - 1, MOST_PAIRS).astype(np.int64))]
    return Pairs(pairs.first[few], pairs.second[few])
