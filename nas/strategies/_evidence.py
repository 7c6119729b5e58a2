"""Regression on groups of columns and a smooth remainder, each with a scale that the evidence of the data finds, as the noise."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular
from scipy.optimize import Bounds, minimize

from search_spaces.arrays import FloatArray

NOISE = (0.1, 1.5)  # of the targets' sd: median, and sd of the logarithm, before anything is seen
SPREAD = 1.0  # sd of the logarithm of every other scale
OFFSET = 3.0  # sd of the constant, in sd of the targets
SMOOTH = 0.3  # median of the remainder's sd
LENGTH = 1.0  # of the remainder, in variables from -1 to 1
STEPS = 40  # of the search for scales, at most
SMALLEST = 1e-9
JITTER = 1e-10  # of the mean variance, for rounding


@dataclass(frozen=True)
class Group:
    """Columns whose weights are alike: how many, and the median of their sd before anything is seen, targets having sd 1."""

    name: str
    count: int
    median: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """y = offset + scale · (Φ w + s(u) + noise): normal w, s a Gaussian process in the variables u (Matérn 5/2).

    columns: Φ of the n rows that were told, (n, p); variances: of the weights, before; alpha: (K + σ²)⁻¹ y; factor: the
    Cholesky factor of K + σ². scales: sd by group, the remainder's last; noise: sd of one measurement, in units
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
    def _smooth(self) -> float:
        return self.scales["smooth"] ** 2

    def predicted(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """The expected value of each of k designs, (k,); `near` is their correlation with the evaluated ones, (k, n)."""
        return self.offset + self.scale * np.asarray(columns @ self.weights + near @ (self._smooth * self.alpha))

    def sd(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """How uncertain each expectation is, without the noise of a measurement, (k,)."""
        before = np.square(columns) @ self.variances + self._smooth
        left = before - np.square(self._whitened(columns, near)).sum(axis=0)
        return np.asarray(self.scale * np.sqrt(np.maximum(left, 0.0)))

    def drawn(
        self, columns: FloatArray, near: FloatArray, among: FloatArray, generator: np.random.Generator
    ) -> FloatArray:
        """One function that the data allow, at each of k designs, (k,); `among` is their correlation, (k, k)."""
        root = root_of(self.covariance(columns, near, among))
        return self.predicted(columns, near) + self.scale * (root @ generator.standard_normal(len(columns)))

    def covariance(self, columns: FloatArray, near: FloatArray, among: FloatArray) -> FloatArray:
        """How uncertain the expectations of k designs are together, in squares of `scale`, (k, k)."""
        known = self._whitened(columns, near)
        found: FloatArray = (columns * self.variances) @ columns.T + self._smooth * among - known.T @ known
        return found

    def _whitened(self, columns: FloatArray, near: FloatArray) -> FloatArray:
        """The factor's inverse times the covariance of the evaluated rows with other designs, (n, k)."""
        covariance = (self.columns * self.variances) @ columns.T + self._smooth * near.T
        found: FloatArray = solve_triangular(self.factor, covariance, lower=True, overwrite_b=True, check_finite=False)
        return found


def root_of(covariance: FloatArray) -> FloatArray:
    """A lower triangle whose product with its transpose is a covariance, with as little on its diagonal as rounding needs."""
    for share in (1e-9, 1e-7, 1e-5, 1e-3):
        with suppress(np.linalg.LinAlgError):
            spare = share * (1.0 + np.abs(covariance.diagonal()).max())
            return np.linalg.cholesky(covariance + spare * np.eye(len(covariance)))
    return np.diag(np.sqrt(np.maximum(covariance.diagonal(), 0.0)))


def correlation(variables: FloatArray, others: FloatArray) -> FloatArray:
    """Of the remainder at some variables (k, v) with others (n, v), Matérn 5/2, (k, n)."""
    squares = np.square(variables).sum(axis=1)[:, None] + np.square(others).sum(axis=1) - 2.0 * variables @ others.T
    distance = np.sqrt(np.maximum(squares, 0.0) * 5.0) / LENGTH
    found: FloatArray = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return found


def fitted(columns: FloatArray, groups: tuple[Group, ...], among: FloatArray, values: FloatArray) -> Posterior:
    """Regression of values (n,) on columns (n, p), a constant and then each group's; `among` is their correlation, (n, n).

    Scales and noise maximise their posterior density: the evidence times a log-normal prior of each. n is at least 2.
    """
    offset, scale = float(values.mean()), max(float(values.std()), SMALLEST)
    ends = np.cumsum([1, *(group.count for group in groups)])
    parts = [columns[:, start:end] for start, end in pairwise(ends.tolist())]
    kernels = np.stack([*(part @ part.T for part in parts), among, np.eye(len(values))])
    evidence = Evidence(kernels, (values - offset) / scale)
    medians = np.log([*(group.median for group in groups), SMOOTH, NOISE[0]])
    logs = evidence.best(medians)
    sds = np.exp(logs)
    variances = np.square(np.repeat([OFFSET, *sds[: len(groups)]], [1, *(group.count for group in groups)]))
    factor = evidence.factor(logs)
    alpha = cho_solve((factor, True), evidence.targets)
    scales = dict(zip([*(group.name for group in groups), "smooth"], sds.tolist(), strict=False))
    density = -evidence.cost(logs, medians)[0]
    return Posterior(offset, scale, columns, variances, alpha, factor, scales, scale * float(sds[-1]), density)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The marginal likelihood of standardised targets (n,) as a function of scales of kernels (g, n, n), the noise's last.

    Source: Rasmussen and Williams 2006, section 5.4.1.
    """

    kernels: FloatArray
    targets: FloatArray

    def best(self, medians: FloatArray) -> FloatArray:
        """Logarithms of the likeliest scales, given their medians before."""
        limits = Bounds(medians - 7.0, medians + 5.0)
        cost = partial(self.cost, medians=medians)
        found = minimize(cost, medians, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": STEPS})
        return np.asarray(found.x)

    def cost(self, logs: FloatArray, medians: FloatArray) -> tuple[float, FloatArray]:
        """-log p(y | scales) p(scales), but for a constant, and its slope by the logarithm of each scale."""
        factor = self.factor(logs)
        alpha = cho_solve((factor, True), self.targets, check_finite=False)
        inverse = lapack.dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        fit, width = 0.5 * float(self.targets @ alpha), float(np.log(np.diag(factor)).sum())
        slopes = np.tensordot(self.kernels, inverse - np.outer(alpha, alpha), 2) * np.exp(2.0 * logs)
        spreads = np.array([*[SPREAD] * (len(logs) - 1), NOISE[1]])
        apart = (logs - medians) / spreads
        return fit + width + 0.5 * float(apart @ apart), slopes + apart / spreads

    def factor(self, logs: FloatArray) -> FloatArray:
        """The Cholesky factor of the targets' covariance, (n, n), its upper half undefined."""
        covariance = np.tensordot(np.exp(2.0 * logs), self.kernels, 1) + OFFSET**2
        covariance[np.diag_indices_from(covariance)] += JITTER * covariance.diagonal().mean()
        found: FloatArray = cho_factor(covariance, lower=True, check_finite=False)[0]
        return found
