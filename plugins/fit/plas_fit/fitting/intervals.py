"""Intervals of coefficients: linear theory and resampling."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from plas_fit.fitting.estimate import Fit, Method, fitted
from plas_fit.fitting.robust import minimised
from search_spaces.arrays import AnyArray, BoolArray, FloatArray

LEVEL = 0.95
STEPS = 150
CHECKED = 6  # resamplings that are also fitted from scratch
SAME = 1e-3
DEAD = 1e-9
SINGULAR = 1e8  # condition number of the Jacobian from which floats hold no digit of the covariance, whose is its square: 1 / their precision
TAKES_PART = 0.1  # of the largest component of a direction


@dataclass(frozen=True, eq=False)
class Intervals:
    """covariance and draws in the order of the form's coefficients; intervals (coefficients, 2).

    sd (p,): standard errors of the fit's vector. together (p,): of which the rows tell a combination alone; their intervals are unknown.
    `restarts` says in how many of `checked` resamplings a fit from scratch found nothing better than
    the warm start did.
    """

    covariance: FloatArray
    draws: FloatArray
    linear: FloatArray
    bootstrap: FloatArray
    condition: float
    held: BoolArray
    checked: int
    restarts: int
    sd: FloatArray
    together: BoolArray


def intervals(fit: Fit, bootstraps: int, generator: np.random.Generator) -> Intervals:
    """Linear-theory and bootstrap intervals of a fit's coefficients; linear theory's of a positive scale on its logarithm."""
    inner, held, together, condition = covariance(fit)
    to_raw = fit.model.raw_jacobian(fit.vector)
    raw = to_raw @ inner @ to_raw.T
    vectors, agreeing, checked = bootstrap(fit, bootstraps, generator)
    draws = fit.model.raw(vectors)
    centre = np.array(list(fit.coefficients.values()))
    wide = student.ppf(0.5 + LEVEL / 2, max(fit.model.n - len(fit.vector), 1)) * np.sqrt(np.diag(raw))
    linear = np.stack([centre - wide, centre + wide], axis=1)
    bounded = {term.scale for term in fit.model.form.terms.values() if not term.any_sign}
    positive = np.array([each in bounded for each in fit.coefficients]) & (centre > 0)
    with np.errstate(over="ignore"):  # a scale that may be anything
        factor = np.exp(wide[positive] / centre[positive])
    linear[positive] = np.stack([centre[positive] / factor, centre[positive] * factor], axis=1)
    ends = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
    percentiles = np.quantile(draws, ends, axis=0).T if bootstraps else np.full((len(centre), 2), np.nan)
    unknown = [name in np.array(fit.model.names)[together] for name in fit.coefficients]
    linear[unknown] = percentiles[unknown] = np.nan
    return Intervals(
        raw, draws, linear, percentiles,
        condition, held, checked, agreeing, np.sqrt(np.diag(inner)), together,
    )  # fmt: skip


def covariance(fit: Fit) -> tuple[FloatArray, BoolArray, BoolArray, float]:
    """Covariance of the vector, coefficients held by a bound or without effect, those told together alone, condition number of the scaled Jacobian.

    A scale at zero counts as free: what it leaves to others is as uncertain as if it were not there.
    σ² (XᵀX)⁻¹ for least squares; for Huber's loss σ² becomes κ² [Σψ²/(n−p)] / [mean ψ′]² (Huber 1973).
    """
    model, p = fit.model, len(fit.vector)
    _, jacobian = model.derivatives(fit.vector[None])
    held = (fit.vector <= model.low) | (fit.vector >= model.high)
    held[: model.count] = False
    root = np.sqrt(model.weight)
    held |= np.linalg.norm(jacobian[0], axis=1) < DEAD * np.linalg.norm(
        model.target
    )  # an exponent of a term that is zero
    free = np.flatnonzero(~held)
    matrix = (jacobian[0][free] * root).T
    norms = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    _, singular, directions = np.linalg.svd(matrix / norms, full_matrices=False)
    condition = float(singular[0] / max(singular[-1], 1e-300))
    lost = np.abs(directions[singular * SINGULAR < singular[0]])
    together = np.zeros(p, dtype=bool)
    together[free] = (lost > TAKES_PART * lost.max(axis=1, keepdims=True)).any(axis=0)
    found = np.zeros((p, p))
    inverse = np.linalg.pinv((matrix / norms).T @ (matrix / norms), rcond=1e-15, hermitian=True)
    found[np.ix_(free, free)] = noise(fit) ** 2 * inverse / np.outer(norms, norms)
    return found, held, together, condition


def noise(fit: Fit) -> float:
    """Residual sd as it enters the covariance, in the residuals' scale."""
    residuals, n, p = fit.residuals * np.sqrt(fit.model.weight), fit.model.n, len(fit.vector)
    psi = np.clip(residuals, -fit.delta, fit.delta)
    inside = max(float((np.abs(residuals) <= fit.delta).mean()), 1e-3)
    correction = 1.0 + p / n * (1.0 - inside) / inside
    return float(correction * np.sqrt((psi @ psi) / max(n - p, 1)) / inside)


def bootstrap(fit: Fit, count: int, generator: np.random.Generator) -> tuple[FloatArray, int, int]:
    """Vectors of resampled fits (count, p), each warm from the best; in how many of how many a restart agrees.

    Designs are resampled whole: replicates of one design stay together.
    """
    if count == 0:
        return np.zeros((0, len(fit.vector))), 0, 0
    weights = resampled(fit.table.family, count, generator) * fit.model.weight
    vectors, objectives = minimised(fit.model, np.repeat(fit.vector[None], count, 0), fit.delta, weights, STEPS)
    checked = min(CHECKED, count)
    better = sum(bool(_restarted(fit, weights[i], i) < objectives[i] * (1 - SAME)) for i in range(checked))
    return vectors, checked - better, checked


def resampled(design: AnyArray, count: int, generator: np.random.Generator) -> FloatArray:
    """How often each row is drawn, (count, n)."""
    designs = int(design.max()) + 1
    drawn = generator.multinomial(designs, np.full(designs, 1.0 / designs), size=count)
    return drawn[:, design].astype(np.float64)


def _restarted(fit: Fit, weights: FloatArray, seed: int) -> float:
    """The objective of a fit from scratch to resampled rows."""
    rows = np.flatnonzero(weights)
    table = fit.table[rows]
    numbers = {**table.numbers, "weight": weights[rows]}
    again = type(table)(numbers, table.lines, (), (), {k: v for k, v in table._known.items() if k != "weight"})
    method = Method(fit.delta, 4, seed, fit.method.fixed)
    try:
        found = fitted(fit.form_name, fit.model.form, again, method)
    except ValueError:
        return float("inf")
    return found.objective * float(weights.sum()) / len(rows)


def correlation_of(matrix: FloatArray) -> FloatArray:
    """Correlations of a covariance; zero where a coefficient is held."""
    sd = np.sqrt(np.diag(matrix))
    scale = np.where(sd > 0, sd, np.inf)
    found: FloatArray = matrix / scale[:, None] / scale[None, :]
    return found
