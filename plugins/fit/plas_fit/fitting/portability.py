"""What a law given beforehand predicts for a table of other models, and in which unit that says the losses are."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from objectives.loss_law.draws import Draw, losses_without_kinds
from objectives.loss_law.features import WITH_EMBEDDINGS
from objectives.loss_law.form import beyond_floats
from objectives.loss_law.law import Law
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray

NATS_PER_BIT = math.log(2.0)
CLOSE = 0.05  # errors, of the median loss, below which a law says in which unit losses are
HIGH = 1.2  # losses over what their size makes usual: public data in nats lie at 0.9 to 1.27, in bits at 1.25 to 1.8
LEAST_PARAMETERS, LEAST_TOKENS = 1e7, 1e8
LOW = 0.6  # below: tokens hold 3 to 5 bytes, so that nats per byte lie at 0.2 to 0.3, bits per byte at 0.25 to 0.5


def doubt(table: Table, given: Law) -> str | None:
    """Why the losses may be bits, or of bytes; None where nothing says so, or a given law predicts them well as nats."""
    found = _by_law(table, given)
    if found is not None and found[0] < CLOSE:
        return None
    remedy = "--loss-unit bits converts them, --loss-unit nats says that they are nats"
    if found is not None and found[1] < CLOSE and found[1] < found[0] / 2:
        return (
            f"these losses look like bits: {given.name} predicts them to {found[1]:.1%} as bits and to {found[0]:.0%} as nats; "
            f"{remedy}"
        )
    ratio = _by_size(table, given)
    if ratio is not None and ratio > HIGH:
        return (
            f"these losses may be bits: half of them are more than {ratio:.2f} times those of usual models of their size and tokens "
            f"(as bits {ratio * NATS_PER_BIT:.2f} times); {remedy}"
        )
    if ratio is not None and ratio < LOW and _as_large_as_published(table, given):
        return (
            f"these losses may be per byte or per character: half of them are less than {ratio:.2f} times those of usual models of their size and "
            "tokens; a law is of nats per token: nats per byte · bytes per token (of bits · 0.693 too); --loss-unit nats says that they are nats per token"
        )
    return None


def _as_large_as_published(table: Table, given: Law) -> bool:
    """Whether most rows are of sizes at which published families say what is usual: of smaller trainings they say too high a loss."""
    tokens = table.feature("tokens") if table.has("tokens") else given.tokens
    small = (table.feature("active_parameters") < LEAST_PARAMETERS) | (np.asarray(tokens) < LEAST_TOKENS)
    return bool(small.mean() < 0.5)


def _by_law(table: Table, given: Law) -> tuple[float, float] | None:
    """RMSE of a given law over the median loss, were the losses nats and were they bits."""
    assumed = stand_ins(given, table)
    if assumed is None:
        return None
    predicted, middle = predictions(given, table, assumed), float(np.median(table.loss))
    if not np.isfinite(predicted).all():
        return None
    as_nats, as_bits = predicted - table.loss, predicted / NATS_PER_BIT - table.loss
    return float(np.sqrt((as_nats**2).mean())) / middle, float(np.sqrt((as_bits**2).mean())) / middle


def _by_size(table: Table, given: Law) -> float | None:
    """Median of loss over that of a compute-optimal family on web text, of the same size and tokens.

    1.8172 + 482.01/N^0.3478 + 2085.43/D^0.3658. Source: Besiroglu et al. 2024.
    """
    tokens = table.feature("tokens") if table.has("tokens") else given.tokens
    if tokens is None or not table.has("active_parameters"):
        return None
    usual = 1.8172 + 482.01 / table.feature("active_parameters") ** 0.3478 + 2085.43 / tokens**0.3658
    return float(np.median(table.loss / usual))


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
