"""Huber loss minimised for many starts, or many resamplings, at once.

ρ(r) = r²/2 for |r| ≤ δ, δ|r| − δ²/2 beyond; δ = ∞ is least squares. The objective is the weighted
*sum*: an optimiser that sees the mean stops early (Besiroglu et al. 2024). Source: Huber 1964.
"""

from dataclasses import replace

import numpy as np

from plas_fit.fitting.model import Model
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import BoolArray, FloatArray

MOST_SCALES, MOST_NATS = (
    20.0,
    0.5,
)  # beyond so many standard deviations of the others, and so many nats, a residual is no noise
LEAST_SCALE = 1e-6  # nats


def diverged(residuals: FloatArray, coefficients: int = 0) -> BoolArray:
    """Which rows lie above a fit by more than MOST_SCALES robust standard deviations of its residuals and MOST_NATS, nats, (n,)."""
    found: BoolArray = residuals - np.median(residuals) > max(MOST_SCALES * spread(residuals, coefficients), MOST_NATS)
    return found


def spread(residuals: FloatArray, coefficients: int = 0) -> float:
    """Robust standard deviation of residuals, nats: that of a normal with the same median of absolute values.

    A robust fit goes through as many rows as it has coefficients: the smallest residuals, that many, are no evidence of noise.
    """
    sizes = np.sort(np.abs(residuals - np.median(residuals)))[coefficients:]
    return max(NORMAL * float(np.median(sizes)), LEAST_SCALE)


def without_diverged(table: Table, residuals: FloatArray, coefficients: int = 0) -> Table:
    """The table without rows whose training diverged, each named in a note; the table itself where none did."""
    out = diverged(residuals, coefficients)
    if not out.any():
        return table
    far = (residuals - np.median(residuals)) / spread(residuals, coefficients)
    said = [_said(table, row, float(far[row])) for row in np.flatnonzero(out).tolist()]
    return replace(table[np.flatnonzero(~out)], notes=(*table.notes, *said))


def _said(table: Table, row: int, scales: float) -> str:
    name = "" if table.names is None or not str(table.names[row]) else f" ({table.names[row]})"
    return f"line {table.lines[row]}{name} left out: its loss {table.loss[row]:.4g} lies {scales:.0f} standard deviations above the fit, as of a training that diverged"


NORMAL = 1.4826  # sd per median absolute deviation of a normal distribution
EFFICIENT = 1.345  # δ in residual sds: 95 % as efficient as least squares on normal noise
AT_ONCE = 1_500_000  # numbers in a batch of terms
MOST_STEPS = 400
TOLERANCE = 1e-12


def huber(residuals: FloatArray, delta: float) -> FloatArray:
    """ρ of residuals, same shape."""
    size = np.abs(residuals)
    if np.isinf(delta):
        return 0.5 * residuals * residuals
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def scale_of(residuals: FloatArray, coefficients: int) -> float:
    """Robust residual sd: median absolute size, corrected for the coefficients that were fitted."""
    n = len(residuals)
    return float(NORMAL * np.median(np.abs(residuals)) * np.sqrt(n / max(n - coefficients, 1)))


def minimised(
    model: Model, starts: FloatArray, delta: float, weights: FloatArray | None = None, steps: int = MOST_STEPS
) -> tuple[FloatArray, FloatArray]:
    """Vectors (b, p) and objectives (b,) that a damped Gauss–Newton search from each start ends at.

    weights (b, n) are those of resamplings; the model's own otherwise.
    """
    size = max(1, AT_ONCE // (model.n * (model.count + len(model.names))))
    found = []
    for first in range(0, len(starts), size):
        rows = slice(first, first + size)  # a trial step may overflow: it is no better, and not taken
        own = np.broadcast_to(model.weight, (len(starts[rows]), model.n)) if weights is None else weights[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            found.append(_batch(model, starts[rows], delta, own, steps))
    return np.concatenate([v for v, _ in found]), np.concatenate([o for _, o in found])


def _batch(
    model: Model, starts: FloatArray, delta: float, weights: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    vectors = np.clip(starts, model.low, model.high)
    objective = _objective(model, vectors, delta, weights)
    damping, still = np.full(len(vectors), 1e-3), np.arange(len(vectors))
    idle = np.zeros(len(vectors), dtype=np.int64)
    for _ in range(steps):
        trial = np.clip(
            vectors[still] + _step(model, vectors[still], delta, weights[still], damping[still]), model.low, model.high
        )
        value = _objective(model, trial, delta, weights[still])
        better = value < objective[still]
        gain = objective[still] - value
        small = gain <= TOLERANCE * np.abs(objective[still])
        won = still[better]
        vectors[won], objective[won] = trial[better], value[better]
        damping[still] = np.where(better, np.maximum(damping[still] / 6.0, 1e-12), damping[still] * 5.0)
        idle[still] = np.where(better & ~small, 0, idle[still] + 1)
        still = still[(idle[still] < 8) & (damping[still] < 1e8)]
        if len(still) == 0:
            break
    return vectors, objective


def _objective(model: Model, vectors: FloatArray, delta: float, weights: FloatArray) -> FloatArray:
    value: FloatArray = (weights * huber(model.predict(vectors) - model.target, delta)).sum(axis=1)
    return value


def _step(model: Model, vectors: FloatArray, delta: float, weights: FloatArray, damping: FloatArray) -> FloatArray:
    """The damped step of each vector; coefficients that their bound holds stay."""
    predicted, jacobian = model.derivatives(vectors)
    residuals = predicted - model.target
    size = np.maximum(np.abs(residuals), 1e-300)
    gradient = np.matmul(jacobian, (weights * residuals * np.minimum(1.0, delta / size))[:, :, None])[:, :, 0]
    curvature = weights * np.where(size <= delta, 1.0, OUTSIDE * np.minimum(1.0, delta / size))
    normal = np.matmul(jacobian * curvature[:, None, :], jacobian.transpose(0, 2, 1))
    held: BoolArray = ((vectors <= model.low) & (gradient > 0)) | ((vectors >= model.high) & (gradient < 0))
    p = normal.shape[1]
    diagonal = np.einsum("bpp->bp", normal) + 1e-14
    scale = 1.0 / np.sqrt(diagonal)
    system = normal * scale[:, :, None] * scale[:, None, :] + (damping[:, None, None] + 1e-13) * np.eye(p)
    system[held] = 0.0
    system.transpose(0, 2, 1)[held] = 0.0
    system[:, np.arange(p), np.arange(p)] += held
    step = np.linalg.solve(system, (-gradient * scale * ~held)[:, :, None])[:, :, 0]
    return np.asarray(step * scale)


OUTSIDE = 0.3  # share of the reweighted curvature that a row beyond δ keeps: 1 is slow, 0 has no curvature far away
