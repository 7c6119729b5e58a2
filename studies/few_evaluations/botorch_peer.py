"""A peer of `prior_guided` as one would write it with BoTorch: Gaussian processes on what the prior leaves, expected hypervolume improvement.

Per expensive metric a SingleTaskGP (ARD Matérn 5/2 over the log variables, BoTorch's own priors) whose mean is a constant and a learned
multiple of the prior; the same first designs and candidates as `prior_guided`; one design at a time, scales fitted again every
`refit` evaluations. Frozen after one tuning on seed 100 (a prior of length scales that is not scaled by the number of dimensions left larger gaps in `values` and
`alignment`). Expected improvement of the hypervolume over the expected values of what was evaluated, in closed form, times
the probability of holding the budgets.
"""

from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from plas_prior import prior_guided
from plas_prior.corrected import Guess
from plas_prior.prior_columns import Designs
from pydantic import BaseModel, Field
from scipy.special import ndtr

from nas.problem.evaluations import Evaluations, non_dominated
from nas.search.strategy import StrategyContext
from search_spaces.arrays import FloatArray, IntArray

REFERENCE = -1.1  # of normalised objectives, maximised
STEPS = 40  # of a fit, which begins at the scales of the last
MEASURED = (
    2048  # candidates whose improvement is measured: those that are optimistically (by two sd) nearest to improving
)
torch.set_default_dtype(torch.float64)


class Parameters(BaseModel):
    """Parameters, as tuned once."""

    refit: int = Field(5, ge=1)


class OfPrior(gpytorch.means.Mean):
    """A constant and a multiple of the last column."""

    def __init__(self) -> None:
        super().__init__()
        self.register_parameter("constant", torch.nn.Parameter(torch.zeros(())))
        self.register_parameter("multiple", torch.nn.Parameter(torch.zeros(())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.constant + self.multiple * x[..., -1]


class Beliefs(Model):
    """Means and variances of candidates, (k, m), to be asked for by their rows."""

    def __init__(self, mean: FloatArray, variance: FloatArray) -> None:
        super().__init__()
        self.mean, self.variance = torch.as_tensor(mean), torch.as_tensor(variance)

    @property
    def num_outputs(self) -> int:
        return self.mean.shape[1]

    def posterior(self, X: torch.Tensor, *_: Any, **__: Any) -> Any:  # noqa: N803 (BoTorch's name)
        rows = X[..., 0].long()

        class Posterior:
            mean, variance = self.mean[rows], self.variance[rows]

        return Posterior()


class BotorchPeer:
    """Asks for the first designs together, then for one at a time."""

    def __init__(self, context: StrategyContext, parameters: Parameters) -> None:
        self.inner = prior_guided.build(context, prior_guided.Parameters())
        self.problem, self.parameters, self.fitted = context.problem, parameters, 0
        self.states: dict[str, Any] = {}
        self.pool: Designs | None = None

    def tell(self, evaluations: Evaluations) -> None:
        self.inner.tell(evaluations)

    def ask(self, at_most: int) -> IntArray:
        told = self.inner.told
        if not len(told):
            return self.inner.ask(at_most)
        refit = self.pool is None or len(told) >= self.fitted + self.parameters.refit
        of, metrics = self.inner.candidates.holding(told.keys), list(self.problem.functions)
        models = {m.name: self._model(m, of, told, refit) for m in metrics}
        if refit:
            self.fitted = len(told)
            believed = lambda d: Guess(self._values(d, self._beliefs(d, models)), np.ones(len(d)))  # noqa: E731
            self.pool = self.inner.candidates.grown(told.keys, believed)[0]
        return self.problem.space.genotypes(self._best(models, told))

    def _inputs(self, metric: Any, designs: Designs) -> torch.Tensor:
        """The log variables from 0 to 1, and the prior over its own sd."""
        prior = metric.scaled(designs.known[metric.prior])
        over = metric.scaled(self.inner.candidates.reference.known[metric.prior])
        unit = (self.inner.learner.nearness.variables(designs) + 1.0) / 2.0
        return torch.as_tensor(np.column_stack([unit, (prior - over.mean()) / over.std()]))

    def _model(self, metric: Any, of: Designs, told: Evaluations, refit: bool) -> tuple[SingleTaskGP, float, float]:
        own = of[np.searchsorted(of.keys, told.keys)]
        values = metric.scaled(told.metrics[metric.name])
        middle, width = float(values.mean()), float(values.std())
        x, y = self._inputs(metric, own), torch.as_tensor((values - middle) / width)[:, None]
        dims = x.shape[1] - 1
        prior = LogNormalPrior(np.sqrt(2) + 0.5 * np.log(dims), np.sqrt(3))  # scaled by the number of dimensions
        kernel = ScaleKernel(
            MaternKernel(nu=2.5, ard_num_dims=dims, active_dims=tuple(range(dims)), lengthscale_prior=prior)
        )
        gp = SingleTaskGP(x, y, mean_module=OfPrior(), covar_module=kernel, outcome_transform=None)
        if metric.name in self.states:
            gp.load_state_dict(self.states[metric.name], strict=False)
        if refit:
            mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": STEPS}})
            self.states[metric.name] = gp.state_dict()
        gp.eval()
        return gp, middle, width

    def _beliefs(self, designs: Designs, models: dict[str, Any]) -> dict[str, tuple[FloatArray, FloatArray, float]]:
        """By metric the expected values, their sd, and the sd of a measurement."""
        found = {}
        for metric in self.problem.functions:
            gp, middle, width = models[metric.name]
            mean, variance = _posterior(gp, self._inputs(metric, designs))
            noise = width * float(gp.likelihood.noise.detach().sqrt())
            found[metric.name] = (middle + width * mean, width * np.sqrt(variance), noise)
        return found

    def _values(self, designs: Designs, beliefs: dict[str, Any]) -> FloatArray:
        columns = [
            beliefs[o.name][0] if o.name in beliefs else o.scaled(designs.known[o.name])
            for o in self.problem.objectives
        ]
        return np.stack(columns, axis=1)

    def _best(self, models: dict[str, Any], told: Evaluations) -> IntArray:
        """The key that improves most."""
        pool = self.pool
        assert pool is not None
        beliefs = self._beliefs(pool, models)
        values = self._values(pool, beliefs)
        sds = np.stack(
            [beliefs[o.name][1] if o.name in beliefs else np.zeros(len(pool)) for o in self.problem.objectives], axis=1
        )
        holds = np.ones(len(pool))
        for budget in self.problem.budgets:
            if budget.metric in beliefs:
                mean, sd, noise = beliefs[budget.metric]
                holds *= ndtr((np.log(budget.limit) - mean) / np.hypot(sd, noise))
            else:
                holds *= budget.violation(pool.known[budget.metric]) <= 0
        known = np.isin(pool.keys, told.keys)
        likely = holds >= 0.5 if (holds >= 0.5).any() else holds >= holds.max()
        front = values[likely][non_dominated(values[likely])]
        low, span = front.min(axis=0), np.maximum(np.ptp(front, axis=0), 1e-9)
        points, sds = (values - low) / span, sds / span
        reached = points[known & likely]
        reached = reached[non_dominated(reached)] if len(reached) else np.full((1, points.shape[1]), -REFERENCE)
        behind = np.min([np.max(points - 2.0 * sds - end, axis=1) for end in reached], axis=0)
        rows = np.argsort(np.where(known, np.inf, behind), kind="stable")[:MEASURED]
        cells = FastNondominatedPartitioning(torch.full((points.shape[1],), REFERENCE), Y=torch.as_tensor(-reached))
        gain = ExpectedHypervolumeImprovement(
            Beliefs(-points[rows], np.square(sds[rows])), [REFERENCE] * points.shape[1], cells
        )
        with torch.no_grad():
            gained = gain(torch.arange(len(rows)).double()[:, None, None]).numpy() * holds[rows]
        return pool.keys[rows[[int(np.argmax(np.where(known[rows], -1.0, gained)))]]]


def _posterior(gp: SingleTaskGP, x: torch.Tensor) -> tuple[FloatArray, FloatArray]:
    """Means and variances at many inputs (k, d), each (k,): GPyTorch's own would hold the covariance of all k with one another."""
    with torch.no_grad():
        taught, y = gp.train_inputs[0], gp.train_targets
        covariance = gp.covar_module(taught).to_dense() + gp.likelihood.noise * torch.eye(len(y))
        factor = torch.linalg.cholesky(covariance)
        near = gp.covar_module(x, taught).to_dense()
        left = torch.cholesky_solve((y - gp.mean_module(taught))[:, None], factor)[:, 0]
        whitened = torch.linalg.solve_triangular(factor, near.T, upper=False)
        variance = gp.covar_module.outputscale - whitened.square().sum(dim=0)
        return (gp.mean_module(x) + near @ left).numpy(), variance.clamp_min(1e-12).numpy()


def build(context: StrategyContext, parameters: Parameters) -> BotorchPeer:
    """The peer from its context and parameters."""
    return BotorchPeer(context, parameters)
