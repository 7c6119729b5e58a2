"""Predictions for trained models: by laws, and by rules that need none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nas.study.catalogue import load_law
from objectives.fitting.portability import drawn_predictions, predictions, stand_ins
from objectives.fitting.trained_models import Table
from objectives.loss_law.law import Law
from objectives.plugins import documents
from search_spaces.arrays import FloatArray

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
    """Predictions of a law or a rule for a table's rows: losses, nan where it has none, (n,).

    in_nats: losses, and not only an order. draws: the same under each of a law's draws, (draws, n); None without any.
    """

    losses: FloatArray
    in_nats: bool
    draws: FloatArray | None = None


def by_law(law: Law, table: Table) -> Prediction | None:
    """A law's losses, nats; None where the table lacks what it needs."""
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted, priced = predictions(law, table, assumed), np.ones(len(table), dtype=bool)
    for name, (low, high) in law.prices.items():
        if table.has(name):
            priced &= (table.feature(name) >= low) & (table.feature(name) <= high)
    if law.prices_sparse and table.has("n_experts"):  # what experts must be is not said by these tables
        priced &= table.feature("n_experts") == 1
    losses = np.where(priced & np.isfinite(predicted), predicted, np.nan)
    return Prediction(losses, True, drawn_predictions(law, table, assumed) if law.drawn else None)


def by_rule(quantity: str, table: Table) -> Prediction | None:
    """The rule that more of a quantity loses less; None where the table does not say it."""
    return Prediction(-table.feature(quantity), False) if table.has(quantity) else None
