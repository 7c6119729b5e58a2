"""How far draws reach beyond the rows: how much too narrow they are for the largest rows, predicted from the rest."""

from dataclasses import dataclass

import numpy as np

from objectives.fitting.diagnostics import losses
from objectives.fitting.estimate import Fit
from objectives.fitting.intervals import resampled
from objectives.fitting.robust import minimised
from objectives.fitting.validation import largest
from search_spaces.arrays import BoolArray, FloatArray

HELD = 0.9  # share of unseen rows that an interval is to hold
DRAWS = 200
STEPS = 150


@dataclass(frozen=True)
class BeyondRows:
    """The largest fifth, by size or by training compute (`by`), under the draws of a fit to the other rows.

    rows: how many; covered: share inside the draws' 90 % interval; factor: on the draws' spread about the prediction, at
    least 1, with which nine of ten are inside.
    """

    by: str
    rows: int
    covered: float
    factor: float


def beyond_rows(fit: Fit, seed: int = 0) -> BeyondRows | None:
    """What leaving the largest rows out shows of the draws; None where size is unknown or too few rows are left.

    The factor is the conformal one: of n distances |observed - predicted| / half-width the ceil(0.9 (n + 1))-th, the largest
    where there are fewer.
    """
    found = largest(fit.table)
    if found is None or (~found[1]).sum() <= len(fit.vector):
        return None
    by, out = found
    vector, draws = _of_the_rest(fit, ~out, seed)
    low, high = np.quantile(draws[:, out], ((1 - HELD) / 2, (1 + HELD) / 2), axis=0)
    half, error = (high - low) / 2, np.abs(vector[out] - fit.table.loss[out])
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sort(np.where(error > 0, error / half, 0.0))
    place = min(int(np.ceil(HELD * (len(distance) + 1))), len(distance)) - 1
    covered = float(((fit.table.loss[out] >= low) & (fit.table.loss[out] <= high)).mean())
    factor = float(distance[place])
    return BeyondRows(by, int(out.sum()), covered, max(factor, 1.0)) if np.isfinite(factor) else None


def _of_the_rest(fit: Fit, kept: BoolArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Losses of all rows by the fit to the kept ones, (n,), and by its resamplings, (draws, n), nats."""
    drawn = resampled(fit.table.family, DRAWS, np.random.default_rng(seed))
    weights = np.concatenate([np.ones((1, len(kept))), drawn]) * fit.model.weight * kept
    vectors, _ = minimised(fit.model, np.repeat(fit.vector[None], len(weights), 0), fit.delta, weights, STEPS)
    first, *others = losses(fit, fit.model.predict(vectors))
    return first, np.array(others)
