"""Estimates what kinds of layers cost from pairs: costs that differ between laboratories, and predictions of further pairs.

Given how far laboratories and pairs differ (τ of each kind, σ), costs are normal; those are integrated out over scrambled Sobol points of their
half-normal priors, weighted by the marginal likelihood of the pairs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import halfnorm, qmc

from objectives.layer_costs.costs import KINDS, SEARCHED, Cost, Kind, LayerCosts, numbers
from objectives.plugins import packaged
from objectives.quantities import Name
from plas_fit.evidence.joint_form import in_unit
from search_spaces.arrays import FloatArray

Loss = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PairSource(BaseModel):
    """Who trained and published: a laboratory's pairs are left out together. text: what the losses are of."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    laboratory: Name
    url: str
    commit: str = ""
    licence: str
    text: str
    bibtex: str


class Pair(BaseModel):
    """A variant and its baseline, trained alike: published losses, and by how much the variant has more of each kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: Name
    at: str
    variant: str
    width: Annotated[int, Field(gt=0)] | None = None
    tokens: Annotated[float, Field(gt=0)] | None = None
    context: Annotated[int, Field(gt=0)] | None = None
    unit: Literal["nats", "perplexity", "nats per byte"] = "nats"
    loss: tuple[Loss, Loss]
    change: Annotated[dict[Kind, float], Field(min_length=1)]
    not_fitted: str = ""

    @property
    def nats(self) -> float:
        """Variant less baseline, nats of a token."""
        variant, baseline = self.loss
        if self.unit == "perplexity":
            return math.log(variant / baseline)
        return (variant - baseline) / in_unit(self.unit)


class Pairs(BaseModel):
    """The published pairs and their sources."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sources: dict[Name, PairSource]
    pairs: tuple[Pair, ...]

    @property
    def fitted(self) -> tuple[Pair, ...]:
        """Pairs from which costs are estimated."""
        return tuple(pair for pair in self.pairs if not pair.not_fitted)

    def laboratory(self, pair: Pair) -> str:
        """Who trained a pair."""
        return self.sources[pair.source].laboratory


@cache
def public_pairs() -> Pairs:
    """The public pairs that ship with the layer costs."""
    return Pairs.model_validate(packaged("objectives.layer_costs", "pairs"))


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


def costs_of(of: Pairs, found: Estimate) -> LayerCosts:
    """The document of an estimate from the fitted pairs."""
    at = [KINDS.index(kind) for kind in SEARCHED]
    return LayerCosts(
        source=source_of(of),
        costs={kind: _cost(of, found, kind) for kind in KINDS},
        covariance=tuple(numbers(row) for row in found.covariance[np.ix_(at, at)]),
    )


def source_of(of: Pairs) -> str:
    """Which pairs price what a search sees: `42 public pairs of 7 laboratories, widths 512 to 3,072, contexts 2,048 to 32,768 tokens; recall is not seen`."""
    used = [pair for pair in of.fitted if pair.change.keys() & set(SEARCHED)]
    widths = [pair.width for pair in used if pair.width]
    contexts = [pair.context for pair in used if pair.context]
    whose = len({of.laboratory(pair) for pair in used})
    ends = f"widths {min(widths):,} to {max(widths):,}, contexts {min(contexts):,} to {max(contexts):,} tokens"
    return f"{len(used)} public pairs of {whose} laboratories, {ends}; recall is not seen"


def _cost(of: Pairs, found: Estimate, kind: Kind) -> Cost:
    said, pairs = found.cost(kind), having(of.fitted, kind)
    low, high = said.interval()
    whose = sorted({of.laboratory(pair) for pair in pairs})
    most = max(abs(pair.change[kind]) for pair in pairs)
    rounded = [float(f"{number:.4f}") for number in (said.mean, said.sd, low, high)]
    return Cost(
        nats=rounded[0],
        sd=rounded[1],
        interval=(rounded[2], rounded[3]),
        pairs=len(pairs),
        most=most,
        laboratories=tuple(whose),
    )


def having(pairs: tuple[Pair, ...], kind: Kind) -> list[Pair]:
    """The pairs that differ in a kind."""
    return [pair for pair in pairs if kind in pair.change]
