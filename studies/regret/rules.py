"""Rules that pick among trained designs that fit, and the regret of their picks."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from plas_evidence.tables import GroupedTable, Prediction, by_law

from nas.study.catalogue import load_law
from objectives.loss_law.draws import trimmed_mean
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray, IntArray
from studies.evidence.left_out import EVIDENCE, Pooled

LEAST_REGRET, ACTIVE = "evidence, least regret", "most active"
ACTIVE_STORED, STORED, RANDOM, SEEN = "most active, then stored", "most parameters", "random", "evidence, not left out"
TIE = 1e-9  # nats
ALIKE, SAME = 0.01, 0.001  # shares of a count

Rule = Callable[[IntArray], IntArray]  # the rows that fit -> those of them that tie for the pick


def laws_left_out(tables: Sequence[GroupedTable]) -> dict[str, Law]:
    """By laboratory the law evidence without its tables, its draws as much wider as those of the law that ships."""
    widening = float(load_law(EVIDENCE).provenance["widening"])
    laboratories = dict.fromkeys(table.laboratory for table in tables)
    return {name: Pooled([each for each in tables if each.laboratory != name]).law(widening) for name in laboratories}


def rules_of(source: GroupedTable, left_out: Law) -> dict[str, Rule]:
    """Every rule by name, for the rows of a table."""
    table = source.table
    active, stored = table.feature("active_parameters"), table.feature("parameters")
    own = by_law(left_out, source)
    return {
        EVIDENCE: _least_loss(own),
        LEAST_REGRET: _least_regret(own),
        "hw_codesign": _least_loss(by_law(load_law("hw_codesign"), source)),
        "chinchilla_epoch": _least_loss(by_law(load_law("chinchilla_epoch"), source)),
        ACTIVE: lambda rows: _most(active, rows, SAME),
        ACTIVE_STORED: lambda rows: _most(stored, _most(active, rows, ALIKE), SAME),
        STORED: lambda rows: _most(stored, rows, SAME),
        RANDOM: lambda rows: rows,
        SEEN: _least_loss(by_law(load_law(EVIDENCE), source)),
    }


def regrets(
    rules: Mapping[str, Rule], rows: IntArray, loss: FloatArray
) -> tuple[dict[str, float], dict[str, IntArray]]:
    """Of each rule the regret, nats, and the rows that tie for its pick; rows that fit (n,) with their losses (n,)."""
    picks = {name: rule(rows) for name, rule in rules.items()}
    lost = {name: float(loss[np.isin(rows, picked)].mean() - loss.min()) for name, picked in picks.items()}
    return lost, picks


def _most(quantity: FloatArray, rows: IntArray, tied: float) -> IntArray:
    """The rows that hold the most of a quantity, within a share of it."""
    held = quantity[rows]
    most: IntArray = rows[held >= (1.0 - tied) * held.max()]
    return most


def _least(losses: FloatArray, rows: IntArray) -> IntArray:
    """The rows of the least loss (n,); all of them where none is priced."""
    return rows if np.isnan(losses).all() else rows[losses <= np.nanmin(losses) + TIE]


def _least_loss(said: Prediction | None) -> Rule:
    if said is None:
        return lambda rows: rows
    return lambda rows: _least(said.losses[rows], rows)


def _least_regret(said: Prediction | None) -> Rule:
    if said is None or said.draws is None:
        return _least_loss(said)
    draws = said.draws

    def pick(rows: IntArray) -> IntArray:
        losses = draws[:, rows]
        lost = losses - losses.min(axis=1, keepdims=True)
        return _least(np.array([trimmed_mean(of_row) for of_row in lost.T]), rows)

    return pick
