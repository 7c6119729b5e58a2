"""Trained models as the pooled law reads them: one table's losses, groups and quantities."""

from dataclasses import dataclass, replace

import numpy as np

from objectives.evidence.joint_form import ASPECT, MILLIARD, TOKENS, Quantities
from objectives.fitting.trained_models import Table
from search_spaces.arrays import AnyArray, BoolArray, FloatArray, IntArray

BYTES_PER_TOKEN = 4.4  # of tokenizers of 50,000 to 150,000 tokens on English text
LEAST_ACTIVE, LEAST_TOKENS = np.log(1e7), np.log(1e8)
LEAST_PER_PARAMETER = np.log(
    2.0
)  # tokens for each active parameter, a tenth of what is usual: with fewer a run is hardly past its warmup
MOST_EPOCHS = 4.0  # readings of a text that are as good as new ones, by Muennighoff et al. 2023


def in_unit(unit: str) -> float:
    """What a difference of one nat per token is in a unit of losses."""
    return 1.0 / BYTES_PER_TOKEN if unit == "nats per byte" else 1.0


@dataclass(frozen=True, eq=False)
class Trainings:
    """Models of one table.

    loss: as published, (n,); group: which rows have one level, (n,), counted from 0; per: what a difference of the law is in the losses' unit;
    fitted: rows of at most MOST_EPOCHS readings of their text, and of the size and tokens from which the law is fitted, (n,).
    """

    name: str
    laboratory: str
    table: Table
    loss: FloatArray
    group: IntArray
    of: Quantities
    fitted: BoolArray
    per: float = 1.0

    def __len__(self) -> int:
        return len(self.loss)

    def __getitem__(self, rows: AnyArray) -> "Trainings":
        group: IntArray = np.unique(self.group[rows], return_inverse=True)[1]
        return replace(
            self, table=self.table[rows], loss=self.loss[rows], group=group, of=self.of[rows], fitted=self.fitted[rows]
        )


def trainings(
    name: str,
    laboratory: str,
    table: Table,
    group: AnyArray,
    *,
    unit: str = "nats per token",
    epochs: FloatArray | None = None,
    outside: bool = False,
) -> Trainings:
    """A table's rows; what it does not say of shapes is taken as that of the reference, unknown tokens as 10¹⁰.

    unit: of its losses, "nats per byte" or per token. epochs: readings of the text, (n,); one without. outside: no row is fitted.

    Raises:
        ValueError: neither stored nor active parameters are known.
    """
    ones = np.ones(len(table))

    def log(quantity: str, reference: float, missing: float) -> FloatArray:
        return np.log(table.feature(quantity)) - reference if table.has(quantity) else np.full(len(table), missing)

    stored = np.log(table.feature("parameters")) - MILLIARD
    of = Quantities(
        active=np.log(table.feature("active_parameters")) - MILLIARD if table.has("active_parameters") else stored,
        stored=stored,
        tokens=log("tokens", TOKENS, 0.0),
        aspect=log("aspect_ratio", ASPECT, 0.0),
        kv=log("kv_ratio", 0.0, 0.0),
        query=log("query_ratio", 0.0, 0.0),
        split=log("top_k", 0.0, 0.0),
    )
    fitted = ((ones if epochs is None else epochs) <= MOST_EPOCHS) & (not outside)
    fitted &= (of.active >= LEAST_ACTIVE - MILLIARD) & (of.tokens >= LEAST_TOKENS - TOKENS)
    fitted &= of.tokens + TOKENS - of.active - MILLIARD >= LEAST_PER_PARAMETER
    numbered: IntArray = np.unique(group, return_inverse=True)[1]
    return Trainings(name, laboratory, table, table.loss, numbered, of, fitted, in_unit(unit))
