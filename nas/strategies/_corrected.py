"""The problem as it is believed to be: shipped metrics as they are, expensive ones by models of what was told."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, unit_of
from nas.problem.problem import Problem
from nas.strategies._evidence_ridge import Ridge, fitted
from nas.strategies._prior_columns import Columns, Designs
from search_spaces.arrays import FloatArray, IntArray

SAME = 1e-9  # relative; a shipped metric that is told otherwise is penalised, and learned as any other
FAILURE = Objective("failure")


@dataclass(frozen=True, eq=False)
class Guess:
    """Objectives of designs on their own scales, (n, m), and the probability that each holds every budget and does not fail, (n,)."""

    values: FloatArray
    holds: FloatArray


@dataclass(frozen=True, eq=False)
class Model:
    """One expensive metric: what it may depend on, and how far it was found to."""

    columns: Columns
    ridge: Ridge

    def sd(self, designs: Designs) -> FloatArray:
        """Uncertainty of one measurement of each design, on the metric's own scale, (n,)."""
        return np.hypot(self.ridge.sd(self.columns.matrix(designs)), self.ridge.noise)

    def mean(self, designs: Designs) -> FloatArray:
        """Expected value on the metric's own scale, (n,)."""
        return self.ridge.predicted(self.columns.matrix(designs))

    def drawn(self, designs: Designs, generator: np.random.Generator) -> FloatArray:
        """One function that the data allow, (n,)."""
        return self.ridge.drawn(self.columns.matrix(designs), generator)


@dataclass(frozen=True, eq=False)
class Corrected:
    """Models by metric; `failure` is the share of designs like this one that failed, where any did."""

    problem: Problem
    models: dict[str, Model]
    failure: Model | None = None

    def guess(self, designs: Designs) -> Guess:
        """What is expected of designs."""
        means = {name: model.mean(designs) for name, model in self.models.items()}
        holds = np.where(designs.ok, 1.0, 0.0)
        for budget in self.problem.budgets:
            holds = holds * self._held(budget, designs, means)
        if self.failure is not None:
            holds = holds * np.clip(1.0 - self.failure.mean(designs), 0.0, 1.0)
        return Guess(self._values(designs, means), holds)

    def drawn(self, designs: Designs, generator: np.random.Generator) -> Guess:
        """One state of affairs that the data allow: values, and 1 or 0 where every budget is held or not."""
        drawn = {name: model.drawn(designs, generator) for name, model in self.models.items()}
        holds = np.where(designs.ok, 1.0, 0.0)
        for budget in self.problem.budgets:
            holds = holds * self._within(budget, designs, drawn)
        if self.failure is not None:
            holds = holds * (self.failure.mean(designs) < 0.5)
        return Guess(self._values(designs, drawn), holds)

    def _values(self, designs: Designs, learned: dict[str, FloatArray]) -> FloatArray:
        with np.errstate(invalid="ignore"):
            columns = [
                learned[o.name] if o.name in learned else o.scaled(designs.known[o.name])
                for o in self.problem.objectives
            ]
        return np.stack(columns, axis=1)

    def _held(self, budget: Budget, designs: Designs, means: dict[str, FloatArray]) -> FloatArray:
        """The probability that a budget is held, (n,)."""
        if budget.metric not in self.models:
            return self._within(budget, designs, means)
        model = self.models[budget.metric]
        probability: FloatArray = ndtr((_limit(budget, model) - means[budget.metric]) / model.sd(designs))
        return probability

    def _within(self, budget: Budget, designs: Designs, values: dict[str, FloatArray]) -> FloatArray:
        if budget.metric not in self.models:
            return np.where(budget.violation(designs.known[budget.metric]) <= 0, 1.0, 0.0)
        return np.where(values[budget.metric] <= _limit(budget, self.models[budget.metric]), 1.0, 0.0)


def _limit(budget: Budget, model: Model) -> float:
    """A budget's limit on the metric's own scale."""
    return float(model.columns.metric.scaled(np.array([budget.limit]))[0])


def expensive(problem: Problem, told: Evaluations, designs: Designs) -> list[Objective]:
    """The metrics to be learned: the user's own that are minimised or limited, and what is told otherwise than it is known."""
    asked = dict.fromkeys([*(o.name for o in problem.objectives), *(b.metric for b in problem.budgets)])
    own = [metric for metric in problem.functions if metric.name in asked]
    rows, fine = np.searchsorted(designs.keys, told.keys), told.ok
    shipped = [o for o in problem.objectives if o.name in designs.known]
    penalised = [
        o for o in shipped if not np.allclose(told.metrics[o.name][fine], designs.known[o.name][rows[fine]], SAME, 0.0)
    ]
    return [*own, *(replace(o, prior=o.name) for o in penalised)]


class Learner:
    """Learns models anew from everything told; keeps what only depends on the space."""

    def __init__(self, problem: Problem, reference: Designs) -> None:
        self.problem, self.reference = problem, reference
        self.columns: dict[Objective, Columns] = {}

    def learned(self, told: Evaluations, designs: Designs) -> Corrected:
        """The problem as these evaluations let it appear; `designs` hold all that were told."""
        rows, fine = np.searchsorted(designs.keys, told.keys), told.ok
        metrics = expensive(self.problem, told, designs)
        models = {
            metric.name: self._model(metric, designs, rows[fine], metric.scaled(told.metrics[metric.name][fine]))
            for metric in metrics
        }
        failure = None if fine.all() else self._model(FAILURE, designs, rows, np.where(fine, 0.0, 1.0))
        return Corrected(self.problem, models, failure)

    def _model(self, metric: Objective, designs: Designs, rows: IntArray, values: FloatArray) -> Model:
        if metric not in self.columns:
            self.columns[metric] = Columns(self.problem, metric, self.reference)
        columns = self.columns[metric]
        return Model(columns, fitted(columns.matrix(designs)[rows], columns.scheme, values))


def as_known(problem: Problem) -> Callable[[Designs], Guess]:
    """The problem before anything is told: priors in the place of expensive metrics; those without a prior are left out."""
    own = {metric.name: metric for metric in problem.functions}

    def column(name: str, designs: Designs) -> FloatArray | None:
        of = own[name].prior if name in own else name
        return designs.known[of] if of else None

    def guess(designs: Designs) -> Guess:
        found = [(o, column(o.name, designs)) for o in problem.objectives]
        with np.errstate(invalid="ignore"):
            values = [o.scaled(of) for o, of in found if of is not None]
        holds = np.where(designs.ok, 1.0, 0.0)
        for budget in problem.budgets:
            of = column(budget.metric, designs)
            if of is not None and (budget.metric not in own or own[budget.metric].unit == unit_of(own[budget.metric].prior)):
                holds = holds * np.where(budget.violation(of) <= 0, 1.0, 0.0)
        return Guess(np.stack(values, axis=1) if values else np.zeros((len(designs), 0)), holds)

    return guess
