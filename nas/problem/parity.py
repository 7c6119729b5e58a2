"""Tokens until a design's predicted loss is level with a published model's."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from nas.problem.settings import trained_on
from nas.problem.uncertainty import ENDS, misfit, possible_losses
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import FloatArray

FEWEST, MOST = 1e8, 1e15  # tokens that are looked at
STEP = 1.25  # between two numbers of tokens, of which logarithms are interpolated
MISFITS = 9  # quantiles of what one design is off the law, with each draw


@dataclass(frozen=True)
class Parity:
    """Training tokens at which a design's loss is a model's: 90 % of what they may be lies between low and high; inf is never."""

    low: float
    middle: float
    high: float


def tokens_to_parity(
    law: Law, design: Architectures, model: Architectures, trained: float, unsure: float = 0.0
) -> Parity:
    """Compute the tokens that a design needs to reach the loss of a model trained on `trained` tokens.

    Each draw of the law gives a number of tokens for each of a few errors of the two designs; these are the quantiles of all.

    Args:
        law: with a term of tokens, and draws or a residual.
        design, model: one architecture each, (1,).
        unsure: what else is unknown of the difference, sd in nats, as of another tokenizer.

    Returns:
        Tokens below `FEWEST` count as that, above `MOST` as infinite.
    """
    tokens = np.geomspace(FEWEST, MOST, 1 + round(np.log(MOST / FEWEST) / np.log(STEP)))
    theirs = possible_losses(trained_on(law, trained), model)
    own = np.concatenate([possible_losses(trained_on(law, each), design) for each in tokens], axis=1)  # (draws, tokens)
    sd = np.hypot(2**0.5 * misfit(law), unsure)
    errors = [NormalDist().inv_cdf((at + 0.5) / MISFITS) * sd for at in range(MISFITS)] if sd else [0.0]
    found = np.concatenate([_first_below(own, theirs + error, np.log(tokens)) for error in errors])
    low, middle, high = np.quantile(found, (ENDS[0], 0.5, ENDS[1]), method="nearest")
    return Parity(*(float(np.exp(each)) for each in (low, middle, high)))


def _first_below(losses: FloatArray, level: FloatArray, x: FloatArray) -> FloatArray:
    """Where each row of falling losses (draws, n) reaches its level (draws, 1), by its neighbours; inf where it does not."""
    below = losses <= level
    at = np.where(below.any(axis=1), below.argmax(axis=1), len(x) - 1)
    rows, before = np.arange(len(losses)), np.maximum(at - 1, 0)
    high, low = losses[rows, before], losses[rows, at]
    share = np.divide(high - level[:, 0], high - low, out=np.ones(len(at)), where=high > low)
    return np.where(
        below.any(axis=1), np.where(at == 0, x[0], x[before] + share.clip(0, 1) * (x[at] - x[before])), np.inf
    )
