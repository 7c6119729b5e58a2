"""The picks of the whole space as it is now believed to be, beside those of the formulas alone, and how sure each is."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, PickQuery, unit_of
from nas.problem.problem import Problem
from nas.problem.uncertainty import FROM_LOSS
from objectives.plugins import importable
from plas_prior.corrected import Corrected, Model, held
from plas_prior.prior_columns import Designs
from search_spaces.arrays import BoolArray, FloatArray, IntArray

TAIL = 1.6448536269514722  # sds of a normal distribution beyond which 5 % lie
SHIPPED = importable("objectives.metrics")


@dataclass(frozen=True, eq=False)
class CorrectedPick:
    """The answer to a question as the whole space is now believed to be, beside the answer of the formulas alone.

    genotypes: of both, (2, g); evaluated: whether the first was; expected: of the first, by metric, its value and the ends
    between which one measurement lies with 90 %; holds: the probability that each holds every limit; better: that the
    first truly has the lower loss, None where that is no question, or the second hardly holds the limits.
    """

    question: str
    genotypes: IntArray
    evaluated: bool
    expected: Mapping[str, tuple[float, float, float]]
    holds: tuple[float, float]
    better: float | None

    @property
    def changed(self) -> bool:
        """Whether the two differ."""
        return bool((self.genotypes[0] != self.genotypes[1]).any())


@dataclass(frozen=True, eq=False)
class Seen:
    """Designs as they are believed to be: shipped metrics, expected values of what was learned, their uncertainty, each (n,)."""

    corrected: Corrected
    designs: Designs
    shipped: Mapping[str, FloatArray]
    near: FloatArray
    means: Mapping[str, FloatArray]

    def model_of(self, metric: str) -> Model | None:
        """The model of a metric: of itself, or of the user's own that it approximates in the same unit."""
        models = self.corrected.models
        if metric in models:
            return models[metric]
        return next((m for m in models.values() if _stands_for(m.columns.metric, metric)), None)

    def holds(self, limits: tuple[Budget, ...], *, dense: bool) -> FloatArray:
        """The probability that each design holds all limits and does not fail, (n,)."""
        found = np.where(self.designs.ok & ((not dense) | (self.designs.architectures.n_experts == 1)), 1.0, 0.0)
        for limit in limits:
            model = self.model_of(limit.metric)
            if model is None:
                found = found * np.where(limit.violation(self.shipped[limit.metric]) <= 0, 1.0, 0.0)
            else:
                name = model.columns.metric.name
                found = found * held(limit, model, self.means[name], model.sd(self.designs, self.near))
        if self.corrected.failure is not None:
            found = found * np.clip(1.0 - self.corrected.failure.mean(self.designs, self.near), 0.0, 1.0)
        return found

    def within(self, limits: tuple[Budget, ...], *, dense: bool) -> BoolArray:
        """Whether each design holds all limits that formulas predict, (n,)."""
        found: BoolArray = self.designs.ok & ((not dense) | (self.designs.architectures.n_experts == 1))
        own = {metric.name: metric for metric in self.corrected.problem.functions}
        for limit in limits:
            metric = own.get(limit.metric)
            name = metric.prior if metric is not None and _stands_for(metric, metric.prior) else limit.metric
            if name in self.shipped:
                found = found & (limit.violation(self.shipped[name]) <= 0)
        return found


def _stands_for(metric: Objective, shipped: str) -> bool:
    """Whether a user's metric is what a shipped one approximates, in the same unit."""
    return bool(shipped) and metric.prior == shipped and metric.unit == unit_of(shipped)


def picks_of(corrected: Corrected, told: Evaluations, pool: Designs, confidence: float) -> tuple[CorrectedPick, ...]:
    """An answer to each query of the study without a baseline; none where budgets are hidden from the strategy."""
    own = {metric.name for metric in corrected.problem.functions}
    if not own.issuperset(corrected.models) or "infeasible" in (told.reasons or ()):
        return ()
    priced = {*corrected.models, *SHIPPED}
    questions = [
        q
        for q in corrected.problem.queries
        if not q.baseline
        and q.vocabulary is None
        and all(limit.metric.partition("@")[0] in priced for limit in limits_of(corrected.problem, q))
    ]
    seen = _seen(corrected, pool, questions)
    found = (_pick(seen, question, confidence, told) for question in questions)
    return tuple(pick for pick in found if pick is not None)


def _seen(corrected: Corrected, pool: Designs, questions: list[PickQuery]) -> Seen:
    """The pool with every shipped metric that picks look at."""
    problem = corrected.problem
    asked = {limit.metric for q in questions for limit in limits_of(problem, q)} | {"loss"}
    lacking = tuple(n for n in sorted(asked) if n not in pool.known and n.partition("@")[0] in SHIPPED)
    more = problem.metrics(pool.architectures, lacking)[0] if lacking else {}
    near = corrected.nearness(pool, corrected.told)
    means = {name: model.mean(pool, near) for name, model in corrected.models.items()}
    return Seen(corrected, pool, {**pool.known, **more}, near, means)


def limits_of(problem: Problem, question: PickQuery) -> tuple[Budget, ...]:
    """The study's budgets and the question's."""
    return (*problem.budgets, *question.budgets)


def _pick(seen: Seen, question: PickQuery, confidence: float, told: Evaluations) -> CorrectedPick | None:
    """The least expected loss within limits that are likely held, beside the least of the formula within the formulas'."""
    limits, dense = limits_of(seen.corrected.problem, question), question.dense
    holds, within = seen.holds(limits, dense=dense), seen.within(limits, dense=dense)
    likely = np.flatnonzero(holds >= confidence)
    if not (len(likely) and within.any()):
        return None
    model = next((m for m in seen.corrected.models.values() if m.columns.metric.prior in FROM_LOSS), None)
    value = seen.shipped["loss"] if model is None else seen.means[model.columns.metric.name]
    before = seen.shipped["loss" if model is None else model.columns.metric.prior]
    rows = np.array([likely[np.argmin(value[likely])], np.flatnonzero(within)[np.argmin(before[within])]])
    two, unlikely = seen.designs[rows], holds[rows[1]] < confidence
    ends = {m.columns.metric.name: _ends(m, two[:1], seen.near[:, rows[:1]]) for m in seen.corrected.models.values()}
    return CorrectedPick(
        question.label,
        two.genotypes,
        bool(np.isin(two.keys[0], told.keys)),
        ends if model is not None else {"loss": (float(value[rows[0]]),) * 3} | ends,
        (float(holds[rows[0]]), float(holds[rows[1]])),
        None if model is None or rows[0] == rows[1] or unlikely else _better(seen, model, two, seen.near[:, rows]),
    )


def _ends(model: Model, one: Designs, near: FloatArray) -> tuple[float, float, float]:
    """The expected value of a design, and the ends between which one measurement lies with 90 %."""
    mean, sd = float(model.mean(one, near)[0]), float(model.sd(one, near)[0])
    ends = np.array([mean, mean - TAIL * sd, mean + TAIL * sd])
    low, middle, high = sorted((np.exp(ends) if model.columns.metric.log_scale else ends).tolist())
    return middle, low, high


def _better(seen: Seen, model: Model, two: Designs, near: FloatArray) -> float:
    """The probability that the first of two designs is truly better than the second."""
    covariance = model.covariance(two, near, seen.corrected.nearness.among(two))
    mean = model.mean(two, near)
    spread = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    return float(ndtr((mean[1] - mean[0]) / np.sqrt(max(spread, 1e-300))))
