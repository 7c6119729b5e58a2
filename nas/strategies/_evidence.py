"""What values say of a metric: a Gaussian posterior over columns and remainders, and the evidence of the scales behind it."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular
from scipy.optimize import Bounds, minimize

from search_spaces.arrays import FloatArray

NOISE_SPREAD = 1.5  # sd of the logarithm of the noise, before anything is seen
SPREAD = 1.0  # sd of the logarithm of every other scale
OFFSET = 3.0  # sd of the constant, in sd of the targets
LENGTHS = (1.0, 0.35)  # of the smooth and of the rough remainder, in variables from -1 to 1
REMAINDERS = {"smooth": 0.3, "rough": 0.1, "pairs": 0.1}  # medians of their sd
JITTER = 1e-10  # of the mean variance, for rounding


@dataclass(frozen=True, eq=False)
class Posterior:
    """y = offset + scale · (Φ w + Σ s(u) + noise): normal w, each s a Gaussian process in the variables u (`REMAINDERS`).

    columns: Φ of the n rows that were told, (n, p); variances: of the weights, before; alpha: (K + σ²)⁻¹ y; factor: the
    Cholesky factor of K + σ². scales: sd by group, the remainders' last; noise: sd of one measurement, in units
    of y; evidence: log density of the scales given the data, but for a constant.
    """

    offset: float
    scale: float
    columns: FloatArray
    variances: FloatArray
    alpha: FloatArray
    factor: FloatArray
    scales: dict[str, float]
    noise: float
    evidence: float

    @property
    def weights(self) -> FloatArray:
        """The expected weights, in sd of y, (p,)."""
        return self.variances * (self.columns.T @ self.alpha)

    @property
    def left_out(self) -> FloatArray:
        """The leave-one-out residual of each value, at the same scales, in units of y, (n,).

        Source: Rasmussen and Williams 2006, equation 5.12.
        """
        inverse = solve_triangular(self.factor, np.eye(len(self.alpha)), lower=True, check_finite=False)
        return np.asarray(self.scale * self.alpha / np.square(inverse).sum(axis=0))

    @property
    def _shares(self) -> FloatArray:
        """The variance of each remainder, (r,)."""
        return np.square([self.scales[name] for name in REMAINDERS])

    def predicted(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """The expected value of each of k designs, (k,); `near` are their correlations with the evaluated ones, (r, k, n)."""
        parts = sum(share * (one @ self.alpha) for share, one in zip(self._shares, near, strict=True))
        return self.offset + self.scale * np.asarray(columns @ self.weights + parts)

    def sd(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """How uncertain each expectation is, without the noise of a measurement, (k,)."""
        before = np.square(columns) @ self.variances + self._shares.sum()
        left = before - np.square(self._whitened(columns, near)).sum(axis=0)
        return np.asarray(self.scale * np.sqrt(np.maximum(left, 0.0)))

    def drawn(
        self, columns: FloatArray, near: FloatArray, among: FloatArray, generator: np.random.Generator, count: int = 1
    ) -> FloatArray:
        """Functions that the data allow, at each of k designs, (count, k); `among` are their correlations, (r, k, k)."""
        root = root_of(self.covariance(columns, near, among))
        drawn = generator.standard_normal((count, len(columns))) @ root.T
        return np.asarray(self.predicted(columns, near) + self.scale * drawn)

    def covariance(self, columns: FloatArray, near: FloatArray, among: FloatArray) -> FloatArray:
        """How uncertain the expectations of k designs are together, in squares of `scale`, (k, k)."""
        known = self._whitened(columns, near)
        before = (columns * self.variances) @ columns.T + np.tensordot(self._shares, among, 1)
        return np.asarray(before - known.T @ known)

    def _whitened(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """The factor's inverse times the covariance of the evaluated rows with other designs, (n, k)."""
        covariance = (self.columns * self.variances) @ columns.T
        for share, one in zip(self._shares, near, strict=True):
            covariance += share * one.T
        found: FloatArray = solve_triangular(self.factor, covariance, lower=True, overwrite_b=True, check_finite=False)
        return found


def root_of(covariance: FloatArray) -> FloatArray:
    """A lower triangle whose product with its transpose is a covariance, with as little on its diagonal as rounding needs."""
    for share in (1e-9, 1e-7, 1e-5, 1e-3):
        with suppress(np.linalg.LinAlgError):
            spare = share * (1.0 + np.abs(covariance.diagonal()).max())
            return np.linalg.cholesky(covariance + spare * np.eye(len(covariance)))
    return np.diag(np.sqrt(np.maximum(covariance.diagonal(), 0.0)))


def correlations(variables: FloatArray, others: FloatArray, values: FloatArray, of_others: FloatArray) -> FloatArray:
    """Of each remainder at some designs (k) with others (n), (r, k, n), given their variables, (., v), and which value each has on each axis.

    Matérn 5/2 of two lengths, and the share of pairs of axes on which both designs have the same values.
    """
    squares = np.square(variables).sum(axis=1)[:, None] + np.square(others).sum(axis=1) - 2.0 * variables @ others.T
    distance = np.sqrt(np.maximum(squares, 0.0))
    alike, axes = values @ of_others.T, variables.shape[1]
    pairs = alike * (alike - 1.0) / (axes * (axes - 1)) if axes > 1 else alike
    return np.stack([*(matern(distance / length) for length in LENGTHS), pairs])


def matern(distance: FloatArray) -> FloatArray:
    """Matérn 5/2 of distances in lengths."""
    far = np.sqrt(5.0) * distance
    found: FloatArray = (1.0 + far + far * far / 3.0) * np.exp(-far)
    return found


@dataclass(frozen=True, eq=False)
class Evidence:
    """The marginal likelihood of standardised targets (n,) as a function of scales of kernels (g, n, n), the noise's last.

    Source: Rasmussen and Williams 2006, section 5.4.1.
    """

    kernels: FloatArray
    targets: FloatArray

    def best(self, medians: FloatArray, start: FloatArray, steps: int) -> FloatArray:
        """Logarithms of the likeliest scales, given their medians before; searched from a start in so many steps."""
        limits = Bounds(medians - 7.0, medians + 5.0)
        cost = partial(self.cost, medians=medians)
        found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": steps})
        return np.asarray(found.x)

    def cost(self, logs: FloatArray, medians: FloatArray) -> tuple[float, FloatArray]:
        """-log p(y | scales) p(scales), but for a constant, and its slope by the logarithm of each scale."""
        factor = self.factor(logs)
        alpha = cho_solve((factor, True), self.targets, check_finite=False)
        inverse = lapack.dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        fit, width = 0.5 * float(self.targets @ alpha), float(np.log(np.diag(factor)).sum())
        slopes = np.tensordot(self.kernels, inverse - np.outer(alpha, alpha), 2) * np.exp(2.0 * logs)
        spreads = np.array([*[SPREAD] * (len(logs) - 1), NOISE_SPREAD])
        apart = (logs - medians) / spreads
        return fit + width + 0.5 * float(apart @ apart), slopes + apart / spreads

    def factor(self, logs: FloatArray) -> FloatArray:
        """The Cholesky factor of the targets' covariance, (n, n), its upper half undefined."""
        covariance = np.tensordot(np.exp(2.0 * logs), self.kernels, 1) + OFFSET**2
        covariance[np.diag_indices_from(covariance)] += JITTER * covariance.diagonal().mean()
        found: FloatArray = cho_factor(covariance, lower=True, check_finite=False)[0]
        return found
