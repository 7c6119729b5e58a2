"""The picks of the whole space as it is now believed to be, beside those of the formulas alone, and how sure each is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtr

from nas.problem.evaluations import Evaluations
from nas.problem.objective import Budget, Objective, PickQuery, unit_of
from nas.problem.problem import Problem
from nas.problem.quantiles import PHASES
from nas.problem.uncertainty import FROM_LOSS
from nas.strategies._corrected import Corrected, Model, held, size
from nas.strategies._prior_columns import Designs
from objectives.device import Calibration, Device
from objectives.loss_law.law import Law
from objectives.plugins import importable
from objectives.scenario import Scenario
from search_spaces.architectures import Architectures
from search_spaces.arrays import BoolArray, FloatArray, IntArray

TAIL = 1.6448536269514722  # sds of a normal distribution beyond which 5 % lie


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
    priced = {*corrected.models, *_shipped()}
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
    lacking = tuple(n for n in sorted(asked) if n not in pool.known and n.partition("@")[0] in _shipped())
    more = problem.metrics(pool.architectures, lacking)[0] if lacking else {}
    near = corrected.nearness(pool, corrected.told)
    means = {name: model.mean(pool, near) for name, model in corrected.models.items()}
    return Seen(corrected, pool, {**pool.known, **more}, near, means)


def _shipped() -> tuple[str, ...]:
    return importable("objectives.metrics")


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


COMPARED = 400  # designs of the corrected frontier at which a file is held against what was learned
WIDE = 1.0  # sd of the logarithm of a coefficient, where nothing tells it
FARTHEST = 3.0  # of that logarithm
UNIQUE = "unique_tokens"  # a coefficient that the study says
STARTS = {"compute_efficiency": 0.6, "bandwidth_efficiency": 0.7, "overhead": 5e-3}  # of a device without a profile
MOST = {"compute_efficiency": 2.0, "bandwidth_efficiency": 2.0, "overhead": 10.0, "expert_bandwidth": 50.0}

Predicted = Callable[[FloatArray, Architectures], FloatArray]


@dataclass(frozen=True, eq=False)
class Projection:
    """The coefficients of a form that come closest to what was learned: logarithms of factors (k,), how far they stay apart
    from it and how sure it is itself, a measurement's noise included (root mean squares on the metric's scale).
    """

    logs: FloatArray
    apart: float
    sure: float

    @property
    def holds(self) -> bool:
        """Whether the correction has this form, within its uncertainty."""
        return self.apart <= self.sure


def files_of(corrected: Corrected, best: Designs) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Content by file name, and a line on every user's metric that corrects a shipped one."""
    files: dict[str, Mapping[str, Any]] = {}
    lines: list[str] = []
    own = {metric.name for metric in corrected.problem.functions}
    for name, model in corrected.models.items():
        metric = model.columns.metric
        if name not in own or not metric.prior:
            continue
        kind, refused = _kind(metric, corrected.problem.scenario)
        file = f"corrected_{kind}.yaml"
        if refused or file in files:
            lines.append(f"No file of the correction of {name}: {refused or f'{file} holds another one'}.")
            continue
        rows = _compared(corrected, model, best)
        content, found = (_law if kind == "law" else _device)(corrected, model, rows)
        files |= {file: content} if found.holds else {}
        lines.append(_sentence(metric, kind, file, found))
    return files, lines


def _kind(metric: Objective, scenario: Scenario) -> tuple[str, str]:
    """The kind of file that could hold a correction, and why none can ("" where one can)."""
    unit, of = metric.unit, unit_of(metric.prior)
    if metric.prior in FROM_LOSS:
        wrong = metric.prior != "loss" or metric.log_scale or unit not in ("", of)
        return "law", "a law's file holds losses in nats, not their exponentials or logarithms" if wrong else ""
    if metric.prior not in PHASES:
        return "", f"neither a law nor a device's profile holds one of {metric.prior}"
    if unit not in ("", of):
        return "device", f"it is in {unit}, {metric.prior} in {of}"
    if scenario.formats or scenario.own_vocabularies or scenario.latency != "operator":
        return "device", "a profile is of one format, of one vocabulary and of the operator model"
    return "device", ""


def _sentence(metric: Objective, kind: str, file: str, found: Projection) -> str:
    apart, sure = size(metric, found.apart), size(metric, found.sure)
    if found.holds:
        named = {"law": "--law", "device": "--device"}[kind]
        return f"{file} holds the correction of {metric.name} for {named}: {apart} from what was learned, which is sure to {sure}."
    form = {"law": "its law's form", "device": "the form of a profile"}[kind]
    return f"No file of the correction of {metric.name}: it has not {form}, {apart} off where it is sure to {sure}."


def _compared(corrected: Corrected, model: Model, best: Designs) -> Designs:
    """Designs of the corrected frontier, and those that taught."""
    some = np.unique(np.linspace(0, len(best) - 1, min(COMPARED, len(best))).astype(np.int64))
    return best[some].followed_by(corrected.told[model.rows])


def projected(
    corrected: Corrected, model: Model, rows: Designs, start: FloatArray, most: FloatArray, predicted: Predicted
) -> Projection:
    """The factors closest to what was learned, from those of a start, by least squares weighted by its certainty."""
    near = corrected.nearness(rows, corrected.told)
    mean, sd = model.mean(rows, near), model.sd(rows, near)

    def apart(logs: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            found = model.columns.metric.scaled(predicted(logs, rows.architectures))
        return np.nan_to_num(found - mean, nan=1e3, posinf=1e3, neginf=-1e3)

    def cost(logs: FloatArray) -> FloatArray:
        return np.concatenate([apart(logs) / sd, (logs - start) / WIDE])

    limits = (start - FARTHEST, np.minimum(start + FARTHEST, most))
    logs = least_squares(cost, start, bounds=limits, max_nfev=60).x
    return Projection(logs, _rms(apart(logs)), _rms(sd))


def _law(corrected: Corrected, model: Model, rows: Designs) -> tuple[Mapping[str, Any], Projection]:
    """The study's law with other coefficients."""
    law = corrected.problem.scenario.law
    names = [name for name in law.coefficients if name != UNIQUE]

    def law_at(logs: FloatArray) -> Law:
        changed = dict(zip(names, logs.tolist(), strict=True))
        values = {
            name: value * np.exp(changed[name]) if value else changed[name] for name, value in _coefficients(law, names)
        }
        return law.model_copy(update={"coefficients": law.coefficients | {n: float(v) for n, v in values.items()}})

    zero = np.zeros(len(names))
    found = projected(corrected, model, rows, zero, zero + FARTHEST, lambda logs, a: law_at(logs).loss(a))
    taught = corrected.told[model.rows].architectures
    ranges = {n: ends if n == "tokens" else _range(law.feature(taught, n)) for n, ends in law.fitted_on.items()}
    metric = model.columns.metric.name
    changed = {
        "name": f"{law.name}_corrected",
        "description": f"{law.name}, corrected by {len(model.values)} values of {metric}",
        "fitted_on": ranges,
        "runs": len(model.values),
        "residual_sd": _rms(law_at(found.logs).loss(taught) - model.values),
        "covariance": (),
        "draws": (),
        "rivals": (),
        "provenance": {},
    }
    return law_at(found.logs).model_copy(update=changed).mapping(), found


def _coefficients(law: Law, names: list[str]) -> list[tuple[str, float]]:
    return [(name, law.coefficients[name]) for name in names]


def _range(values: FloatArray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _device(corrected: Corrected, model: Model, rows: Designs) -> tuple[Mapping[str, Any], Projection]:
    """The study's device with a profile whose efficiencies and overhead are others."""
    problem, scenario = corrected.problem, corrected.problem.scenario
    before = scenario.calibration or Calibration.model_validate(STARTS)
    sparse = bool((corrected.told[model.rows].architectures.n_experts > 1).any())
    names = [*STARTS, *(["expert_bandwidth"] if sparse else [])]
    start = np.log([max(getattr(before, name), 1e-4) for name in names])

    def profile_at(logs: FloatArray) -> Calibration:
        changed = dict(zip(names, np.exp(logs).tolist(), strict=True))
        return before.model_copy(update={**changed, "held_out_error": None, "held_out": {}, "held_out_models": None})

    def predicted(logs: FloatArray, architectures: Architectures) -> FloatArray:
        there = replace(problem, scenario=replace(scenario, calibration=profile_at(logs)))
        return there.assess(architectures)[model.columns.metric.prior]

    most = np.log([MOST[name] for name in names])
    found = projected(corrected, model, rows, np.minimum(start, most), most, predicted)
    key = {"mode": scenario.device.mode, "precision": scenario.precision.name, "batch": scenario.batch}
    text = f"corrected by {len(model.values)} values of {model.columns.metric.name}"
    profile = profile_at(found.logs).model_copy(update={**key, "source": text, "experts": sparse})
    return _with(scenario.device, profile).mapping(), found


def _with(device: Device, profile: Calibration) -> Device:
    """The device with a profile in the place of those of its mode, precision and batch."""
    key = (profile.mode, profile.precision, profile.batch)
    others = [p for p in device.profiles if (p.mode, p.precision, p.batch) != key]
    return device.model_copy(update={"profiles": [*others, profile]})


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.square(values).mean()))
