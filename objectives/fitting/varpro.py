"""Variable projection: non-negative scales by linear least squares inside, a search over exponents outside.

Source: Golub and Pereyra 1973; the envelope theorem gives the gradient by the exponents.
"""

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.stats import qmc

from objectives.fitting.model import Model
from search_spaces.arrays import FloatArray


def projected_starts(model: Model, starts: int, generator: np.random.Generator) -> FloatArray:
    """Least-squares coefficients from several starts of the exponents, best first, (starts, p)."""
    if not model.free:
        return np.stack([_vector(model, np.zeros(0))])
    found = [searched(model, exponents) for exponents in exponent_starts(model, starts, generator)]
    order = np.argsort([loss for _, loss in found], kind="stable")
    return np.stack([found[i][0] for i in order])


def exponent_starts(model: Model, starts: int, generator: np.random.Generator) -> FloatArray:
    """A Latin hypercube in the exponents' bounds, (starts, exponents)."""
    low, high = model.low[model.count :], model.high[model.count :]
    unit = qmc.LatinHypercube(len(model.free), rng=generator).random(starts)
    drawn: FloatArray = low + (0.05 + 0.9 * unit) * (high - low)
    return drawn


def searched(model: Model, exponents: FloatArray) -> tuple[FloatArray, float]:
    """The vector and the sum of squares that a search from these exponents ends at."""
    importance, target = relative(model)

    def value(trial: FloatArray) -> tuple[float, FloatArray]:
        terms = model.terms(trial[None])[0]
        scales = inner(model, terms, importance, target)
        residual = (scales @ terms - target) * importance
        weighted = 2.0 * residual * importance
        gradient = np.einsum("tn,ten->e", scales[:, None] * terms * weighted, model.slopes)
        return float(residual @ residual), gradient

    bounds = list(zip(model.low[model.count :], model.high[model.count :], strict=True))
    least = minimize(
        value, exponents, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-9, "maxiter": 80}
    )
    return _vector(model, least.x), float(least.fun)


def relative(model: Model) -> tuple[FloatArray, FloatArray]:
    """Importance of each row and the values that the terms add up to; a residual of the logarithm is a relative one."""
    if not model.logarithmic:
        return np.sqrt(model.weight), model.target
    target = np.exp(model.target)
    return np.sqrt(model.weight) / target, target


def inner(model: Model, terms: FloatArray, importance: FloatArray, target: FloatArray) -> FloatArray:
    """Least-squares scales of given terms (terms, n), each at least its bound."""
    matrix = (terms * importance).T
    norms = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    both = np.flatnonzero(np.isinf(model.low[: model.count]))
    scaled = matrix / norms
    found, _ = nnls(np.hstack([scaled, -scaled[:, both]]), target * importance)
    scales: FloatArray = found[: model.count].copy()
    scales[both] -= found[model.count :]
    return np.asarray(scales / norms)


def _vector(model: Model, exponents: FloatArray) -> FloatArray:
    importance, target = relative(model)
    return np.concatenate([inner(model, model.terms(exponents[None])[0], importance, target), exponents])
