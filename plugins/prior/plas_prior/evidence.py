"""What values say of a metric: a Gaussian posterior over columns and remainders, and the evidence of the scales behind it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack, solve_triangular
from scipy.optimize import Bounds, minimize
from scipy.stats import norm
from scipy.stats import t as student

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
        return np.asarray(solve_triangular(self.factor, covariance, lower=True, overwrite_b=True, check_finite=False))


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
    return np.asarray((1.0 + far + far * far / 3.0) * np.exp(-far))


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
        return np.asarray(cho_factor(covariance, lower=True, check_finite=False)[0])


SMOOTH = {"smooth": REMAINDERS["smooth"]}
ROUGH = SMOOTH | {"rough": 0.7}  # what noise would otherwise have to explain
NOISE = 0.1  # of the targets' sd: median before anything is seen
STEPS = 40  # of the search for scales, at most
FURTHER = 12  # of each further round
ROUNDS = 3
FEWEST = 12  # values, from which on the noise may be Student's t
SUSPECT = 3.0  # sd; where no value lies farther off what the others say, the noise is normal
FREEDOM = 3.0  # degrees of freedom of a noise that is not
AHEAD = 1.5  # of the logarithm of sparse groups' scales, where the second search for them begins
MARGIN = 2.0  # of the logarithm of a density, by which jumps must predict better
TAILS = 1.0  # degrees of freedom of the weights of a sparse group
SMALLEST = 1e-9


@dataclass(frozen=True)
class Group:
    """Columns whose weights are alike: how many, and the median of their sd before anything is seen, targets having sd 1.

    sparse: a few weights may be far larger than the others.
    """

    name: str
    count: int
    median: float
    sparse: bool = False


def fitted(columns: FloatArray, groups: tuple[Group, ...], among: FloatArray, values: FloatArray) -> Posterior:
    """Regression of values (n,) on columns (n, p), a constant and then each group's; `among` are their correlations, (r, n, n).

    Scales and noise maximise their posterior density: the evidence times a log-normal prior of each. n is at least 2. Of a sparse group
    weights are Student's t, of values that lie far off the noise is: both are normal with a variance of their own, which
    is found in turn with the scales. A rough remainder about as large as the values is there where the posterior density is larger with
    it than where noise must explain as much; sparse groups and all remainders where they predict values that are left out better.
    """
    offset, scale = float(values.mean()), max(float(values.std()), SMALLEST)
    targets = (values - offset) / scale
    fits = [Fit(columns, groups, among, targets, remainders) for remainders in (SMOOTH, ROUGH, REMAINDERS)]
    *without, jumps = zip(fits, [fit.rounds() for fit in fits], strict=True)
    likelier = min(without, key=lambda one: one[1].cost)
    found = [fit.settled(of) for fit, of in (likelier, jumps)]
    chosen = found[int(found[1].density > found[0].density + MARGIN)]
    names = (*(group.name for group in groups), *REMAINDERS)
    scales = dict(zip(names, np.exp(chosen.logs).tolist(), strict=False))
    noise = scale * float(np.exp(chosen.logs[-1]))
    return Posterior(offset, scale, columns, chosen.variances, chosen.alpha, chosen.factor, scales, noise, -chosen.cost)


@dataclass(frozen=True, eq=False)
class Found:
    """Scales (their logarithms, the noise's last, −inf of what is left out), and what follows from them.

    density: of each value as all others predict it, the logarithm's sum.
    """

    logs: FloatArray
    cost: float
    variances: FloatArray
    factor: FloatArray
    alpha: FloatArray
    density: float = 0.0


class Fit:
    """The search for scales, and for the variances of single weights and values, with these remainders; with all of them, jumps besides."""

    def __init__(
        self,
        columns: FloatArray,
        groups: tuple[Group, ...],
        among: FloatArray,
        targets: FloatArray,
        remainders: Mapping[str, float],
    ) -> None:
        self.columns, self.groups, self.among, self.targets = columns, groups, among, targets
        medians = (remainders.get(name, median) for name, median in REMAINDERS.items())
        self.medians = np.log([*(group.median for group in groups), *medians, NOISE])
        self.counts = [1, *(group.count for group in groups)]
        self.ends = np.cumsum(self.counts)
        sparse, jumps = [group.sparse for group in groups], remainders.keys() == REMAINDERS.keys()
        self.there = np.array([*(jumps or not of for of in sparse), *(name in remainders for name in REMAINDERS), True])
        self.start = np.where([*sparse, *[False] * len(REMAINDERS), False], self.medians + AHEAD, self.medians)
        self.sparse = np.repeat([False, *(jumps and of for of in sparse)], self.counts)
        self.own = np.ones(columns.shape[1])  # variance of each weight, over its group's
        self.spread = np.ones(len(targets))  # variance of each value's noise, over that of all

    def rounds(self) -> Found:
        """Scales, then which weights are far larger than others, and scales again; noise is normal."""
        starts = (self.medians, self.start) if self.sparse.any() else (self.medians,)
        found = min((self._found(start, STEPS) for start in starts), key=lambda one: one.cost)
        for _ in range(ROUNDS if self.sparse.any() else 0):
            self._reweighed(found)
            found = self._found(found.logs, FURTHER)
        return found

    def settled(self, found: Found) -> Found:
        """The same with its density; where values lie far off, with the noise that predicts those left out best."""
        away, sds = self._left_out(found)
        found = replace(found, density=float(np.sum(norm.logpdf(away, scale=sds))))
        if len(away) < FEWEST or np.abs(away / sds).max() < SUSPECT:
            return found
        robust = self._robust(found)
        return robust if robust.density > found.density else found

    def _robust(self, found: Found) -> Found:
        """The same with a noise of Student's t."""
        for _ in range(ROUNDS):
            self._reweighed(found)
            self._forgiven(found)
            found = self._found(found.logs, FURTHER)
        away, sds = self._left_out(found)
        return replace(found, density=float(np.sum(student.logpdf(away / sds, FREEDOM) - np.log(sds))))

    def _left_out(self, found: Found) -> tuple[FloatArray, FloatArray]:
        """By how much each value differs from what all others say, and how much that may be, by the noise of most values, each (n,)."""
        inverse = solve_triangular(found.factor, np.eye(len(self.targets)), lower=True, check_finite=False)
        precision, noise = np.square(inverse).sum(axis=0), np.exp(2.0 * found.logs[-1])
        return found.alpha / precision, np.sqrt(np.maximum(1.0 / precision - noise * (self.spread - 1.0), noise))

    def _forgiven(self, found: Found) -> None:
        """The expected variances of the noise of single values, of Student's t, given how far they lie off."""
        noise = np.exp(2.0 * found.logs[-1])
        own = noise * self.spread
        inverse = solve_triangular(found.factor, np.eye(len(own)), lower=True, check_finite=False)
        left = own - np.square(own) * np.square(inverse).sum(axis=0)
        away = own * found.alpha
        self.spread = (FREEDOM + (np.square(away) + np.maximum(left, 0.0)) / noise) / (FREEDOM + 1.0)

    def _found(self, start: FloatArray, steps: int) -> Found:
        scaled = self.columns * np.sqrt(self.own)
        parts = [scaled[:, begin:end] for begin, end in pairwise(self.ends.tolist())]
        kernels = [*(part @ part.T for part in parts), *self.among, np.diag(self.spread)]
        evidence = Evidence(np.stack(list(compress(kernels, self.there))), self.targets)
        medians = self.medians[self.there]
        best = evidence.best(medians, start[self.there], steps)
        logs = np.full(len(self.there), -np.inf)
        logs[self.there] = best
        variances = self.own * np.square(np.repeat([OFFSET, *np.exp(logs[: len(self.groups)])], self.counts))
        factor = evidence.factor(best)
        return Found(logs, evidence.cost(best, medians)[0], variances, factor, cho_solve((factor, True), self.targets))

    def _reweighed(self, found: Found) -> None:
        """The expected variances of single weights, given what they are expected to be and how surely."""
        if not self.sparse.any():
            return
        before = found.variances / self.own
        whitened = solve_triangular(found.factor, self.columns, lower=True, check_finite=False)
        mean = found.variances * (self.columns.T @ found.alpha)
        left = found.variances - np.square(found.variances) * np.square(whitened).sum(axis=0)
        own = (TAILS + (np.square(mean) + left) / before) / (TAILS + 1.0)
        self.own = np.where(self.sparse, own, 1.0)
