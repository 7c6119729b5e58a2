"""Runs that differ in their vocabulary, and the fit of what a vocabulary costs to them.

Nats per byte at equal body of N parameters and equal text of H bytes are (e + a (N / 1.5e8)^−α + data(H)) · (1 + scale ·
(V / 16,384)^−exponent). The data term is that of a published law, since within these runs text goes with the body.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from objectives.text.text import TokenCurve
from objectives.text.vocabulary_cost import REFERENCE
from search_spaces.arrays import AnyArray, FloatArray

DATA = (
    2085.43,
    0.3658,
    32_000,
)  # B, β, and V of its tokens. Source: Besiroglu et al. 2024, as law chinchilla_epoch has it
BODY, ROBUST = 1.5e8, 0.02  # parameters at which a is what a body lacks; nats beyond which a residual counts less
BOUNDS = ((-8.0, -5.0, 0.02, -8.0, 0.02), (1.0, 2.0, 1.5, 1.0, 3.0))  # of ln e, ln a, α, ln scale, exponent
STARTS = 6


@dataclass(frozen=True, eq=False)
class VocabularyRuns:
    """Trained models of several vocabularies, columns (n,): N without embeddings, V, bytes of text, and the loss less that of single tokens, nats per token."""

    parameters: FloatArray
    vocabulary: FloatArray
    text: FloatArray
    loss: FloatArray

    def __len__(self) -> int:
        return len(self.loss)

    def __getitem__(self, rows: AnyArray) -> "VocabularyRuns":
        return VocabularyRuns(self.parameters[rows], self.vocabulary[rows], self.text[rows], self.loss[rows])


@dataclass(frozen=True)
class FittedCost:
    """The coefficients of the form above."""

    e: float
    a: float
    alpha: float
    scale: float
    exponent: float

    def losses(self, runs: VocabularyRuns, curve: TokenCurve) -> FloatArray:
        """Predicted loss less that of single tokens, nats per token, (n,)."""
        b, beta, size = DATA
        held = float(curve.bytes_per_token(size))
        body = self.e + self.a * (runs.parameters / BODY) ** -self.alpha + b * (runs.text / held) ** -beta / held
        per_byte = body * (1.0 + self.scale * (runs.vocabulary / REFERENCE) ** -self.exponent)
        return per_byte * curve.bytes_per_token(runs.vocabulary) - curve.unigram_nats(runs.vocabulary)


def fitted(runs: VocabularyRuns, curve: TokenCurve, starts: int = STARTS) -> FittedCost:
    """The fit of least squares, soft beyond 0.02 nats, the best of several starts."""
    low, high = (np.array(each) for each in BOUNDS)

    def residuals(p: FloatArray) -> FloatArray:
        return _of(p).losses(runs, curve) - runs.loss

    starting = low + (high - low) * np.random.default_rng(0).uniform(0.2, 0.8, (starts, len(low)))
    found = [least_squares(residuals, s, bounds=(low, high), loss="soft_l1", f_scale=ROBUST) for s in starting]
    return _of(min(found, key=lambda each: each.cost).x)


def _of(p: FloatArray) -> FittedCost:
    return FittedCost(*(float(each) for each in (np.exp(p[0]), np.exp(p[1]), p[2], np.exp(p[3]), p[4])))


def refitted(runs: VocabularyRuns, curve: TokenCurve, draws: int, seed: int = 0) -> list[FittedCost]:
    """Fits to bodies drawn with replacement, and of each its runs drawn with replacement."""
    rng, bodies, found = np.random.default_rng(seed), np.unique(runs.parameters), []
    for _ in range(draws):
        parts = [np.flatnonzero(runs.parameters == body) for body in rng.choice(bodies, len(bodies))]
        rows = np.concatenate([rng.choice(part, len(part)) for part in parts])
        found.append(fitted(runs[rows], curve, starts=2))
    return found
