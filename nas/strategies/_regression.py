"""Regression on groups of columns and remainders, each with a scale that the evidence of the data finds, as the noise; jumps and outliers where they show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress, pairwise

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.stats import norm
from scipy.stats import t as student

from nas.strategies._evidence import OFFSET, REMAINDERS, Evidence, Posterior
from search_spaces.arrays import FloatArray

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
