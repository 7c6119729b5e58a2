"""A law of the joint form as a prior of one's own trainings, and what it becomes with their losses.

Coordinates and loss at the reference have the mean and covariance of a law's draws. Rows of own trainings update them: residuals are Student's t, whose
scale is estimated together with them (EM of the marginal likelihood) beside that of the prior, which counts as SCALE_ROWS rows. The prior's coordinates, and its
level, have the same tails: a laboratory may be far off those known, and the level of another tokenizer is found from the rows.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm, qmc

from objectives.loss_law.coverage import DesignKind, Region, joined
from objectives.loss_law.law import Law, tables_seen
from objectives.plugins import version_of
from plas_fit.evidence.joint_form import (
    FORM,
    NAMES,
    REFERENCE,
    Quantities,
    Trainings,
    coefficients,
    coordinates,
    excess,
    with_slopes,
)
from plas_fit.fitting.law_file import PACKAGES, covered, rows
from plas_fit.fitting.trained_models import Table
from search_spaces.arrays import FloatArray

SCALE_ROWS = 2.0  # rows that the prior's residual sd weighs
LEAST_DRAWS = 2 * (len(NAMES) + 1)
ROUNDS, SETTLED = 40, 1e-4
K = len(NAMES)
DRAWS, SEED = 256, 20_261_124
FREEDOM = 4.0  # of Student's t of the residuals
LEAST_SCALE = 0.01  # nats; two residuals of this size are taken as seen beside a table's own
LEAST_LEVEL = 1e-6  # nats
START = 0.05  # nats; scale of residuals before any is seen
WIDER = 2.0  # times; 90 % intervals then hold 88 to 95 % of a left-out laboratory's differences and losses after 8 and after 24 of its rows


@dataclass(frozen=True, eq=False)
class Belief:
    """A normal of the joint form's coordinates and, last, the loss at its reference, (k + 1,) and (k + 1, k + 1), nats; scale of a design's residual.

    before: the covariance before any own row, that of a belief without own rows itself.
    """

    mean: FloatArray
    covariance: FloatArray
    scale: float
    before: FloatArray

    @property
    def theta(self) -> FloatArray:
        """The coordinates of the mean, (k,)."""
        return self.mean[:-1]

    @property
    def sd(self) -> FloatArray:
        """Of each coordinate and of the loss at the reference, (k + 1,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def doubted(self) -> "Belief":
        """As laboratories left out show it: what own rows add to the precision counts 1 / WIDER² of what the form says, a residual's scale WIDER times."""
        mixed = (1.0 - WIDER**-2) * np.linalg.inv(self.before) + WIDER**-2 * np.linalg.inv(self.covariance)
        return replace(self, covariance=np.linalg.inv(mixed), scale=WIDER * self.scale)

    def losses(self, of: Quantities) -> FloatArray:
        """Predicted losses, nats, (n,)."""
        return predicted(self.mean, of)

    def slopes(self, of: Quantities) -> FloatArray:
        """Derivatives of the losses by coordinates and loss at the reference, (n, k + 1)."""
        by_theta = with_slopes(self.theta, of)[1] - with_slopes(self.theta, REFERENCE)[1]
        return np.concatenate([by_theta, np.ones((len(of), 1))], axis=1)

    def drawn(self, count: int = DRAWS) -> FloatArray:
        """Coordinates and losses at the reference, drawn from scrambled Sobol points, (count, k + 1)."""
        return np.asarray(self.mean + normal_points(len(self.mean), count) @ np.linalg.cholesky(self.covariance).T)


def normal_points(dimensions: int, count: int = DRAWS) -> FloatArray:
    """Standard normal numbers of scrambled Sobol points, (count, dimensions)."""
    points = qmc.Sobol(dimensions, rng=np.random.default_rng(SEED)).random(count)
    return np.asarray(norm.ppf(np.clip(points, 1e-9, 1 - 1e-9)))


def predicted(points: FloatArray, of: Quantities) -> FloatArray:
    """Losses under coordinates and, last, a loss at the reference, (k + 1,), nats, (n,); under many, (draws, k + 1), (draws, n)."""
    theta = points[..., :-1]
    return np.asarray(points[..., -1:] + excess(theta, of) - excess(theta, REFERENCE))


@dataclass(frozen=True, eq=False)
class Posterior:
    """What own rows make of a prior: the belief about the group that the law predicts for, and each group's loss at the reference.

    main: number of that group, the one of the most rows; fitted: of each row, nats of the law, (n,); weight: what Student's t gives it, (n,).
    """

    belief: Belief
    at_reference: FloatArray
    main: int
    fitted: FloatArray
    weight: FloatArray


def prior_of(law: Law) -> Belief:
    """A law's draws as a normal of the joint form's coordinates; of a law that `own_law` made what its rows left, undoubted.

    Raises:
        ValueError: another form, or too few draws.
    """
    if law.law_form != FORM or law.rivals:
        raise ValueError(
            f"prior: expected a law of the joint form, got {law.name} of another; name evidence, or a law that was fitted with --prior"
        )
    if len(law.draws) < LEAST_DRAWS:
        raise ValueError(
            f"prior: expected a law with {LEAST_DRAWS} draws or more, got {len(law.draws)} in {law.name}; name evidence"
        )
    if (kept := law.provenance.get("belief")) is not None:
        kept_rows = np.array([row.split() for row in kept["mean_and_covariances"]], dtype=np.float64)
        return Belief(kept_rows[0], kept_rows[1 : K + 2], kept["scale"], kept_rows[K + 2 :])
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = [coordinates(draw.coefficients) for draw in law.drawn]
        found = np.stack([np.append(theta, level + excess(theta, REFERENCE)[0]) for theta, level in drawn])
    if not np.isfinite(found).all():
        raise ValueError(
            f"prior: expected draws of positive scales and exponents, got others in {law.name}; name evidence"
        )
    covariance = np.cov(found.T)
    return Belief(found.mean(axis=0), covariance, law.residual_sd or LEAST_SCALE, covariance)


def posterior(prior: Belief, rows: Trainings, weight: FloatArray | None = None) -> Posterior:
    """The prior with the rows' losses; `weight` of each row, mean 1, (n,)."""
    given = np.ones(len(rows)) if weight is None else weight
    problem = _Problem(prior, rows)
    x, scale, tails, of_prior = problem.start, max(START, prior.scale), np.ones(len(rows)), np.ones(2)
    for _ in range(ROUNDS):
        before = np.append(x, np.log(scale))
        x, covariance = problem.solved(x, given * tails / scale**2, of_prior)
        slopes = problem.slopes(x)
        squared = (problem.loss - problem.fitted(x)) ** 2 + np.einsum("ni,ij,nj->n", slopes, covariance, slopes)
        tails = (FREEDOM + 1.0) / (FREEDOM + squared / scale**2)
        of_prior = problem.tails_of_prior(x, covariance)
        scale = float(np.sqrt((given * tails @ squared + SCALE_ROWS * prior.scale**2) / (len(rows) + SCALE_ROWS)))
        if np.abs(np.append(x, np.log(scale)) - before).max() < SETTLED:
            break
    keep = np.append(np.arange(K), K + problem.main)
    belief = Belief(x[keep], covariance[np.ix_(keep, keep)], scale, prior.before)
    return Posterior(belief, x[K:], problem.main, problem.fitted(x), tails)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows under a prior as weighted least squares in x: coordinates (k,), then the loss at the reference of each group, (g,)."""

    prior: Belief
    rows: Trainings

    @cached_property
    def main(self) -> int:
        """The group of the most rows, whose level is the prior's."""
        return int(np.argmax(np.bincount(self.rows.group)))

    @cached_property
    def loss(self) -> FloatArray:
        return self.rows.loss / self.rows.per

    @cached_property
    def of(self) -> Quantities:
        """What the form reads of the rows and, last, of its reference."""
        pairs = zip(self.rows.of.columns, REFERENCE.columns, strict=True)
        return Quantities(*(np.append(column, last) for column, last in pairs))

    @cached_property
    def start(self) -> FloatArray:
        """The prior's coordinates with the levels that the rows then have."""
        group = self.rows.group
        bare = self.fitted(np.append(self.prior.theta, np.zeros(int(group.max()) + 1)))
        return np.append(self.prior.theta, np.bincount(group, self.loss - bare) / np.bincount(group))

    def fitted(self, x: FloatArray) -> FloatArray:
        """Losses of the rows, nats, (n,)."""
        above = excess(x[:K], self.of)
        found: FloatArray = x[K:][self.rows.group] + (above[:-1] - above[-1])
        return found

    def slopes(self, x: FloatArray) -> FloatArray:
        """Their derivatives by x, (n, k + g)."""
        by_theta = with_slopes(x[:K], self.of)[1]
        return np.concatenate([by_theta[:-1] - by_theta[-1], np.eye(len(x) - K)[self.rows.group]], axis=1)

    def solved(self, x: FloatArray, weight: FloatArray, of_prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x at the least sum of squares from a start, with its covariance; weights of the rows, of the prior's coordinates and of its level."""
        root = np.sqrt(weight)
        prior = np.sqrt(np.append(np.full(K, of_prior[0]), of_prior[1]))[:, None] * self.whitening

        def residuals(at: FloatArray) -> FloatArray:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.concatenate([root * (self.fitted(at) - self.loss), prior @ (at - self.centre)])

        def slopes(at: FloatArray) -> FloatArray:
            return np.concatenate([root[:, None] * self.slopes(at), prior])

        spread = np.append(self.prior.sd[:-1], np.full(len(x) - K, self.prior.sd[-1]))
        found: FloatArray = least_squares(residuals, x, slopes, x_scale=spread).x
        last = slopes(found)
        return found, np.asarray(np.linalg.inv(last.T @ last), dtype=np.float64)

    def tails_of_prior(self, x: FloatArray, covariance: FloatArray) -> FloatArray:
        """What Student's t gives the distance of the coordinates from the prior's, all at once, and that of the level, 1 at most, (2,).

        More would make coordinates that no row says anything of surer where others are as the prior has them.
        """
        spread = np.einsum("ni,ij,nj->n", self.whitening, covariance, self.whitening)
        squared = (self.whitening @ (x - self.centre)) ** 2 + spread
        of_coordinates, of_level = (
            (FREEDOM + K) / (FREEDOM + squared[:K].sum()),
            (FREEDOM + 1.0) / (FREEDOM + squared[K]),
        )
        return np.minimum(1.0, [of_coordinates, of_level])

    @cached_property
    def centre(self) -> FloatArray:
        """The prior's mean of x, (k + g,)."""
        return np.append(self.prior.theta, np.full(len(self.start) - K, self.prior.mean[-1]))

    @cached_property
    def whitening(self) -> FloatArray:
        """Rows by which the coordinates, and the main group's level given them, are of unit covariance, (k + 1, k + g)."""
        covariance = self.prior.covariance
        found = np.zeros((K + 1, len(self.start)))
        found[:K, :K] = np.linalg.inv(np.linalg.cholesky(covariance[:K, :K]))
        by_theta = np.linalg.solve(covariance[:K, :K], covariance[:K, K])
        sd = np.sqrt(covariance[K, K] - covariance[K, :K] @ by_theta)
        found[K, :K], found[K, K + self.main] = -by_theta / sd, 1.0 / sd
        return found


NAME = "joint"
NOT_KEPT = ("covariance", "transcribed", "implied_residual_sd", "layer_delta_draws", "tokenizer", "data")


def own_law(prior: Law, found: Belief, table: Table, name: str, tokens: float, group: str = "") -> Law:
    """A law of the belief, with draws of it doubted; what the prior says of more than losses stays.

    group: the one whose level it has, where the table tells several.
    """
    kept = {key: value for key, value in prior.mapping().items() if key not in NOT_KEPT}
    covers = covered_together(prior, table)
    numbers = {"mean_and_covariances": rows(np.vstack([found.mean, found.covariance, found.before]))}
    return Law.model_validate(
        kept
        | {
            "name": name,
            "description": f"{prior.name} updated by {len(table)} own trainings",
            "coefficients": named(found.mean),
            "draws": rows(np.array([list(named(each).values()) for each in supported(found.doubted, prior)])),
            "residual_sd": found.doubted.scale,
            "fitted_on": widened(prior.fitted_on, table),
            "covers": {kind: region.model_dump() for kind, region in covers.items()},
            "tokens": tokens,
            "runs": len(table),
            "source": f"plas fit --prior {prior.name}",
            "provenance": _provenance(prior, table, group) | {"belief": {**numbers, "scale": found.scale}},
        }
    )


BOUNDED = [NAMES.index(name) for name in ("ln a", "ln b", "ln kappa")]  # what decides far from the rows


def supported(found: Belief, prior: Law) -> FloatArray:
    """Draws of a belief, (draws, k + 1): exponents and κ between those of the prior's draws, or an sd from the mean, and no loss below 0 of any model."""
    points = found.drawn()
    of_prior = np.stack([coordinates(draw.coefficients)[0][BOUNDED] for draw in prior.drawn])
    mean, sd = found.theta[BOUNDED], found.sd[BOUNDED]
    points[:, BOUNDED] = np.clip(
        points[:, BOUNDED], np.minimum(of_prior.min(axis=0), mean - sd), np.maximum(of_prior.max(axis=0), mean + sd)
    )
    points[:, -1] = np.maximum(points[:, -1], excess(points[:, :-1], REFERENCE)[:, 0] + LEAST_LEVEL)
    return points


def named(point: FloatArray) -> dict[str, float]:
    """The form's coefficients, in its order, of coordinates and, last, the loss at the reference, (k + 1,)."""
    theta = point[:-1]
    found = coefficients(theta, float(point[-1] - excess(theta, REFERENCE)[0]))
    return {name: found[name] for name in FORM.coefficients}


def covered_together(prior: Law, table: Table) -> dict[DesignKind, Region]:
    """What the prior's rows and own ones cover, of the kinds of designs that own rows have: of another kind they say nothing. {} of a prior that does not say."""
    own = covered([table])
    return {kind: region for kind, region in joined(prior.covers, own).items() if kind in own} if prior.covers else {}


def widened(ranges: Mapping[str, tuple[float, float]], table: Table) -> dict[str, tuple[float, float]]:
    """The prior's ranges, with the table's rows inside."""
    return {name: _with_rows(ends, table, name) for name, ends in ranges.items()}


def _with_rows(ends: tuple[float, float], table: Table, name: str) -> tuple[float, float]:
    if not table.has(name):
        return ends
    column = table.feature(name)
    return min(ends[0], float(column.min())), max(ends[1], float(column.max()))


def fingerprint(law: Law) -> str:
    """The SHA-256 of a law's content without where it comes from."""
    content = {key: value for key, value in law.mapping().items() if key != "provenance"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _provenance(prior: Law, table: Table, group: str) -> dict[str, Any]:
    told = table.has("tokens")
    return {
        "tables": [asdict(source) for source in table.sources],
        "rows": len(table),
        "tokens": [float(table.feature("tokens").min()), float(table.feature("tokens").max())] if told else None,
        "form": NAME,
        "prior": {"name": prior.name, "sha256": fingerprint(prior), **({"rows": prior.runs} if prior.runs else {})},
        **({"seen": seen} if (seen := tables_seen(prior)) else {}),
        **({"group": group} if group else {}),
        "versions": {package: version_of(package) for package in PACKAGES},
    }
