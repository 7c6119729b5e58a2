"""Tokens until a design's predicted loss is level with a published model's."""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from nas.problem.settings import trained_on
from nas.problem.uncertainty import ENDS, misfit, possible_losses
from objectives.loss_law.law import Law
from search_spaces.architectures import Architectures
from search_spaces.arrays import AnyArray, FloatArray

FEWEST, MOST = 1e8, 1e15  # tokens that are looked at
STEP = 1.25  # between two numbers of tokens, of which logarithms are interpolated
MISFITS = 9  # quantiles of what one design is off the law, with each draw


@dataclass(frozen=True)
class Parity:
    """Training tokens at which a design's loss is a model's: 90 % of what they may be lies between low and high; inf is never."""

    low: float
    middle: float
    high: float


def losses_after(law: Law, design: Architectures, tokens: AnyArray) -> FloatArray:
    """Compute the losses that a law allows of one architecture after so many training tokens, (n,), nats, (draws, n)."""
    designs = design[np.zeros(len(tokens), dtype=np.int64)]
    return possible_losses(trained_on(law, float(tokens[0])), replace(designs, tokens=tokens))


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A design's loss under each draw of a law over training tokens, nats, (draws, tokens); `sd` is what one design is off it."""

    tokens: FloatArray
    losses: FloatArray
    sd: float

    @classmethod
    def of(cls, law: Law, design: Architectures) -> "LossCurve":
        """Compute the curve of one architecture, (1,), under a law with a term of tokens."""
        tokens = np.geomspace(FEWEST, MOST, 1 + round(np.log(MOST / FEWEST) / np.log(STEP)))
        return cls(tokens, losses_after(law, design, tokens), misfit(law))

    def level_with(self, theirs: FloatArray, unsure: float = 0.0) -> Parity:
        """Compute the tokens at which the design has the loss of a model.

        Each draw gives a number of tokens for each of a few errors of the two designs; these are the quantiles of all.

        Args:
            theirs: the model's losses under the same draws, nats, (draws, 1).
            unsure: what else is unknown of the difference, sd in nats, as of another laboratory's data.

        Returns:
            Tokens below `FEWEST` count as that, above `MOST` as infinite.
        """
        sd = float(np.hypot(2**0.5 * self.sd, unsure))
        errors = [NormalDist().inv_cdf((at + 0.5) / MISFITS) * sd for at in range(MISFITS)] if sd else [0.0]
        logs = np.concatenate([self._reaches(theirs + error) for error in errors])
        low, middle, high = np.exp(np.quantile(logs, (ENDS[0], 0.5, ENDS[1]), method="nearest")).tolist()
        return Parity(low, middle, high)

    def _reaches(self, level: FloatArray) -> FloatArray:
        """Logarithms of the tokens at which each row falls to its level, (draws, 1), between neighbours; inf where it does not."""
        x, below = np.log(self.tokens), self.losses <= level
        at = np.where(below.any(axis=1), below.argmax(axis=1), len(x) - 1)
        rows, before = np.arange(len(at)), np.maximum(at - 1, 0)
        high, low = self.losses[rows, before], self.losses[rows, at]
        share = np.divide(high - level[:, 0], high - low, out=np.ones(len(at)), where=high > low)
        return np.where(below.any(axis=1), x[before] + share.clip(0.0, 1.0) * (x[at] - x[before]), np.inf)
