"""What is asked about trained models: laws, and rules that need none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.errors import UsageError
from nas.evidence.tables import GroupedTable
from nas.study.catalogue import load_law
from objectives.evidence.trainings import MOST_EPOCHS, in_unit
from objectives.fitting.portability import drawn_predictions, predictions, stand_ins
from objectives.fitting.trained_models import Table
from objectives.loss_law.coverage import Range, kinds_of
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.arrays import BoolArray, FloatArray

RULES = {
    "more parameters": "parameters",
    "more active parameters": "active_parameters",
    "deeper": "depth",
    "wider": "width",
}  # what loses less, by the quantity that is larger


def laws_by_name(further: Sequence[str]) -> dict[str, Law]:
    """Every shipped law, then further ones by name or file.

    Raises:
        UsageError: one of them cannot be read.
    """
    found = {name: load_law(name) for name in documents("objectives.laws")}
    for given in further:
        law = load_law(given)
        found[given if law.name in found else law.name] = law
    return found


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a law or a rule says of a table's rows: losses, nan where it says nothing, (n,).

    in_nats: losses, and not only an order. draws: the same under each of a law's draws, (draws, n); None without any. misfit: sd
    of one row about them; outside: rows outside of what the law was fitted on, of which its draws claim nothing, (n,).
    """

    losses: FloatArray
    in_nats: bool
    draws: FloatArray | None = None
    misfit: float = 0.0
    outside: BoolArray | None = None


def by_law(law: Law, of: GroupedTable) -> Prediction | None:
    """A law's losses in the table's unit; None where it cannot be asked.

    Raises:
        UsageError: its formula gives no loss of any row that it prices.
    """
    table, per = of.table, in_unit(of.unit)
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted, priced = predictions(law, table, assumed), np.ones(len(table), dtype=bool)
    for name, (low, high) in law.prices.items():
        if table.has(name):
            priced &= (table.feature(name) >= low) & (table.feature(name) <= high)
    if law.prices_sparse and table.has("n_experts"):  # what experts must be is not said by these tables
        priced &= table.feature("n_experts") == 1
    finite = np.isfinite(predicted)
    if priced.any() and not (finite & (predicted > 0.0))[priced].any():
        raise UsageError(
            f"law: expected a formula that gives losses, got none above 0 from {law.name} for {priced.sum():,} models "
            f"of {of.name}; correct its form or its coefficients"
        )
    losses = per * np.where(priced & finite, predicted, np.nan)
    if not law.drawn:
        return Prediction(losses, True)
    draws = per * drawn_predictions(law, table, assumed)
    return Prediction(losses, True, draws, per * (law.residual_sd or 0.0), outside(law, of))


def outside(law: Law, of: GroupedTable) -> BoolArray:
    """Rows outside the ranges that a law was fitted on, that read their text more often than counts as new, or of a table outside, (n,)."""
    table, found = of.table, np.full(len(of.table), of.no_evidence)

    def range_of(name: str) -> Range | None:
        return (column := table.feature(name), column) if table.has(name) else None

    experts = table.feature("n_experts") if table.has("n_experts") else np.ones(len(table))
    for over in kinds_of(law.regions, experts, range_of, {}).values():
        found |= over > 0.0
    return found if of.epochs is None else found | (of.epochs > MOST_EPOCHS)


def by_rule(quantity: str, table: Table) -> Prediction | None:
    """The rule that more of a quantity loses less; None where the table does not say it."""
    return Prediction(-table.feature(quantity), False) if table.has(quantity) else None
