"""The problem as the models expect it: shipped metrics as they are, expensive ones by models of the evaluations."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, unit_of
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from nas.search.successive_halving import STOPPED
from objectives.loss_law.law import Law
from plas_prior.evidence import REMAINDERS, Posterior, correlations, fitted
from plas_prior.prior_columns import Columns, Designs, Variables, under
from search_spaces.arrays import BoolArray, FloatArray, IntArray

SAME = 1e-9  # relative; a shipped metric that is told otherwise is penalised, and learned as any other
FAILURE = Objective("failure")
LEAST = 4  # values, below which nothing is learned
BLOCK = 4096  # designs whose correlations stay in the cache


@dataclass(frozen=True, eq=False)
class Guess:
    """Objectives of designs on their own scales, (n, m), and the probability that each holds every budget and does not fail, (n,)."""

    values: FloatArray
    holds: FloatArray


@dataclass(frozen=True, eq=False)
class Model:
    """One expensive metric on its own scale: what it may depend on, how far it was found to, and the values that taught it."""

    columns: Columns
    posterior: Posterior
    rows: slice | IntArray
    values: FloatArray

    def mean(self, designs: Designs, near: FloatArray) -> FloatArray:
        """Expected values, (k,); `near` are correlations of designs with all evaluated ones, `rows` of which taught."""
        return self.posterior.predicted(self.columns.matrix(designs), near[:, :, self.rows])

    def sd(self, designs: Designs, near: FloatArray) -> FloatArray:
        """Uncertainty of one measurement of each design, (k,)."""
        return np.hypot(self.uncertainty(designs, near), self.posterior.noise)

    def uncertainty(self, designs: Designs, near: FloatArray) -> FloatArray:
        """Uncertainty of each expected value, (k,)."""
        return self.posterior.sd(self.columns.matrix(designs), near[:, :, self.rows])

    def drawn(
        self, designs: Designs, near: FloatArray, among: FloatArray, generator: np.random.Generator, count: int
    ) -> FloatArray:
        """Functions that the data allow, (count, k)."""
        return self.posterior.drawn(self.columns.matrix(designs), near[:, :, self.rows], among, generator, count)


class Nearness:
    """Correlations of designs with evaluated ones; of the reference they are kept, a column for each."""

    def __init__(self, reference: Designs) -> None:
        self.reference, self.variables = reference, Variables(reference)
        self.keys: IntArray = np.zeros(0, dtype=np.int64)
        self.kept: FloatArray = np.zeros((len(REMAINDERS), len(reference), 0))

    def __call__(self, designs: Designs, told: Designs) -> FloatArray:
        """The correlations of designs (k) with evaluated ones (n), (r, k, n)."""
        if designs is not self.reference:
            return self._correlations(designs, told)
        known = len(self.keys) if np.array_equal(self.keys, told.keys[: len(self.keys)]) else 0
        if known < len(told) or known < len(self.keys):
            self.kept = np.concatenate([self.kept[:, :, :known], self._correlations(designs, told[known:])], axis=2)
            self.keys = told.keys
        return self.kept

    def among(self, designs: Designs) -> FloatArray:
        """The correlations of designs with one another, (r, k, k)."""
        return self._correlations(designs, designs)

    def _correlations(self, designs: Designs, told: Designs) -> FloatArray:
        blocks = [slice(start, start + BLOCK) for start in range(0, len(designs), BLOCK)]
        variables, values = self.variables(designs), self.variables.values(designs)
        of = self.variables(told), self.variables.values(told)
        found = [correlations(variables[some], of[0], values[some], of[1]) for some in blocks]
        return np.concatenate([np.zeros((len(REMAINDERS), 0, len(told))), *found], axis=1)


@dataclass(frozen=True, eq=False)
class Corrected:
    """Models by metric, learned from evaluated designs, the first `before` of them known before.

    failure: how often designs like this one failed, where any did.
    """

    problem: Problem
    models: dict[str, Model]
    failure: Model | None
    nearness: Nearness
    told: Designs
    before: int = 0

    def guess(self, designs: Designs) -> Guess:
        """Expected values of designs."""
        near = self.nearness(designs, self.told)
        means = {name: model.mean(designs, near) for name, model in self.models.items()}
        holds = np.where(designs.ok, 1.0, 0.0)
        for budget in self.problem.budgets:
            holds = holds * self._held(budget, designs, means, near)
        if self.failure is not None:
            holds = holds * np.clip(1.0 - self.failure.mean(designs, near), 0.0, 1.0)
        return Guess(self._values(designs, means), holds)

    def drawn(self, designs: Designs, generator: np.random.Generator, count: int = 1) -> list[Guess]:
        """States of affairs that the data allow: values, and 1 or 0 where every budget is held or not."""
        near, among = self.nearness(designs, self.told), self.nearness.among(designs)
        drawn = {n: model.drawn(designs, near, among, generator, count) for n, model in self.models.items()}
        sound = np.where(designs.ok, 1.0, 0.0)
        if self.failure is not None:
            sound = sound * (self.failure.mean(designs, near) < 0.5)
        return [self._state(designs, {n: some[place] for n, some in drawn.items()}, sound) for place in range(count)]

    @property
    def limited(self) -> bool:
        """Whether a budget is on what was learned."""
        return any(budget.metric in self.models for budget in self.problem.budgets)

    def error(self) -> float:
        """By how much values that are left out are mispredicted, over their spread: of the worst metric, the median as of a normal one."""
        return max(
            (_spread(model.posterior.left_out) / _spread(model.values) for model in self.models.values()), default=0.0
        )

    def _state(self, designs: Designs, learned: dict[str, FloatArray], holds: FloatArray) -> Guess:
        for budget in self.problem.budgets:
            holds = holds * self._within(budget, designs, learned)
        return Guess(self._values(designs, learned), holds)

    def optimistic(self, designs: Designs, sds: float) -> FloatArray:
        """Values of the objectives, less so many standard deviations of the expectation, (n, m)."""
        near = self.nearness(designs, self.told)
        low = {n: m.mean(designs, near) - sds * m.uncertainty(designs, near) for n, m in self.models.items()}
        return self._values(designs, low)

    def _values(self, designs: Designs, learned: dict[str, FloatArray]) -> FloatArray:
        with np.errstate(invalid="ignore"):
            columns = [
                learned[o.name] if o.name in learned else o.scaled(designs.known[o.name])
                for o in self.problem.objectives
            ]
        return np.stack(columns, axis=1)

    def _held(self, budget: Budget, designs: Designs, means: dict[str, FloatArray], near: FloatArray) -> FloatArray:
        """The probability that a budget is held, (n,)."""
        if budget.metric not in self.models:
            return self._within(budget, designs, means)
        model = self.models[budget.metric]
        return held(budget, model, means[budget.metric], model.sd(designs, near))

    def _within(self, budget: Budget, designs: Designs, values: dict[str, FloatArray]) -> FloatArray:
        if budget.metric not in self.models:
            return np.where(budget.violation(designs.known[budget.metric]) <= 0, 1.0, 0.0)
        return np.where(values[budget.metric] <= _limit(budget, self.models[budget.metric]), 1.0, 0.0)


def _spread(values: FloatArray) -> float:
    """The sd of normal values whose median distance from their median is that of these."""
    return max(1.4826 * float(np.median(np.abs(values - np.median(values)))), 1e-12)


def held(budget: Budget, model: Model, mean: FloatArray, sd: FloatArray) -> FloatArray:
    """The probability that one measurement of each design is within a limit, (n,)."""
    return np.asarray(ndtr((_limit(budget, model) - mean) / sd))


def _limit(budget: Budget, model: Model) -> float:
    """A budget's limit on the metric's own scale."""
    return float(model.columns.metric.scaled(np.array([budget.limit]))[0])


def expensive(problem: Problem, told: Evaluations, asked: Designs) -> list[Objective]:
    """The metrics to be learned: the user's own that are minimised or limited, and those whose values differ from our formulas'."""
    own = [metric for metric in problem.functions if metric.name in problem.asked]
    shipped = [o for o in problem.objectives if o.name in asked.known]
    penalised = [
        o for o in shipped if not np.allclose(told.metrics[o.name][told.ok], asked.known[o.name][told.ok], SAME, 0.0)
    ]
    return [*own, *(replace(o, prior=o.name) for o in penalised)]


def enough_of(told: Evaluations) -> bool:
    """Whether there are values to learn from."""
    return bool(told.ok.sum() >= LEAST)


class Learner:
    """Learns models again from all evaluations and known results; keeps what only depends on the space.

    before: how many of the evaluations told, the first, are results from before the search.
    """

    def __init__(
        self,
        problem: Problem,
        reference: Designs,
        rivals: tuple[Law, ...] = (),
        before: int = 0,
    ) -> None:
        self.problem, self.reference, self.rivals, self.before = problem, reference, rivals, before
        self.nearness = Nearness(reference)
        self.columns: dict[Objective, Columns] = {}

    def learned(self, told: Evaluations, designs: Designs) -> Corrected:
        """The problem as these evaluations predict it; `designs` hold all that were evaluated."""
        taught = designs[np.searchsorted(designs.keys, told.keys)]
        models = {
            metric.name: self._model(
                metric, taught, metric.scaled(np.where(told.ok, told.metrics[metric.name], np.nan))
            )
            for metric in expensive(self.problem, told, taught)
        }
        failed = failures(told)
        failure = self._model(FAILURE, taught, failed) if (failed == 1.0).any() else None
        return Corrected(self.problem, models, failure, self.nearness, taught, self.before)

    def _model(self, metric: Objective, taught: Designs, values: FloatArray) -> Model:
        if metric not in self.columns:
            self.columns[metric] = Columns(self.problem, metric, self.reference, self.nearness.variables, self.rivals)
        columns, there = self.columns[metric], np.isfinite(values)
        rows = slice(None) if there.all() else np.flatnonzero(there)
        of = taught[rows]
        found = fitted(columns.matrix(of), columns.scheme, self.nearness.among(of), values[rows])
        return Model(columns, found, rows, values[rows])


def failures(told: Evaluations) -> FloatArray:
    """1 where an evaluation failed, 0 where it did not, NaN where a fidelity step stopped it, which says nothing of its kind, (n,)."""
    return np.where(stopped_of(told), np.nan, np.where(told.ok, 0.0, 1.0))


def stopped_of(told: Evaluations) -> BoolArray:
    """Which evaluations a fidelity step stopped, (n,)."""
    return np.array([reason.startswith(STOPPED) for reason in told.reasons or [""] * len(told)], dtype=bool)


def as_known(problem: Problem, rival: Law | None = None) -> Callable[[Designs], Guess]:
    """The problem before any evaluation: priors in the place of expensive metrics; those without a prior are left out.

    rival: the law that says them, where it is not the problem's own.
    """
    own = {metric.name: metric for metric in problem.functions}

    def column(name: str, designs: Designs) -> FloatArray | None:
        of = own[name].prior if name in own else name
        of = under(of, rival) if rival is not None and name in own and of in FROM_LOSS else of
        return designs.known[of] if of else None

    def guess(designs: Designs) -> Guess:
        told = [(o, column(o.name, designs)) for o in problem.objectives]
        with np.errstate(invalid="ignore"):
            values = [o.scaled(of) for o, of in told if of is not None]
        holds = np.where(designs.ok, 1.0, 0.0)
        for budget in problem.budgets:
            of = column(budget.metric, designs)
            if of is not None and (
                budget.metric not in own or own[budget.metric].unit == unit_of(own[budget.metric].prior)
            ):
                holds = holds * np.where(budget.violation(of) <= 0, 1.0, 0.0)
        found = np.stack(values, axis=1) if values else np.zeros((len(designs), 0))
        return Guess(found, np.where(np.isfinite(found).all(axis=1), holds, 0.0))

    return guess


def size(metric: Objective, sd: float) -> str:
    """A difference on a metric's own scale: in percent of a logarithm, else in its unit."""
    return f"{100 * sd:.2g} %" if metric.log_scale else f"{sd:.2g}{' ' * bool(metric.unit)}{metric.unit}"
