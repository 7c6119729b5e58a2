"""Bayesian ridge regression whose groups of columns have a scale each, found with the noise by the evidence of the data."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from search_spaces.arrays import FloatArray, IntArray

NOISE = (0.1, 1.5)  # of the targets' sd: median and sd of the logarithm, before anything is seen
OFFSET = 3.0  # sd of the constant, in sd of the targets
SMALLEST = 1e-9


@dataclass(frozen=True)
class Group:
    """Columns whose weights are alike: how many, the median of their prior sd and the sd of its logarithm, targets having sd 1."""

    name: str
    count: int
    median: float
    spread: float = 1.0


@dataclass(frozen=True, eq=False)
class Ridge:
    """y = offset + scale · (Φ w + noise), w normal with `mean` and the covariance U Uᵀ of `root` U; of columns Φ (n, p).

    scales: prior sd of each group's weights; noise: sd of one measurement, in units of y; evidence: the log marginal
    likelihood at these, of standardised targets, with the hyperparameters' own prior.
    """

    offset: float
    scale: float
    mean: FloatArray
    root: FloatArray
    groups: IntArray
    scales: FloatArray
    noise: float
    evidence: float

    def predicted(self, columns: FloatArray) -> FloatArray:
        """The expected value of each row, (n,)."""
        return self.offset + self.scale * (columns @ self.mean)

    def sd(self, columns: FloatArray) -> FloatArray:
        """How uncertain each expectation is, without the noise of a measurement, (n,)."""
        found: FloatArray = self.scale * np.sqrt(np.square(columns @ self.root).sum(axis=1))
        return found

    def drawn(self, columns: FloatArray, generator: np.random.Generator) -> FloatArray:
        """One function that the data allow, at each row, (n,)."""
        weights = self.mean + self.root @ generator.standard_normal(self.root.shape[1])
        return self.offset + self.scale * (columns @ weights)


def fitted(columns: FloatArray, groups: tuple[Group, ...], values: FloatArray) -> Ridge:
    """The ridge of values (n,) over columns (n, p): a constant, then those of each group in turn; n at least 2.

    Scales and noise maximise their posterior density: the evidence times a log-normal prior of each.
    """
    offset, scale = float(values.mean()), max(float(values.std()), SMALLEST)
    targets = (values - offset) / scale
    of = np.repeat(np.arange(len(groups) + 1), [1, *(group.count for group in groups)])
    data = Moments(columns.T @ columns, columns.T @ targets, float(targets @ targets), len(targets), of)
    medians = np.log([*(group.median for group in groups), NOISE[0]])
    spreads = np.array([*(group.spread for group in groups), NOISE[1]])

    def cost(logs: FloatArray) -> tuple[float, FloatArray]:
        value, slope = data.evidence(logs)
        apart = (logs - medians) / spreads
        return 0.5 * float(apart @ apart) - value, apart / spreads - slope

    limits = [(median - 7.0, median + 5.0) for median in medians]
    best = minimize(cost, medians, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": 60})
    mean, root = data.posterior(best.x)
    noise = scale * float(np.exp(best.x[-1]))
    return Ridge(offset, scale, mean, root, of, np.exp(best.x[:-1]), noise, -float(best.fun))


@dataclass(frozen=True, eq=False)
class Moments:
    """What the evidence needs of the data: ΦᵀΦ, Φᵀy, yᵀy, n, and the group of each column, 0 the constant."""

    gram: FloatArray
    product: FloatArray
    square: float
    count: int
    groups: IntArray

    def evidence(self, logs: FloatArray) -> tuple[float, FloatArray]:
        """log p(y | scales, noise) and its slope by the logarithm of each group's scale, then of the noise.

        With D the prior sds, B = I + D ΦᵀΦ D/σ² and m the posterior mean of w = D v:
        -½ (n ln 2πσ² + ln|B| + (yᵀy - yᵀΦ D m)/σ²). Source: Bishop 2006, section 3.5.
        """
        sds, noise, factor = self._factor(logs)
        mean = cho_solve((factor, True), sds * self.product / noise)
        misfit = max(self.square - float((sds * self.product) @ mean), 0.0)
        value = -self.count / 2 * np.log(2 * np.pi * noise) - np.log(np.diag(factor)).sum() - misfit / (2 * noise)
        variances = np.square(solve_triangular(factor, np.eye(len(sds)), lower=True)).sum(axis=0)  # of v
        learned = np.square(mean) + variances - 1.0
        by_scale = np.bincount(self.groups, learned, len(logs))[1:]
        explained = float((1.0 - variances).sum())
        left = self.square - 2 * float((sds * self.product) @ mean) + float(sds * mean @ self.gram @ (sds * mean))
        return float(value), np.append(by_scale, left / noise - self.count + explained)

    def posterior(self, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (p,) of the weights and a root (p, p) of their covariance."""
        sds, noise, factor = self._factor(logs)
        mean = sds * cho_solve((factor, True), sds * self.product / noise)
        return mean, sds[:, None] * solve_triangular(factor, np.eye(len(sds)), lower=True).T

    def _factor(self, logs: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Prior sd of every weight, the noise's variance, and the Cholesky factor of B."""
        sds, noise = np.exp(np.append(np.log(OFFSET), logs[:-1]))[self.groups], float(np.exp(2 * logs[-1]))
        inner = np.eye(len(sds)) + sds[:, None] * self.gram * sds / noise
        return sds, noise, cho_factor(inner, lower=True)[0]
