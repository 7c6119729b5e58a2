"""Estimates what kinds of layers cost from pairs: costs that differ between laboratories, and predictions of further pairs.

Given how far laboratories and pairs differ (τ of each kind, σ), costs are normal; those are integrated out over scrambled Sobol points of their
half-normal priors, weighted by the marginal likelihood of the pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import halfnorm, qmc

from objectives.layer_costs.costs import KINDS, Kind
from objectives.layer_costs.pairs import Pair, Pairs
from search_spaces.arrays import FloatArray

CENTRE_SD, APART = np.array([0.02] + 7 * [0.05]), np.array([0.01] + 7 * [0.03])  # of θ, nats; scale of τ
MISFIT = 0.01  # scale of σ, nats
POINTS, SEED = 4096, 20_261_125


@dataclass(frozen=True, eq=False)
class Prediction:
    """A mixture of normals: each point's mean and sd (points,), weights that sum to one."""

    means: FloatArray
    sds: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> float:
        """Its mean, nats."""
        return float(self.weights @ self.means)

    @property
    def sd(self) -> float:
        """Its standard deviation, nats."""
        return float(np.sqrt(self.weights @ (self.sds**2 + (self.means - self.mean) ** 2)))

    def interval(self, share: float = 0.9) -> tuple[float, float]:
        """The central interval that holds a share of it, nats."""
        wide = 12.0 * (self.sds.max() + np.ptp(self.means))

        def below(at: float, level: float) -> float:
            return float(self.weights @ ndtr((at - self.means) / self.sds)) - level

        ends = ((1.0 - share) / 2.0, (1.0 + share) / 2.0)
        low, high = (brentq(below, self.mean - wide, self.mean + wide, args=(level,)) for level in ends)
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What pairs say of every kind, at each point: normals of the costs and, behind them, of what laboratories differ from them by.

    differing: kind and laboratory of each such difference. apart, misfit: τ (points, kinds) and σ (points,). means (points, latent), covariances (points, latent, latent),
    weights (points,).
    """

    differing: tuple[tuple[Kind, str], ...]
    apart: FloatArray
    misfit: FloatArray
    means: FloatArray
    covariances: FloatArray
    weights: FloatArray

    def difference(self, pair: Pair, laboratory: str) -> Prediction:
        """The difference that a pair of a laboratory would measure, nats."""
        row, new = _latent(pair.change, laboratory, self.differing)
        variance = np.einsum("i,pij,j->p", row, self.covariances, row) + (self.apart * new) ** 2 @ np.ones(len(KINDS))
        return Prediction(self.means @ row, np.sqrt(variance + self.misfit**2), self.weights)

    def cost(self, kind: Kind) -> Prediction:
        """What a kind costs in a laboratory that is new, nats."""
        at = KINDS.index(kind)
        variance = self.covariances[:, at, at] + self.apart[:, at] ** 2
        return Prediction(self.means[:, at], np.sqrt(variance), self.weights)

    @cached_property
    def covariance(self) -> FloatArray:
        """Of the costs of all kinds in a laboratory that is new, nats², (kinds, kinds)."""
        k = len(KINDS)
        within = np.einsum("p,pkl->kl", self.weights, self.covariances[:, :k, :k]) + np.diag(
            self.weights @ self.apart**2
        )
        from_mean = self.means[:, :k] - self.weights @ self.means[:, :k]
        return np.asarray(within + np.einsum("p,pk,pl->kl", self.weights, from_mean, from_mean))


def estimate(of: Pairs, pairs: Sequence[Pair]) -> Estimate:
    """Costs by some of the pairs."""
    differing = tuple(sorted({(kind, of.laboratory(pair)) for pair in pairs for kind in pair.change}))
    apart, misfit = _points()
    rows = np.array([_latent(pair.change, of.laboratory(pair), differing)[0] for pair in pairs])
    measured = np.array([pair.nats for pair in pairs])
    theirs = apart[:, [KINDS.index(kind) for kind, _ in differing]]
    prior = np.concatenate([np.broadcast_to(CENTRE_SD, apart.shape), theirs], axis=1)
    precision = np.multiply.outer(misfit**-2.0, rows.T @ rows)
    diagonal = np.arange(prior.shape[1])
    precision[:, diagonal, diagonal] += prior**-2.0
    covariances = np.linalg.inv(precision)
    pulled = np.multiply.outer(misfit**-2.0, rows.T @ measured)
    means = np.einsum("pij,pj->pi", covariances, pulled)
    logarithm = 0.5 * np.einsum("pi,pi->p", pulled, means) - 0.5 * np.linalg.slogdet(precision)[1]
    logarithm -= np.log(prior).sum(axis=1) + len(pairs) * np.log(misfit) + 0.5 * measured @ measured / misfit**2
    weights = np.exp(logarithm - logarithm.max())
    return Estimate(differing, apart, misfit, means, covariances, weights / weights.sum())


def _points() -> tuple[FloatArray, FloatArray]:
    """τ of every kind and σ, half-normal, (points, kinds) and (points,)."""
    uniform = qmc.Sobol(len(KINDS) + 1, rng=np.random.default_rng(SEED)).random(POINTS)
    normal = halfnorm.ppf(np.clip(uniform, 1e-3, 1.0 - 1e-9))
    return np.asarray(normal[:, :-1] * APART), np.asarray(normal[:, -1] * MISFIT)


def _latent(
    change: Mapping[Kind, float], laboratory: str, differing: Sequence[tuple[Kind, str]]
) -> tuple[FloatArray, FloatArray]:
    """A change as a row of the costs and the known differences, (latent,), and what of it differs in a way that is not known, (kinds,)."""
    by_kind = np.array([change.get(kind, 0.0) for kind in KINDS])
    known = [change.get(kind, 0.0) if whose == laboratory else 0.0 for kind, whose in differing]
    new = [0.0 if (kind, laboratory) in differing else change.get(kind, 0.0) for kind in KINDS]
    return np.concatenate([by_kind, known]), np.array(new)
