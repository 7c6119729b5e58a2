"""Whether losses look like nats per token, like bits, or like those of a byte, by a law given beforehand and by the models' sizes."""

import math

import numpy as np

from objectives.fitting.portability import predictions, stand_ins
from objectives.fitting.trained_models import Table
from objectives.loss_law.law import Law

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
