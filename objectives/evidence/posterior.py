"""A law of the joint form as a prior of one's own trainings, and what it becomes with their losses.

Coordinates and loss at the reference are normal over a law's draws. Rows of own trainings update them: residuals are Student's t, whose scale is
estimated together with them (EM of the marginal likelihood) beside that of the prior, which counts as SCALE_ROWS rows. The prior's level, too, is held
with the tails of Student's t: the level of another tokenizer is found from the rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from objectives.evidence.joint_form import FORM, NAMES, REFERENCE, Quantities, coordinates, excess
from objectives.evidence.pooled_law import DRAWS, normal_points
from objectives.evidence.population import FREEDOM, LEAST_SCALE
from objectives.evidence.trainings import Trainings
from objectives.loss_law.law import Law
from search_spaces.arrays import FloatArray

SCALE_ROWS = 2.0  # rows that the prior's residual sd weighs
LEAST_DRAWS = 2 * (len(NAMES) + 1)
ROUNDS, SETTLED = 40, 1e-4
START = 0.05  # nats; scale of residuals before any is seen


@dataclass(frozen=True, eq=False)
class Belief:
    """A normal of the joint form's coordinates and, last, the loss at its reference, (k + 1,) and (k + 1, k + 1), nats; scale of a design's residual."""

    mean: FloatArray
    covariance: FloatArray
    scale: float

    @property
    def theta(self) -> FloatArray:
        """The coordinates of the mean, (k,)."""
        return self.mean[:-1]

    @property
    def sd(self) -> FloatArray:
        """Of each coordinate and of the loss at the reference, (k + 1,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def losses(self, of: Quantities) -> FloatArray:
        """Predicted losses, nats, (n,)."""
        return np.asarray(self.mean[-1] + excess(self.theta, of)[0] - excess(self.theta, REFERENCE)[0])

    def slopes(self, of: Quantities) -> FloatArray:
        """Derivatives of the losses by coordinates and loss at the reference, (n, k + 1)."""
        by_theta = excess(self.theta, of)[1] - excess(self.theta, REFERENCE)[1]
        return np.concatenate([by_theta, np.ones((len(of), 1))], axis=1)

    def drawn(self, count: int = DRAWS) -> FloatArray:
        """Coordinates and losses at the reference, drawn from scrambled Sobol points, (count, k + 1)."""
        return self.mean + normal_points(len(self.mean), count) @ np.linalg.cholesky(self.covariance).T


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
    """A law's draws as a normal of the joint form's coordinates.

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
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.stack([_with_loss(*coordinates(draw.coefficients)) for draw in law.drawn])
    if not np.isfinite(found).all():
        raise ValueError(
            f"prior: expected draws of positive scales and exponents, got others in {law.name}; name evidence"
        )
    return Belief(found.mean(axis=0), np.cov(found.T), law.residual_sd or LEAST_SCALE)


def _with_loss(theta: FloatArray, level: float) -> FloatArray:
    return np.append(theta, level + excess(theta, REFERENCE)[0][0])


def posterior(prior: Belief, rows: Trainings, weight: FloatArray | None = None) -> Posterior:
    """The prior with the rows' losses; `weight` of each row, mean 1, (n,)."""
    given, group = np.ones(len(rows)) if weight is None else weight, rows.group
    problem = _Problem(prior, rows, int(np.argmax(np.bincount(group))))
    x, scale, tails, tail_of_level = problem.start(), max(START, prior.scale), np.ones(len(rows)), 1.0
    for _ in range(ROUNDS):
        before = np.append(x, np.log(scale))
        x, covariance, error, off = problem.solved(x, given * tails / scale**2, tail_of_level)
        squared = error**2 + np.einsum("ni,ij,nj->n", slope := problem.slopes(x), covariance, slope)
        tails = _tails(squared / scale**2)
        tail_of_level = float(_tails(np.array([off**2]))[0])
        scale = float(np.sqrt((given * tails @ squared + SCALE_ROWS * prior.scale**2) / (len(rows) + SCALE_ROWS)))
        if np.abs(np.append(x, np.log(scale)) - before).max() < SETTLED:
            break
    at = x[problem.k :]
    keep = np.append(np.arange(problem.k), problem.k + problem.main)
    belief = Belief(x[keep], covariance[np.ix_(keep, keep)], scale)
    return Posterior(belief, at, problem.main, problem.fitted(x), tails)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows under a prior as weighted least squares in x: coordinates (k,), then the loss at the reference of each group, (g,)."""

    prior: Belief
    rows: Trainings
    main: int

    @property
    def k(self) -> int:
        return len(NAMES)

    @property
    def loss(self) -> FloatArray:
        return self.rows.loss / self.rows.per

    def start(self) -> FloatArray:
        group, theta = self.rows.group, self.prior.theta
        above = excess(theta, self.rows.of)[0] - excess(theta, REFERENCE)[0]
        return np.append(theta, np.bincount(group, self.loss - above) / np.bincount(group))

    def fitted(self, x: FloatArray) -> FloatArray:
        theta = x[: self.k]
        above: FloatArray = excess(theta, self.rows.of)[0] - excess(theta, REFERENCE)[0]
        return x[self.k :][self.rows.group] + above

    def slopes(self, x: FloatArray) -> FloatArray:
        """Derivatives of the fitted losses by x, (n, k + g)."""
        theta = x[: self.k]
        by_theta = excess(theta, self.rows.of)[1] - excess(theta, REFERENCE)[1]
        return np.concatenate([by_theta, np.eye(len(x) - self.k)[self.rows.group]], axis=1)

    def solved(
        self, x: FloatArray, weight: FloatArray, tail_of_level: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """x at the least sum of squares, its covariance, the rows' errors, and how many sds the level is off the prior's."""
        inner, outer, level = self._whitened(len(x))
        prior = np.concatenate([inner, np.sqrt(tail_of_level) * level[None]])
        root = np.sqrt(weight)

        def residuals(at: FloatArray) -> FloatArray:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.concatenate([root * (self.fitted(at) - self.loss), prior @ (at - outer)])

        def slopes(at: FloatArray) -> FloatArray:
            return np.concatenate([root[:, None] * self.slopes(at), prior])

        found: FloatArray = least_squares(residuals, x, slopes, x_scale=self._spread(len(x))).x
        last = slopes(found)
        return (
            found,
            np.asarray(np.linalg.inv(last.T @ last), dtype=np.float64),
            self.loss - self.fitted(found),
            float(level @ (found - outer)),
        )

    def _whitened(self, length: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows (k, x) by which what x is off its centre is whitened, that centre (x,), and the row of the main group's level given the coordinates."""
        mean, covariance, k = self.prior.mean, self.prior.covariance, self.k
        inner = np.zeros((k, length))
        inner[:, :k] = np.linalg.inv(np.linalg.cholesky(covariance[:k, :k]))
        by_theta = np.linalg.solve(covariance[:k, :k], covariance[:k, k])
        spread = np.sqrt(covariance[k, k] - covariance[k, :k] @ by_theta)
        level = np.zeros(length)
        level[:k], level[k + self.main] = -by_theta / spread, 1.0 / spread
        return inner, np.append(mean[:k], np.full(length - k, mean[k])), level

    def _spread(self, length: int) -> FloatArray:
        """The prior's sds of x, (x,)."""
        return np.append(self.prior.sd[: self.k], np.full(length - self.k, self.prior.sd[-1]))


def _tails(squared: FloatArray) -> FloatArray:
    """What Student's t gives residuals by their squares over the scale's, (n,)."""
    weight: FloatArray = (FREEDOM + 1.0) / (FREEDOM + squared)
    return weight
