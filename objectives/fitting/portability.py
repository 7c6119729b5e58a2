"""How far a law given beforehand carries to a table: its ranks, and what an offset or a line would mend."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, spearmanr

from objectives.fitting.trained_models import Table
from objectives.loss_law.draws import Draw, losses_without_kinds
from objectives.loss_law.features import WITH_EMBEDDINGS
from objectives.loss_law.form import beyond_floats
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray


@dataclass(frozen=True)
class Portability:
    """A given law against the observed losses of a table.

    spearman, kendall: rank correlations; slope: nats observed per nat predicted, of the least-squares
    line; as_is_rmse, offset_rmse, line_rmse: nats, of the prediction itself, with a constant added,
    and through that line; assumed: what stood in for quantities that the table does not hold.
    """

    law: str
    spearman: float
    kendall: float
    slope: float
    as_is_rmse: float
    offset_rmse: float
    line_rmse: float
    assumed: Mapping[str, float]


def portability(law: Law, table: Table) -> Portability | None:
    """The law's predictions against the table; None where too much is missing or nothing varies."""
    assumed = stand_ins(law, table)
    if assumed is None:
        return None
    predicted = predictions(law, table, assumed)
    if not np.isfinite(predicted).all() or np.ptp(predicted) == 0 or np.ptp(table.loss) == 0:
        return None
    slope, offset = np.polyfit(predicted, table.loss, 1)
    error = predicted - table.loss
    return Portability(
        law.name,
        float(spearmanr(predicted, table.loss).statistic),
        float(kendalltau(predicted, table.loss).statistic),
        float(slope),
        _rms(error),
        _rms(error - error.mean()),
        _rms(slope * predicted + offset - table.loss),
        assumed,
    )


def stand_ins(law: Law, table: Table) -> dict[str, float] | None:
    """What to take for each quantity of a law that a table does not hold; None where nothing can stand in for one."""
    found = {name: stand_in(law, name) for name in law.law_form.features if not table.has(_counted(name))}
    assumed = {name: value for name, value in found.items() if value is not None}
    return assumed if len(assumed) == len(found) else None


def stand_in(law: Law, quantity: str) -> float | None:
    """What to take for a quantity that is unknown: the law's tokens, dense models, as many KV and
    query dimensions as the width, experts of four times it, else the middle of the law's range."""
    if quantity == "tokens":
        return law.tokens
    if quantity in ("activation_rate", "n_experts", "top_k", "kv_ratio", "query_ratio", "granularity"):
        return 1.0
    single = {"ffn_ratio": "expert_ffn_ratio"}.get(quantity, quantity)  # of one active expert
    low, high = {**law.prices, **law.fitted_on}.get(quantity) or law.fitted_on.get(single, (0.0, 0.0))
    return math.sqrt(low * high) or None


def predictions(law: Law, table: Table, assumed: Mapping[str, float]) -> FloatArray:
    """The law's loss of every row, nats, (n,)."""
    losses: FloatArray
    (losses,) = _losses(law, table, assumed, [Draw(law.law_form, law.coefficients, law.layer_deltas)])
    return losses


def drawn_predictions(law: Law, table: Table, assumed: Mapping[str, float]) -> FloatArray:
    """The loss of every row under each of the law's draws, nats, (draws, n)."""
    return _losses(law, table, assumed, law.drawn)


@beyond_floats()
def _losses(law: Law, table: Table, assumed: Mapping[str, float], draws: Sequence[Draw]) -> FloatArray:
    def quantity(name: str) -> FloatArray:
        if name in assumed:
            return np.full(len(table), assumed[name])
        if name in WITH_EMBEDDINGS and name not in table.numbers:
            return table.feature(_counted(name)) + _embeddings(law, table)
        return table.feature(name)

    losses: FloatArray = losses_without_kinds(draws, len(table), lambda form, c: form.values(quantity, c))
    for kind, share in table.kinds.items():
        losses += np.array([draw.layer_deltas.get(kind, 0.0) for draw in draws])[:, None] * share
    return losses


def _counted(name: str) -> str:
    """The count that a quantity of a law is made of; the quantity itself of any other."""
    return name.removesuffix("_with_embeddings")


def _embeddings(law: Law, table: Table) -> FloatArray | float:
    """Parameters of the law's own embeddings; none where no width is known, so that a count is taken as it is."""
    tables = law.vocabulary * (1.0 if law.tied else 2.0)
    return tables * table.feature("width") if table.has("width") else 0.0


def _rms(error: FloatArray) -> float:
    return float(np.sqrt((error**2).mean()))
